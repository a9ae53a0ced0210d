"""Rate limits of routes: so many requests per caller and minute or hour, counted in the memory of this process.

A window begins with a caller's first request. Refused requests do not lengthen it.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute
from limits.storage import Storage
from limits.strategies import FixedWindowRateLimiter

from tis.http.errors import RateLimitExceeded

_PERIODS: dict[str, type[RateLimitItem]] = {"minute": RateLimitItemPerMinute, "hour": RateLimitItemPerHour}
_MAX_COUNTERS = 20_000  # about 6 MB


class RateLimits:
    """`limits` maps `logins_per_minute` and the like to a number of requests; 0 means no limit."""

    def __init__(
        self,
        limits: Mapping[str, int],
        *,
        max_counters: int = _MAX_COUNTERS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._storage = BoundedMemoryStorage(max_counters, clock)
        self._limiter = FixedWindowRateLimiter(self._storage)
        self._items: dict[str, tuple[RateLimitItem, str]] = {}
        for name, count in limits.items():
            kind, _, period = name.partition("_per_")
            if count:
                self._items[kind] = _PERIODS[period](count, namespace=kind), period

    def count(self, kind: str, caller: str) -> None:
        """Counts one request. Raises RateLimitExceeded for one too many."""
        if kind not in self._items:
            return
        item, period = self._items[kind]
        if self._limiter.hit(item, caller):
            return
        seconds = max(1.0, self._storage.get_expiry(item.key_for(caller)) - self._clock())
        raise RateLimitExceeded(
            f"Too many {kind}: at most {item.amount} per {period}. Try again in {seconds:.0f} s.", retry_after=seconds
        )


class BoundedMemoryStorage(Storage):
    """The library's own storage in memory grows with the number of callers; this one forgets the least recent."""

    def __init__(self, max_counters: int, clock: Callable[[], float]) -> None:
        super().__init__()
        self._max_counters, self._clock = max_counters, clock
        self._counters: OrderedDict[str, tuple[int, float]] = OrderedDict()  # with the end of their window
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._counters)

    @property
    def base_exceptions(self) -> type[Exception]:
        return ValueError

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        with self._lock:
            count, end = self._current(key)
            self._counters[key] = count + amount, end or self._clock() + expiry
            self._counters.move_to_end(key)
            if len(self._counters) > self._max_counters:
                self._counters.popitem(last=False)
            return count + amount

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

    def _current(self, key: str) -> tuple[int, float]:
        count, end = self._counters.get(key, (0, 0.0))
        return (count, end) if end > self._clock() else (0, 0.0)
