-- What each script begins with: its operation, the store's own time, and whether the store still has its data.
--
-- KEYS: what it is about, the epoch of its tag.
-- ARGV: operation, shift of the clock (tests), quiet (milliseconds), its own arguments.
local at = 0
local function arg()
  at = at + 1
  return ARGV[at]
end

local op, shift, quiet = arg(), tonumber(arg()), tonumber(arg())
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + shift

local function text_of(number)
  return string.format('%.0f', number)
end

-- A store without an epoch has lost its data. One far in the future is of another clock, and as good as none.
local epoch = tonumber(redis.call('GET', KEYS[2]) or '')
if not epoch or epoch > now + quiet then
  epoch = now
  redis.call('SET', KEYS[2], text_of(epoch))
end

local ops = {}

