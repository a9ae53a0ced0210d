"""Rates and budgets of callers: requests and tokens a minute, tokens a day, and requests that run at once.

A caller is an API key, or on a server without keys an address. Tokens are counted when a prompt is queued and when they
are made, so a running answer may go over the budget, and is not cut.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import NoReturn

from prometheus_client.metrics_core import CounterMetricFamily, Metric

from tis.http.api_keys import ADMIN, ANONYMOUS, ApiKey, ApiKeys, CallLimits
from tis.http.call_counts import RUNNING, CallCounts, CallUse, CountedCaller, LocalCounts
from tis.http.errors import CallLimitReached

_RUNNING_RETRY_SECONDS = 1.0  # nobody knows when an answer ends
_TEXTS = {
    "requests_per_minute": "{} requests per minute",
    "tokens_per_minute": "{} tokens per minute",
    "tokens_per_day": "{} tokens per day",
    RUNNING: "{} requests at once",
}


class CallRates:
    """Used on the event loop alone."""

    def __init__(self, defaults: CallLimits, counts: CallCounts | None = None) -> None:
        self._defaults = defaults
        self._counts = counts or LocalCounts()

    def meter(self, key: ApiKey | None, address: str) -> "CallMeter":
        id = key.owner if key else f"address {address}"
        caller = CountedCaller(id, self._limits_of(key), key.name if key else ANONYMOUS)
        return CallMeter(self._counts, caller)

    def meter_of_resumed(self, name: str, keys: ApiKeys) -> "CallMeter | None":
        """Of a run of another process. None if no key has this name any more."""
        key = next((one for one in keys.all if one.name == name), None)
        return self.meter(key, "") if key or (keys.is_open and name == ANONYMOUS) else None

    def metrics(self, names: Sequence[str]) -> Iterator[Metric]:
        """Of this process, and of the keys that the server has now, so the labels are a closed set."""
        for metric, text in (
            ("requests", "Calls of an API key"),
            ("refused", "Calls of an API key beyond its limits"),
            ("prompt_tokens", "Tokens of the prompts of an API key"),
            ("generated_tokens", "Tokens made for an API key"),
        ):
            family = CounterMetricFamily(f"tis_key_{metric}", text, labels=["key"])
            for name in names:
                family.add_metric([name], getattr(self._counts.totals_here(name), metric))
            yield family

    def _limits_of(self, key: ApiKey | None) -> dict[str, int]:
        if key and key.name == ADMIN:
            return {}
        limits = {}
        for one in fields(CallLimits):
            own = getattr(key.limits, one.name) if key else None
            limits[one.name] = (getattr(self._defaults, one.name) or 0) if own is None else own
        return {name: limit for name, limit in limits.items() if limit}


class CallMeter:
    """Of one call: begun once, ended once; its tokens are counted until its run has ended."""

    def __init__(self, counts: CallCounts, caller: CountedCaller) -> None:
        self._counts = counts
        self._caller = caller
        self._counts_tokens = [name for name, _ in caller.windows if name.startswith("tokens")]

    @property
    def name(self) -> str:
        return self._caller.key_name

    @property
    def has_windows(self) -> bool:
        return bool(self._caller.windows)

    @property
    def max_running(self) -> int | None:
        return self._caller.max_running

    async def look(self) -> CallUse:
        return await self._counts.look(self._caller)

    async def begin(self) -> None:
        """Counts the call. Raises CallLimitReached, with the time until every window that is used up has ended."""
        costs = {name: 1 for name, _ in self._caller.windows if name.startswith("requests")}
        counted = await self._counts.begin(self._caller, costs)
        if counted.is_accepted:
            return
        full = [one for one in counted.windows if not one.remaining]
        if full:
            longest = max(full, key=lambda one: one.resets_in)
            _refuse(longest.name, longest.limit, longest.resets_in)
        _refuse(RUNNING, self.max_running or 0, _RUNNING_RETRY_SECONDS)

    def go_on(self) -> None:
        self._counts.go_on(self._caller)

    def end(self) -> None:
        self._counts.end(self._caller)

    def count_tokens(self, *, prompt: int = 0, generated: int = 0) -> None:
        costs: Mapping[str, int] = dict.fromkeys(self._counts_tokens, prompt + generated)
        self._counts.count(self._caller, costs, {"prompt_tokens": prompt, "generated_tokens": generated})


def _refuse(name: str, limit: int, seconds: float) -> NoReturn:
    raise CallLimitReached(_TEXTS[name].format(limit), max(1, math.ceil(seconds)))
