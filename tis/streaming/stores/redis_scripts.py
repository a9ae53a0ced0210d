"""The Lua scripts that change sessions in Redis, each of them as a whole or not at all.

A session has a `claim`: who holds it, and the how many-th of his claims that is. Each write names the claim that it is
made under, and is refused when the session has another: a process that was paused while another took its session cannot
write. In each script a first write that needs memory stands before all others: Redis refuses it where memory is full.
"""

# KEYS: as `SessionKeys.all`. The answer: the verdict, and the next index or the claim that the session has.
WRITE = """
local at = 0
local function take() at = at + 1; return ARGV[at] end
local function taken(n) local all = {}; for i = 1, n do all[i] = take() end; return all end
local meta, events, news, request, documents, attachments, attached = unpack(KEYS)
local mode, claim, expected = take(), take(), take()
local found = redis.call('HMGET', meta, 'claim', 'gone', 'next', 'run', 'doc', 'docby', 'ttl')
local held, gone, exists = found[1], found[2], found[1] and not found[2]
if mode == 'replace' then
  if not exists then return {'lost', ''} end
  if found[6] == claim then return {'ok', ''} end
  if (found[5] or '0') ~= expected then return {'fenced', held} end
  claim = held
elseif mode == 'begin' and held ~= claim then
  if exists and (held ~= expected or found[4] == '1') then return {'fenced', held} end
  if not exists and expected ~= '' then return {'lost', ''} end
  if gone then redis.call('DEL', meta) end
elseif mode == 'restore' and exists and held ~= claim then return {'fenced', held}
elseif mode == 'restore' and gone then return {'fenced', held}
elseif mode == 'write' and gone then return {'fenced', held}
elseif mode == 'write' and not exists then return {'lost', ''}
elseif mode == 'write' and held ~= claim then return {'fenced', held}
end
local known = exists and tonumber(found[3] or '0') or nil
local first, last = tonumber(take()), tonumber(take())
if mode == 'begin' and held ~= claim and known and first ~= known then return {'fenced', held} end
local num_events = last - first
if known and first > known then return {'gap', known} end
local data = taken(2 * num_events)
redis.call('HSET', meta, 'claim', claim, 'next', math.max(known or first, last))
if held ~= claim then redis.call('HINCRBY', meta, 'epoch', 1) end
for i = 1, num_events do
  local index = first + i - 1
  if not known or index >= known then
    redis.call('XADD', events, '0-' .. (index + 1), 'd', data[2 * i - 1], 's', data[2 * i])
  end
end
for _ = 1, tonumber(take()) do redis.call('HSET', meta, take(), take()) end
for _ = 1, tonumber(take()) do redis.call('HDEL', meta, take()) end
local asked = take()
if asked == 'set' then redis.call('SET', request, take()) elseif asked == 'drop' then redis.call('DEL', request) end
for _ = 1, tonumber(take()) do redis.call('HSET', documents, take(), take()) end
for _ = 1, tonumber(take()) do redis.call('HDEL', documents, take()) end
for _ = 1, tonumber(take()) do
  local name, turn, content = take(), take(), take()
  redis.call('HSET', attachments, name, content)
  redis.call('HSET', attached, name, turn .. ' ' .. #content)
end
local function drop(name) redis.call('HDEL', attachments, name); redis.call('HDEL', attached, name) end
local max_bytes, named, oldest_turn, oldest = tonumber(take()), tonumber(take()), tonumber(take()), tonumber(take())
local kept = {}
if named >= 0 then for _, name in ipairs(taken(named)) do kept[name] = true end end
local own = {}
if max_bytes >= 0 or named >= 0 or oldest_turn >= 0 then
  local all = redis.call('HGETALL', attached)
  for i = 1, #all, 2 do
    local turn, size = string.match(all[i + 1], '(%d+) (%d+)')
    own[#own + 1] = {name = all[i], turn = tonumber(turn), size = tonumber(size)}
  end
  table.sort(own, function(a, b) if a.turn ~= b.turn then return a.turn > b.turn end return a.name < b.name end)
end
local total = 0
for _, one in ipairs(own) do
  total = total + one.size
  if (max_bytes >= 0 and total > max_bytes) or (named >= 0 and not kept[one.name]) or one.turn < oldest_turn then
    drop(one.name)
  end
end
if oldest >= 0 then redis.call('XTRIM', events, 'MINID', '0-' .. (oldest + 1)) end
local ttl = tonumber(take())
if mode == 'replace' and found[4] ~= '1' then ttl = tonumber(found[7]) end
if ttl > 0 then for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ttl) end end
if ttl == 0 then for _, key in ipairs(KEYS) do redis.call('PERSIST', key) end end
if take() == 'news' then
  redis.call('XADD', news, 'MAXLEN', 16, '*', 'n', '')
  if ttl > 0 then redis.call('PEXPIRE', news, ttl) end
end
return {'ok', math.max(known or first, last)}
"""

# KEYS: as `SessionKeys.all`. ARGV: the claim of the caller, when the session was used, since when it has no reader.
TOUCH = """
local found = redis.call('HMGET', KEYS[1], 'claim', 'gone', 'run', 'ttl', 'used')
if not found[1] or found[2] then return 0 end
if found[1] == ARGV[1] then redis.call('HSET', KEYS[1], 'used', ARGV[2], 'unheard', ARGV[3])
elseif tonumber(ARGV[2]) > tonumber(found[5]) then redis.call('HSET', KEYS[1], 'used', ARGV[2]) end
if found[3] ~= '1' then for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, found[4]) end end
return 1
"""

# KEYS: as `SessionKeys.all`. ARGV: the claim that the holder had, the new one.
TAKE = """
local found = redis.call('HMGET', KEYS[1], 'claim', 'gone', 'run')
if found[1] == ARGV[2] then return 1 end
if found[1] ~= ARGV[1] or found[2] or found[3] ~= '1' then return 0 end
redis.call('HSET', KEYS[1], 'claim', ARGV[2])
redis.call('HINCRBY', KEYS[1], 'epoch', 1)
redis.call('XADD', KEYS[3], 'MAXLEN', 16, '*', 'n', '')
return 1
"""

# KEYS: as `SessionKeys.all`. The answer: the claim of the one who has to be told, or nothing.
CANCEL = """
local found = redis.call('HMGET', KEYS[1], 'claim', 'gone', 'run')
if not found[1] or found[2] or found[3] ~= '1' then return '' end
redis.call('HSET', KEYS[1], 'cancel', '1')
return found[1]
"""

# KEYS: as `SessionKeys.all`. ARGV: a claim of nobody, and how long others must see that the session is gone.
FORGET = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('DEL', unpack(KEYS))
redis.call('HSET', KEYS[1], 'claim', ARGV[1], 'gone', '1')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('XADD', KEYS[3], '*', 'n', '')
redis.call('PEXPIRE', KEYS[3], ARGV[2])
return 1
"""

# KEYS: the replicas. ARGV: the process, the milliseconds of a lease. The answer: those that have given theirs back,
# and those whose lease is over.
RENEW = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
local function between(low, high) return redis.call('ZRANGEBYSCORE', KEYS[1], low, high, 'LIMIT', 0, 64) end
return {between('-inf', 0), between('(0', now)}
"""
