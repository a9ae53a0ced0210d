"""What callers have used: calls and tokens in windows of time, and calls that run.

A window begins with the first call in it. A refused call does not lengthen it. `LocalCounts` is the memory of this
process; `SharedCounts` counts over all servers that share a Redis.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from limits import RateLimitItem, RateLimitItemPerDay, RateLimitItemPerHour, RateLimitItemPerMinute
from limits.storage import Storage
from limits.strategies import FixedWindowRateLimiter

RUNNING = "running_requests"
_PERIODS: Mapping[str, type[RateLimitItem]] = {
    "minute": RateLimitItemPerMinute,
    "hour": RateLimitItemPerHour,
    "day": RateLimitItemPerDay,
}
_MAX_COUNTERS = 20_000  # about 6 MB


@dataclass(frozen=True, slots=True)
class CountedCaller:
    id: str
    limits: Mapping[str, int]  # of windows, by names such as `tokens_per_minute`, and of RUNNING
    key_name: str = ""  # whose calls run and have totals; empty: of a route that only counts its callers

    @property
    def windows(self) -> list[tuple[str, int]]:
        return [(name, limit) for name, limit in self.limits.items() if name != RUNNING]

    @property
    def max_running(self) -> int | None:
        return self.limits.get(RUNNING)


@dataclass(frozen=True, slots=True)
class CallWindow:
    name: str
    limit: int
    remaining: int
    resets_in: float  # seconds; 0 before the first call


@dataclass(slots=True)
class CallTotals:
    since: float
    requests: int = 0
    refused: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0

    def add(self, more: Mapping[str, int]) -> None:
        for name, amount in more.items():
            setattr(self, name, getattr(self, name) + amount)


@dataclass(frozen=True, slots=True)
class CallUse:
    windows: list[CallWindow]
    num_running: int
    totals: CallTotals
    is_accepted: bool = True


class CallCounts(Protocol):
    """Used on the event loop alone."""

    async def begin(self, caller: CountedCaller, costs: Mapping[str, int]) -> CallUse:
        """Counts the costs of a call, by window, and that it runs, unless a limit of the caller is reached."""
        ...

    async def look(self, caller: CountedCaller) -> CallUse: ...

    def count(self, caller: CountedCaller, costs: Mapping[str, int], totals: Mapping[str, int]) -> None:
        """Without looking at limits."""
        ...

    def go_on(self, caller: CountedCaller) -> None:
        """A call that was accepted before runs here from now on."""
        ...

    def end(self, caller: CountedCaller) -> None: ...

    def totals_here(self, key_name: str) -> CallTotals:
        """Of this process, since its start."""
        ...


class LocalCounts:
    def __init__(self, clock: Callable[[], float] = time.time, max_counters: int = _MAX_COUNTERS) -> None:
        self._clock = clock
        self._max_counters = max_counters
        self._storage = BoundedMemoryStorage(max_counters, clock)
        self._limiter = FixedWindowRateLimiter(self._storage)
        self._totals: dict[str, CallTotals] = {}
        self._began_at = clock()
        self.running: Counter[str] = Counter()  # by the id of the caller

    async def begin(self, caller: CountedCaller, costs: Mapping[str, int]) -> CallUse:
        counted = self.counted(caller)
        is_full = caller.max_running is not None and counted.num_running >= caller.max_running
        if is_full or any(not one.remaining for one in counted.windows):
            self.count(caller, {}, {"refused": 1})
            return replace(counted, is_accepted=False)
        self.accept(caller, costs)
        return self.counted(caller)

    async def look(self, caller: CountedCaller) -> CallUse:
        return self.counted(caller)

    def count(self, caller: CountedCaller, costs: Mapping[str, int], totals: Mapping[str, int]) -> None:
        for name, amount in costs.items():
            self._limiter.hit(_item(name, caller.limits[name]), caller.id, cost=amount)
        if caller.key_name:
            if len(self._totals) > self._max_counters:  # of keys that have come and gone
                self._totals.clear()
            self._totals.setdefault(caller.key_name, CallTotals(self._began_at)).add(totals)

    def go_on(self, caller: CountedCaller) -> None:
        self.running[caller.id] += 1

    def end(self, caller: CountedCaller) -> None:
        self.running[caller.id] -= 1
        if not self.running[caller.id]:
            del self.running[caller.id]

    def totals_here(self, key_name: str) -> CallTotals:
        return replace(self._totals.get(key_name) or CallTotals(self._began_at))

    def accept(self, caller: CountedCaller, costs: Mapping[str, int]) -> None:
        self.count(caller, costs, {"requests": 1})
        if caller.key_name:
            self.go_on(caller)

    def counted(self, caller: CountedCaller) -> CallUse:
        windows = []
        for name, limit in caller.windows:
            reset_at, remaining = self._limiter.get_window_stats(_item(name, limit), caller.id)
            windows.append(CallWindow(name, limit, remaining, max(0.0, reset_at - self._clock())))
        return CallUse(windows, self.running[caller.id], self.totals_here(caller.key_name))

    def learn(self, caller: CountedCaller, windows: Sequence[CallWindow]) -> None:
        """Takes over what others know."""
        for one in windows:
            key = _item(one.name, one.limit).key_for(caller.id)
            self._storage.set(key, one.limit - one.remaining, one.resets_in)


def seconds_of(window: str) -> int:
    return _item(window, 1).get_expiry()


def _item(window: str, limit: int) -> RateLimitItem:
    return _PERIODS[window.rpartition("_per_")[2]](limit, namespace=window)


class BoundedMemoryStorage(Storage):
    """The library's own storage in memory grows with the number of callers; this one forgets the least recent."""

    def __init__(self, max_counters: int, clock: Callable[[], float]) -> None:
        super().__init__()
        self._max_counters, self._clock = max_counters, clock
        self._counters: OrderedDict[str, tuple[int, float]] = OrderedDict()  # with the end of their window

    def __len__(self) -> int:
        return len(self._counters)

    @property
    def base_exceptions(self) -> type[Exception]:
        return ValueError

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        count, end = self._current(key)
        self._put(key, count + amount, end or self._clock() + expiry)
        return count + amount

    def set(self, key: str, count: int, seconds: float) -> None:
        self._put(key, count, self._clock() + seconds)

    def get(self, key: str) -> int:
        return self._current(key)[0]

    def get_expiry(self, key: str) -> float:
        return self._current(key)[1] or self._clock()

    def check(self) -> bool:
        return True

    def reset(self) -> int:
        count = len(self._counters)
        self._counters.clear()
        return count

    def clear(self, key: str) -> None:
        self._counters.pop(key, None)

    def _put(self, key: str, count: int, end: float) -> None:
        self._counters[key] = count, end
        self._counters.move_to_end(key)
        if len(self._counters) > self._max_counters:
            self._counters.popitem(last=False)

    def _current(self, key: str) -> tuple[int, float]:
        count, end = self._counters.get(key, (0, 0.0))
        return (count, end) if end > self._clock() else (0, 0.0)
