-- One operation on what is remembered of a message (`src/state/retry.rs`). It is kept as a hash.
--
-- ARGV, after those of `clock.lua`: lease, window (milliseconds), token, and for all but forget digest, fate, task.
-- Answers {told, epoch, now, token, digest, fate, task, lease}: told is 0 no, 1 yes, 2 quiet; after a no follows what
-- was found.
local lease, window = tonumber(arg()), tonumber(arg())
local token, digest, fate, over, task = arg(), arg(), arg(), arg(), arg()

local old = redis.call('HMGET', KEYS[1], 'token', 'digest', 'fate', 'task', 'lease', 'ends')
if not old[1] or tonumber(old[6]) <= now then old = {} end

-- Its gateway says while it runs that it is there; one that has died is to be found dead before it is forgotten.
local function put()
  local ends = now + window
  if fate == 'running' then ends = ends + lease end
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'token', token, 'digest', digest, 'fate', fate, 'lease', text_of(now + lease),
    'ends', text_of(ends))
  if task then redis.call('HSET', KEYS[1], 'task', task) end
  -- Housekeeping only: what is over is decided above, by the clock that operations see.
  redis.call('PEXPIREAT', KEYS[1], text_of(ends - shift))
  return 1
end

-- New, unless it was begun before. One of `over` was never sent, and is about to be forgotten.
function ops.begin()
  if now < epoch + quiet then return 2 end
  if old[1] and old[1] ~= over then return 0 end
  return put()
end

-- What became of it, or that its gateway is still there. Also where the store has lost it.
function ops.tell()
  if old[1] and old[1] ~= token then return 0 end
  return put()
end

function ops.forget()
  if old[1] ~= token then return 0 end
  redis.call('DEL', KEYS[1])
  return 1
end

local told = ops[op]()
return {told, text_of(epoch), text_of(now), old[1] or false, old[2] or false, old[3] or false, old[4] or false, old[5] or false}
