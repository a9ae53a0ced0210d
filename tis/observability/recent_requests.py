"""The newest requests that ended, with the times of their phases: numbers and names, never content."""

import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tis.observability.request_facts import RequestFacts, RoundTimes

MAX_RECENT = 100


@dataclass(frozen=True, slots=True)
class RecentRequest:
    """`facts` may still change: an answer goes on when its client has left."""

    line: Mapping[str, Any]
    facts: RequestFacts
    owner: str
    arrived_at: float  # as time.time()
    seconds: float

    def to_json(self, *, with_key: bool) -> dict[str, Any]:
        """Times are seconds since the request arrived, null for what did not happen; `loading` is a duration."""
        facts, line = self.facts, self.line
        return {
            "id": line["id"],
            "arrived_at": round(self.arrived_at, 3),
            "method": line["method"],
            "route": line["route"],
            "status": line["status"],
            "model": facts.model,
            **({"key": line["key"]} if with_key else {}),
            "finish": facts.finish,
            "error": facts.error_code,
            "seconds": round(self.seconds, 4),
            "loading": round(facts.loading_seconds, 4),
            "prompt_tokens": facts.prompt_tokens,
            "cached_tokens": facts.cached_tokens,
            "completion_tokens": facts.completion_tokens,
            "rounds": [_round(times, facts.began_at) for times in list(facts.rounds)],
        }


class RecentRequests:
    """Used on the event loop alone."""

    def __init__(self) -> None:
        self._kept: deque[RecentRequest] = deque(maxlen=MAX_RECENT)

    def add(self, line: Mapping[str, Any], facts: RequestFacts, owner: str | None, seconds: float) -> None:
        """Keeps what asked a model, and what was refused before it could."""
        is_refused = facts.error_code is not None and line["method"] == "POST"
        if owner is not None and (facts.model is not None or is_refused):
            self._kept.append(RecentRequest(line, facts, owner, time.time() - seconds, seconds))

    def newest(self, owner: str | None = None) -> Iterator[RecentRequest]:
        """The newest first; those of all owners without one."""
        return (one for one in reversed(list(self._kept)) if owner in (None, one.owner))


def _round(times: RoundTimes, began_at: float) -> dict[str, float | int | None]:
    def since(moment: float) -> float | None:
        return round(max(0.0, moment - began_at), 4) if moment else None

    return {
        "queued": since(times.queued_at),
        "started": since(times.admitted_at),
        "first_token": since(times.first_at),
        "last_token": since(times.last_at),
        "ended": since(times.ended_at),
        "prompt_tokens": times.num_prompt_tokens,
        "cached_tokens": times.num_cached_tokens,
        "completion_tokens": times.num_made,
    }
