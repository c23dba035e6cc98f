-- One operation on one conversation: `src/state/slot.rs` in the store's own time. Each function here is the one of the
-- same name there, and a differential test holds them together.
--
-- ARGV, after those of `clock.lua`: lease, settle, max_hold (milliseconds), its own arguments.
-- Answers {told, epoch, now, entry}: told is 0 no, 1 yes, 2 quiet; the entry is JSON text, empty when it is free.
-- Tokens and askers are decimal text, since a number of Lua has 53 bits only.
local lease, settle, max_hold = tonumber(arg()), tonumber(arg()), tonumber(arg())

local text = redis.call('GET', KEYS[1]) or ''
local entry = text == '' and {} or cjson.decode(text)
local changed = false

local function find(token, generation)
  for _, holder in ipairs(entry) do
    if holder.token == token and holder.generation == (generation or holder.generation) then return holder end
  end
end

local function keep(wanted)
  local kept = {}
  for _, holder in ipairs(entry) do
    if wanted(holder) then kept[#kept + 1] = holder end
  end
  local fewer = #kept < #entry
  changed = changed or fewer
  entry = kept
  return fewer
end

local function leave(holder, settled)
  holder.phase = holder.task and 'held' or 'unknown'
  holder.generation = holder.generation + 1
  holder.settled = settled
  holder.ends = now + max_hold
  changed = true
end

local function extend(holder)
  holder.lease = now + lease
  holder.ends = now + max_hold
  changed = true
end

local function lapse()
  for _, holder in ipairs(entry) do
    if holder.phase == 'in_flight' and holder.lease <= now then
      local ends = holder.ends
      leave(holder, now)
      holder.ends = ends
    end
  end
  keep(function(holder) return holder.ends > now end)
end

local function push(token, asker, task)
  local holder = {
    token = token, generation = 0, phase = 'in_flight', task = task, resumes = task ~= nil,
    asker = asker, taken = now, settled = 0,
  }
  extend(holder)
  entry[#entry + 1] = holder
  return holder
end

local function free(token, generation)
  return keep(function(holder)
    return holder.phase == 'in_flight' or holder.token ~= token or holder.generation ~= generation
  end)
end

function ops.take()
  if now < epoch + quiet then return 2 end
  if #entry > 0 then return 0 end
  push(arg(), arg(), arg())
  return 1
end

function ops.take_over()
  if now < epoch + quiet then return 2 end
  free(arg(), tonumber(arg()))
  return ops.take()
end

-- Its message is out, so that it is told also while the store is quiet.
function ops.free()
  return free(arg(), tonumber(arg())) and 1 or 0
end

function ops.goes_on()
  local holder = find(arg(), tonumber(arg()))
  if not holder or holder.phase == 'in_flight' then return 0 end
  holder.ends = now + max_hold
  changed = true
  return 1
end

function ops.name()
  local holder, task = find(arg()), arg()
  if not holder then return 0 end
  if holder.task ~= task then
    holder.task = task
    holder.generation = holder.generation + 1
    holder.resumes = false
    changed = true
  end
  if holder.phase == 'unknown' then
    holder.phase = 'held'
    changed = true
  end
  return 1
end

function ops.renew()
  local holder = find(arg())
  if not holder then return 0 end
  if holder.phase ~= 'in_flight' then
    holder.phase = 'in_flight'
    holder.generation = holder.generation + 1
  end
  extend(holder)
  return 1
end

function ops.settle()
  local token, how, task = arg(), arg(), arg()
  local holder = find(token)
  if not holder then return 0 end
  if how == 'free' then
    keep(function(other) return other.token ~= token end)
    return 1
  end
  if how == 'held' and task then
    if holder.task ~= task then holder.resumes = false end
    holder.task = task
  end
  leave(holder, now + settle)
  return 1
end

-- Puts a holder back that the store does not have: it lost it, or never had it. Evidence from before counts no more.
-- Where another holds the conversation, only one whose message was out before the store was told may join it: its
-- conversation was not known, or it was admitted while the store was away.
-- While a store is quiet that has lost its data, all who hold it were put back, and nobody knows who came last: a replica
-- may remember a task that another has seen at rest. They hold it together, and each must come to rest.
function ops.restore()
  local token, further = arg(), arg() == '1'
  local asker, generation, phase, resumes, age, task = arg(), tonumber(arg()), arg(), arg() == '1', tonumber(arg()), arg()
  local holder = find(token)
  if not holder then
    if #entry > 0 and not further and now >= epoch + quiet then return 0 end
    holder = push(token, asker, task)
    holder.generation = generation
    holder.resumes = resumes
    holder.taken = now - age
    if phase ~= 'in_flight' then leave(holder, now + settle) end
  elseif phase == 'in_flight' then
    if holder.phase ~= phase then
      holder.phase = phase
      holder.generation = holder.generation + 1
    end
    extend(holder)
  end
  return 1
end

function ops.release()
  return keep(function() return false end) and 1 or 0
end

function ops.look()
  return #entry > 0 and 1 or 0
end

lapse()
local told = ops[op]()
if changed then
  if #entry == 0 then
    text = ''
    redis.call('DEL', KEYS[1])
  else
    text = cjson.encode(entry)
    local last = 0
    for _, holder in ipairs(entry) do last = math.max(last, holder.ends) end
    -- Housekeeping only: what is over is decided above, by the clock that operations see.
    redis.call('SET', KEYS[1], text, 'PXAT', text_of(last - shift))
  end
end
return {told, text_of(epoch), text_of(now), text}
