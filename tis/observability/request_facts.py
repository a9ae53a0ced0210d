"""What the parts of the server note about a request, for its log line and the list of recent ones.

Numbers and names, never content.
"""

import contextvars
import time
from dataclasses import dataclass, field

_MAX_ROUNDS = 16  # of one request that are kept: a list of prompts may have thousands


@dataclass(slots=True)
class RoundTimes:
    """One request of the model, which may be one of several of an answer. Times are monotonic, 0 until they come."""

    queued_at: float
    admitted_at: float = 0.0
    first_at: float = 0.0
    last_at: float = 0.0
    ended_at: float = 0.0
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    num_made: int = 0


@dataclass(slots=True)
class RequestFacts:
    """Of one HTTP request. An answer of several rounds adds up its tokens."""

    model: str | None = None  # of the catalogue
    finish: str | None = None
    error_code: str | None = None
    queue_ms: float | None = None
    first_token_ms: float | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    loading_seconds: float = 0.0  # that it waited for a model to be loaded
    began_at: float = field(default_factory=time.monotonic)
    rounds: list[RoundTimes] = field(default_factory=list)

    def add_round(self, times: RoundTimes) -> None:
        if len(self.rounds) < _MAX_ROUNDS:
            self.rounds.append(times)


_current: contextvars.ContextVar[RequestFacts | None] = contextvars.ContextVar("request_facts", default=None)


def current_facts() -> RequestFacts:
    """Of the request that this task serves; of nobody where there is none, as in an answer that a restart resumed."""
    return _current.get() or RequestFacts()


def begin_facts() -> RequestFacts:
    facts = RequestFacts()
    _current.set(facts)
    return facts
