-- What rules count (`src/state/counters.rs`): of all keys together, or of none.
--
-- KEYS: the counts.
-- ARGV: operation, shift of the clock (tests, milliseconds), lease (microseconds), when what is given back was taken;
-- then for each key its kind and three numbers:
--   r  interval, tolerance, -    a rate; kept as the time when it is at rest
--   q  end, limit, cost          a window; kept as a hash of its end and what was used
--   w  part, limit, cost         a window that rolls; kept as a hash of what was used by part
--   c  token, limit, -           so many at once; kept as tokens with the end of their lease
-- Of a rate that is given back, the third number is its time at rest when it was taken.
-- All times are microseconds. Answers of take: {1, now, and for each key whether it is new, and a rate's time}, or
-- {0, which, wait, left}; of look: what is used and the end of its window, or 0, for each key; of others: nothing.
local op, shift, lease, at = ARGV[1], tonumber(ARGV[2]) * 1000, tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2] + shift
local KEPT = 17

local function text_of(number)
  return string.format('%.0f', number)
end

-- Housekeeping only: what is over is decided by the clock that operations see.
local function expire(key, by)
  redis.call('PEXPIREAT', key, text_of(math.ceil((by - shift) / 1000) + 1000))
end

local function fits(used, cost, limit)
  local left = math.max(limit - used, 0)
  return math.max(cost, 1) <= left, left
end

-- The parts of a window that rolls that still count, and their sum.
local function parts_of(key, part)
  local newest, sum, parts, old = math.floor(now / part), 0, {}, {}
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local number, used = tonumber(all[i]), tonumber(all[i + 1])
    if number > newest - KEPT then
      parts[number], sum = used, sum + used
    else
      old[#old + 1] = all[i]
    end
  end
  return newest, sum, parts, old
end

local function window_of(key, ends)
  local kept = redis.call('HMGET', key, 'ends', 'used')
  local known = tonumber(kept[1] or '')
  -- A later one has begun for a gateway whose clock goes before.
  if known and known >= ends then return known, tonumber(kept[2]) end
  return ends, 0
end

local looks, takes, gives = {}, {}, {}

-- What says more than a burst was written before the clock was set back.
local function rest_of(key, interval, tolerance)
  local rest = tonumber(redis.call('GET', key) or '0')
  if rest > now + tolerance + interval then return now + tolerance end
  return rest
end

function looks.r(key, interval, tolerance)
  local rest = rest_of(key, interval, tolerance)
  if rest > now + tolerance then return rest - now - tolerance, 0 end
end

function takes.r(key, interval, tolerance)
  local rest = math.max(rest_of(key, interval, tolerance), now) + interval
  redis.call('SET', key, text_of(rest))
  expire(key, rest)
  return rest
end

-- What time has given back already does not come back twice.
function gives.r(key, interval, _, mine)
  local rest = tonumber(redis.call('GET', key) or '')
  if not rest then return end
  local back = math.min(interval, rest - now, mine - now)
  if back > 0 then redis.call('SET', key, text_of(rest - back), 'KEEPTTL') end
end

function looks.q(key, ends, limit, cost)
  local known, used = window_of(key, ends)
  local enough, left = fits(used, cost, limit)
  if not enough then return math.max(known - now, 0), left end
end

function takes.q(key, ends, _, cost)
  local known, used = window_of(key, ends)
  redis.call('HSET', key, 'ends', text_of(known), 'used', text_of(used + cost))
  -- A gateway whose clock is late must not begin it once more.
  expire(key, known + 60000000)
end

function gives.q(key, ends, _, cost)
  local known, used = window_of(key, ends)
  if known == ends and used > 0 then
    redis.call('HSET', key, 'used', text_of(math.max(used - cost, 0)))
  end
end

function looks.w(key, part, limit, cost)
  local newest, sum, parts = parts_of(key, part)
  local enough, left = fits(sum, cost, limit)
  if enough then return end
  for number = newest - KEPT + 1, newest do
    sum = sum - (parts[number] or 0)
    if sum + math.max(cost, 1) <= limit then return math.max((number + KEPT) * part - now, 0), left end
  end
  return KEPT * part, left
end

function takes.w(key, part, _, cost)
  local newest, _, _, old = parts_of(key, part)
  if #old > 0 then redis.call('HDEL', key, unpack(old)) end
  redis.call('HINCRBY', key, text_of(newest), text_of(cost))
  expire(key, (newest + KEPT) * part)
end

function gives.w(key, part, _, cost)
  local number = text_of(math.floor(at / part))
  local used = tonumber(redis.call('HGET', key, number) or '')
  if used then redis.call('HSET', key, number, text_of(math.max(used - cost, 0))) end
end

function looks.c(key, _, limit)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', text_of(now))
  if redis.call('ZCARD', key) >= limit then return 1000000, 0 end
end

function takes.c(key, of)
  redis.call('ZADD', key, text_of(now + lease), of)
  expire(key, now + lease)
end

function gives.c(key, of)
  redis.call('ZREM', key, of)
end

local levels = {}

function levels.r(key)
  return math.max(tonumber(redis.call('GET', key) or '0') - now, 0), 0
end

function levels.q(key, ends)
  local known, used = window_of(key, ends)
  return used, known
end

function levels.w(key, part)
  local _, sum = parts_of(key, part)
  return sum, 0
end

function levels.c(key)
  return redis.call('ZCOUNT', key, text_of(now), '+inf'), 0
end

local function each(of)
  for i, key in ipairs(KEYS) do
    local first = 4 + (i - 1) * 4
    local kind, a = ARGV[first + 1], ARGV[first + 2]
    if kind ~= 'c' then a = tonumber(a) end
    of(i, key, kind, a, tonumber(ARGV[first + 3]), tonumber(ARGV[first + 4]))
  end
end

if op == 'take' then
  local which, wait, left = nil, -1, 0
  each(function(i, key, kind, a, b, c)
    local its, rest = looks[kind](key, a, b, c)
    if its and its > wait then which, wait, left = i, its, rest end
  end)
  if which then return {'0', text_of(which - 1), text_of(wait), text_of(left)} end
  local answer = {'1', text_of(now)}
  each(function(i, key, kind, a, b, c)
    answer[2 * i + 1] = text_of(1 - redis.call('EXISTS', key))
    answer[2 * i + 2] = text_of(takes[kind](key, a, b, c) or 0)
  end)
  return answer
end
if op == 'look' then
  local answer = {}
  each(function(_, key, kind, a)
    local used, ends = levels[kind](key, a)
    answer[#answer + 1], answer[#answer + 2] = text_of(used), text_of(ends)
  end)
  return answer
end
local how = op == 'give' and gives or takes
each(function(_, key, kind, a, b, c)
  how[kind](key, a, b, c)
end)
return {}
