"""Rates and budgets of callers: requests and tokens a minute, tokens a day, and requests that run at once.

A caller is an API key, or on a server without keys an address. A window begins with the first call in it. Tokens are
counted when a prompt is queued and when they are made, so a running answer may go over the budget, and is not cut.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NoReturn

from limits import RateLimitItem, RateLimitItemPerDay, RateLimitItemPerMinute
from limits.strategies import FixedWindowRateLimiter
from prometheus_client.metrics_core import CounterMetricFamily, Metric

from tis.http.api_keys import ADMIN, ANONYMOUS, ApiKey, ApiKeys, CallLimits
from tis.http.errors import CallLimitReached
from tis.http.rate_limits import BoundedMemoryStorage

_MAX_COUNTERS = 20_000  # about 6 MB
_RUNNING_RETRY_SECONDS = 1.0  # nobody knows when an answer ends
_PERIODS = ("requests_per_minute", "tokens_per_minute", "tokens_per_day")
_RUNNING = "running_requests"
_TEXTS = {
    "requests_per_minute": "{} requests per minute",
    "tokens_per_minute": "{} tokens per minute",
    "tokens_per_day": "{} tokens per day",
    _RUNNING: "{} requests at once",
}


@dataclass(frozen=True, slots=True)
class CallWindow:
    name: str
    limit: int
    remaining: int
    resets_in: float  # seconds; 0 before the first call


@dataclass(slots=True)
class CallTotals:
    """Since the start of the process."""

    requests: int = 0
    refused: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0


class CallRates:
    """Used on the event loop alone."""

    def __init__(self, defaults: CallLimits, clock: Callable[[], float] = time.time) -> None:
        self._defaults = defaults
        self._clock = clock
        self._storage = BoundedMemoryStorage(_MAX_COUNTERS, clock)
        self._limiter = FixedWindowRateLimiter(self._storage)
        self._running: Counter[str] = Counter()
        self._totals: dict[str, CallTotals] = {}
        self.began_at = clock()

    def meter(self, key: ApiKey | None, address: str) -> "CallMeter":
        name = key.name if key else ANONYMOUS
        if len(self._totals) > _MAX_COUNTERS:  # of keys that have come and gone
            self._totals.clear()
        totals = self._totals.setdefault(name, CallTotals())
        return CallMeter(self, name, key.owner if key else f"address {address}", self._limits_of(key), totals)

    def meter_of_resumed(self, name: str, keys: ApiKeys) -> "CallMeter | None":
        """Of a run of another process. None if no key has this name any more."""
        key = next((one for one in keys.all if one.name == name), None)
        return self.meter(key, "") if key or (keys.is_open and name == ANONYMOUS) else None

    def metrics(self, names: Sequence[str]) -> Iterator[Metric]:
        """Of the keys that the server has now, so the labels are a closed set."""
        for metric, text in (
            ("requests", "Calls of an API key"),
            ("refused", "Calls of an API key beyond its limits"),
            ("prompt_tokens", "Tokens of the prompts of an API key"),
            ("generated_tokens", "Tokens made for an API key"),
        ):
            family = CounterMetricFamily(f"tis_key_{metric}", text, labels=["key"])
            for name in names:
                family.add_metric([name], getattr(self._totals.get(name, CallTotals()), metric))
            yield family

    def _limits_of(self, key: ApiKey | None) -> dict[str, int]:
        if key and key.name == ADMIN:
            return {}
        limits = {}
        for one in fields(CallLimits):
            own = getattr(key.limits, one.name) if key else None
            limits[one.name] = (getattr(self._defaults, one.name) or 0) if own is None else own
        return {name: limit for name, limit in limits.items() if limit}

    # For meters.

    def window(self, name: str, limit: int, caller: str) -> CallWindow:
        item = _item(name, limit)
        reset_at, remaining = self._limiter.get_window_stats(item, caller)
        return CallWindow(name, limit, remaining, max(0.0, reset_at - self._clock()))

    def hit(self, name: str, limit: int, caller: str, amount: int) -> None:
        self._limiter.hit(_item(name, limit), caller, cost=amount)

    def num_running(self, caller: str) -> int:
        return self._running[caller]

    def change_running(self, caller: str, by: int) -> None:
        self._running[caller] += by
        if not self._running[caller]:
            del self._running[caller]


def _item(name: str, limit: int) -> RateLimitItem:
    period = RateLimitItemPerDay if name.endswith("_day") else RateLimitItemPerMinute
    return period(limit, namespace=name)


class CallMeter:
    """Of one call: begun once, ended once; its tokens are counted until its run has ended."""

    def __init__(self, rates: CallRates, name: str, caller: str, limits: Mapping[str, int], totals: CallTotals) -> None:
        self.name = name
        self.totals = totals
        self._rates = rates
        self._caller = caller
        self._limits = limits
        self._windows = [name for name in _PERIODS if name in limits]
        self._counts_tokens = [name for name in self._windows if name.startswith("tokens")]

    @property
    def windows(self) -> list[CallWindow]:
        return [self._rates.window(name, self._limits[name], self._caller) for name in self._windows]

    @property
    def max_running(self) -> int | None:
        return self._limits.get(_RUNNING)

    @property
    def num_running(self) -> int:
        return self._rates.num_running(self._caller)

    def begin(self) -> None:
        """Counts the call. Raises CallLimitReached, with the time until every window that is used up has ended."""
        full = [one for one in self.windows if not one.remaining]
        if full:
            longest = max(full, key=lambda one: one.resets_in)
            self._refuse(longest.name, longest.limit, longest.resets_in)
        if self.max_running is not None and self.num_running >= self.max_running:
            self._refuse(_RUNNING, self.max_running, _RUNNING_RETRY_SECONDS)
        if limit := self._limits.get("requests_per_minute"):
            self._rates.hit("requests_per_minute", limit, self._caller, 1)
        self.totals.requests += 1
        self._rates.change_running(self._caller, 1)

    def end(self) -> None:
        self._rates.change_running(self._caller, -1)

    def count_tokens(self, *, prompt: int = 0, generated: int = 0) -> None:
        self.totals.prompt_tokens += prompt
        self.totals.generated_tokens += generated
        for name in self._counts_tokens:
            self._rates.hit(name, self._limits[name], self._caller, prompt + generated)

    def _refuse(self, name: str, limit: int, seconds: float) -> NoReturn:
        self.totals.refused += 1
        raise CallLimitReached(_TEXTS[name].format(limit), math.ceil(seconds))
