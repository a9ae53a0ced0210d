"""When a request was queued, admitted and answered, for the metrics and for the stage of its ticket."""

import time

from tis.admission.ticket import Ticket
from tis.observability.metrics import (
    CACHED_TOKENS,
    FIRST_TOKEN_SECONDS,
    GENERATION_TOKENS,
    INTER_TOKEN_SECONDS,
    QUEUE_SECONDS,
)


class RequestTiming:
    """Its methods run on the event loop; the model's thread sets `admitted_at`."""

    def __init__(self, ticket: Ticket | None, *, is_continued: bool) -> None:
        """`is_continued`: another process made the first tokens."""
        self.admitted_at: float | None = None
        self._queued_at = time.monotonic()
        self._ticket = ticket
        self._is_continued = is_continued
        self._last_at = 0.0

    def tokens(self, count: int, now: float, num_cached: int) -> None:
        """Called with all tokens of a step, once for each choice; `now` is one time for the whole step."""
        GENERATION_TOKENS.add(count)
        if self._ticket:
            self._ticket.count_generated(count)
        if now == self._last_at:
            return
        if self._last_at:
            INTER_TOKEN_SECONDS.observe(now - self._last_at)
        else:
            self._first(now, num_cached)
        self._last_at = now

    def _first(self, now: float, num_cached: int) -> None:
        CACHED_TOKENS.inc(num_cached)
        if self.admitted_at is not None:
            QUEUE_SECONDS.observe(self.admitted_at - self._queued_at)
        if self._ticket is None:
            return
        # Later rounds of a run come after calls of MCP servers: their first tokens are not the first of the answer.
        if not self._is_continued and not self._ticket.has_answered:
            FIRST_TOKEN_SECONDS.observe(now - self._ticket.began_at)
        self._ticket.generate()
