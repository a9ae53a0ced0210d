"""Counts of calls in Redis: under which keys they lie, the scripts that change them, what is sent and answered.

A server has a lease, a member of a sorted set. The running calls of a caller are a hash: how many at each server. What
servers without a lease have there does not count, and is dropped.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, cast

from tis.http.call_counts import CallTotals, CallUse, CallWindow, CountedCaller, seconds_of
from tis.streaming.stores.redis_keys import PREFIX

_LIMITS = f"{PREFIX}:limits:1"  # the version of all that follows
LEASES = f"{_LIMITS}:leases"  # a sorted set: each server, by the time at which its lease ends
_TOTALS = ("requests", "refused", "prompt_tokens", "generated_tokens")

_LEASE = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local function renew(server, ms) return redis.call('ZADD', KEYS[1], now + ms, server) end
"""
_KEEP_RUNNING_SECONDS = 7 * 86_400
_KEEP_TOTALS_SECONDS = 400 * 86_400

# KEYS: leases. ARGV: the server, the milliseconds of a lease. The answer: `new` if it had none.
RENEW = f"""{_LEASE}
if renew(ARGV[1], ARGV[2]) == 1 then return {{'new'}} end
return {{'old'}}
"""

# KEYS: leases, the running calls of a caller. ARGV: the server, the milliseconds of a lease, how many run there.
RESTORE = f"""{_LEASE}
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
redis.call('EXPIRE', KEYS[2], {_KEEP_RUNNING_SECONDS})
renew(ARGV[1], ARGV[2])
return {{'ok'}}
"""

# KEYS: leases, running calls, totals, then a counter for each window. ARGV: the server, the milliseconds of a lease,
# check | look | count, how many calls more run, how many may (-1: any number), how many windows; of each window its
# limit, its milliseconds, what to add; whether there are totals, and what to add to each of them. The answer: whether
# it was accepted, whether the lease is new, how many calls run, the time since which there are totals; of each window
# its count and the milliseconds until its end; the totals.
COUNT = f"""{_LEASE}
local mode, change, max_running, num = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local function of_window(i, what) return tonumber(ARGV[3 + 3 * i + what]) end
local running = 0
local all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
  if redis.call('ZSCORE', KEYS[1], all[i]) then running = running + tonumber(all[i + 1])
  elseif all[i] ~= ARGV[1] then redis.call('HDEL', KEYS[2], all[i]) end
end
local accepted, counts = 1, {{}}
for i = 1, num do
  counts[i] = tonumber(redis.call('GET', KEYS[3 + i]) or 0)
  if counts[i] >= of_window(i, 1) then accepted = 0 end
end
if max_running >= 0 and running >= max_running then accepted = 0 end
if mode ~= 'check' then accepted = 1 end
local is_new = 0
if accepted == 1 and change ~= 0 then
  is_new = renew(ARGV[1], ARGV[2])
  running = running + change
  if redis.call('HINCRBY', KEYS[2], ARGV[1], change) <= 0 then redis.call('HDEL', KEYS[2], ARGV[1]) end
  redis.call('EXPIRE', KEYS[2], {_KEEP_RUNNING_SECONDS})
end
local answer = {{accepted, is_new, math.max(0, running)}}
for i = 1, num do
  local amount = of_window(i, 3)
  if accepted == 1 and (amount > 0 or (amount < 0 and counts[i] > 0)) then
    counts[i] = redis.call('INCRBY', KEYS[3 + i], amount)
    if redis.call('PTTL', KEYS[3 + i]) < 0 then redis.call('PEXPIRE', KEYS[3 + i], of_window(i, 2)) end
  end
end
local first = 7 + 3 * num
local names = {{'{"', '".join(_TOTALS)}'}}
local totals = {{}}
if ARGV[first] == '1' then
  if mode ~= 'look' then
    redis.call('HSETNX', KEYS[3], 'since', time[1])
    redis.call('EXPIRE', KEYS[3], {_KEEP_TOTALS_SECONDS})
    if accepted == 0 then redis.call('HINCRBY', KEYS[3], 'refused', 1) end
  end
  for i, name in ipairs(names) do
    local amount = tonumber(ARGV[first + i])
    if accepted == 1 and amount ~= 0 then redis.call('HINCRBY', KEYS[3], name, amount) end
  end
  totals = redis.call('HMGET', KEYS[3], 'since', unpack(names))
end
answer[4] = totals[1] or time[1]
for i = 1, num do
  answer[#answer + 1] = math.max(0, counts[i])
  answer[#answer + 1] = math.max(0, redis.call('PTTL', KEYS[3 + i]))
end
for i = 1, #names do answer[#answer + 1] = totals[i + 1] or 0 end
return answer
"""


@dataclass(slots=True, eq=False)
class CountChange:
    """Of one caller, for the next round."""

    caller: CountedCaller
    costs: dict[str, int] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    running: int = 0
    since: float | None = None
    checks: bool = False
    answer: "asyncio.Future[CallUse | None] | None" = None  # None: it is to be decided without Redis

    def add(self, costs: Mapping[str, int], totals: Mapping[str, int], running: int) -> None:
        for sums, more in ((self.costs, costs), (self.totals, totals)):
            for name, amount in more.items():
                sums[name] = sums.get(name, 0) + amount
        self.running += running

    @property
    def keys(self) -> list[str]:
        caller = self.caller
        counters = [f"{_of(caller.id)}:{name}" for name, _ in caller.windows]
        return [LEASES, running_key(caller.id), f"{_of(caller.key_name)}:totals", *counters]

    def arguments(self, server: str, lease_ms: int, now: float) -> list[Any]:
        """Costs of windows that are over by now are left out."""
        caller, age = self.caller, 0.0 if self.since is None else now - self.since
        mode = "check" if self.checks else "look" if self.answer else "count"
        most = -1 if caller.max_running is None else caller.max_running
        arguments: list[Any] = [server, lease_ms, mode, self.running, most, len(caller.windows)]
        for name, limit in caller.windows:
            seconds = seconds_of(name)
            arguments += [limit, seconds * 1000, self.costs.get(name, 0) if age < seconds else 0]
        return [*arguments, int(bool(caller.key_name)), *(self.totals.get(name, 0) for name in _TOTALS)]


def read_reply(caller: CountedCaller, reply: Any) -> tuple[CallUse, bool]:
    """With whether the lease of the server is new."""
    is_accepted, is_new, num_running, since, *numbers = (int(one) for one in cast(list[Any], reply))
    windows = []
    for name, limit in caller.windows:
        count, resets_in, *numbers = numbers
        windows.append(CallWindow(name, limit, max(0, limit - count), resets_in / 1000))
    totals = CallTotals(float(since), **dict(zip(_TOTALS, numbers, strict=True)))
    return CallUse(windows, num_running, totals, bool(is_accepted)), bool(is_new)


def running_key(caller_id: str) -> str:
    return f"{_of(caller_id)}:running"


def _of(name: str) -> str:
    """By a digest, as names are addresses of people, too."""
    return f"{_LIMITS}:{{{blake2b(name.encode(), digest_size=16).hexdigest()}}}"
