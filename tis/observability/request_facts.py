"""What the parts of the server note about a request, for its log line: numbers and names, never content."""

import contextvars
from dataclasses import dataclass


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


_current: contextvars.ContextVar[RequestFacts | None] = contextvars.ContextVar("request_facts", default=None)


def current_facts() -> RequestFacts:
    """Of the request that this task serves; of nobody where there is none, as in an answer that a restart resumed."""
    return _current.get() or RequestFacts()


def begin_facts() -> RequestFacts:
    facts = RequestFacts()
    _current.set(facts)
    return facts
