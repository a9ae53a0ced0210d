"""Rate limits of routes: so many requests per caller and minute or hour."""

from collections.abc import Mapping

from tis.http.call_counts import CallCounts, CountedCaller, LocalCounts
from tis.http.errors import RateLimitExceeded


class RateLimits:
    """`limits` maps `logins_per_minute` and the like to a number of requests; 0 means no limit."""

    def __init__(self, limits: Mapping[str, int], counts: CallCounts | None = None) -> None:
        self._counts = counts or LocalCounts()
        self._windows = {name.partition("_per_")[0]: (name, limit) for name, limit in limits.items() if limit}

    async def count(self, kind: str, caller: str) -> None:
        """Counts one request. Raises RateLimitExceeded for one too many."""
        if kind not in self._windows:
            return
        name, limit = self._windows[kind]
        counted = await self._counts.begin(CountedCaller(f"{kind} of {caller}", {name: limit}), {name: 1})
        if counted.is_accepted:
            return
        seconds = max(1.0, counted.windows[0].resets_in)
        period = name.rpartition("_per_")[2]
        raise RateLimitExceeded(
            f"Too many {kind}: at most {limit} per {period}. Try again in {seconds:.0f} s.", retry_after=seconds
        )
