"""When a request was queued, admitted and answered: for the metrics, its log line and the stage of its ticket."""

import time

from tis.admission.ticket import Ticket
from tis.observability.model_metrics import (
    ANSWER_LENGTHS,
    ANSWER_SECONDS,
    CACHE_HITS,
    CACHE_QUERIES,
    DECODE_SECONDS,
    FINISHED,
    FIRST_TOKEN_SECONDS,
    GENERATION_TOKENS,
    INFERENCE_SECONDS,
    INTER_TOKEN_SECONDS,
    PREFILL_SECONDS,
    PROMPT_LENGTHS,
    PROMPT_TOKENS,
    QUEUE_SECONDS,
    TIME_PER_TOKEN_SECONDS,
    FinishedReason,
)
from tis.observability.request_facts import RoundTimes, current_facts
from tis.observability.spans import AttributeValue, current_span


class RequestTiming:
    """Its methods run on the event loop; the model's thread sets `admitted_at`."""

    def __init__(self, ticket: Ticket | None, *, is_continued: bool) -> None:
        """`is_continued`: another process made the first tokens."""
        self.admitted_at: float | None = None
        self.model_name = ""
        self._times = RoundTimes(time.monotonic())
        self._ticket = ticket
        self._is_continued = is_continued
        self._facts = current_facts()
        self._span = current_span()

    def submitted(self, model_name: str, num_prompt_tokens: int = 0) -> None:
        self.model_name = self._facts.model = model_name
        self._times.num_prompt_tokens = num_prompt_tokens
        self._facts.add_round(self._times)
        self._facts.prompt_tokens += num_prompt_tokens
        if not self._is_continued and num_prompt_tokens:
            PROMPT_TOKENS.add(num_prompt_tokens, model_name)

    def more_of_prompt(self, num_tokens: int) -> None:
        """It was submitted with an estimate, which was too low by so many."""
        if not num_tokens:
            return
        self._times.num_prompt_tokens += num_tokens
        self._facts.prompt_tokens += num_tokens
        PROMPT_TOKENS.add(num_tokens, self.model_name)
        if self._ticket:
            self._ticket.count_prompt(num_tokens)

    def tokens(self, count: int, now: float, num_cached: int) -> None:
        """Called with all tokens of a step, once for each choice; `now` is one time for the whole step."""
        GENERATION_TOKENS.add(count, self.model_name)
        self._times.num_made += count
        self._facts.completion_tokens += count
        if self._ticket:
            self._ticket.count_generated(count)
        if now == self._times.last_at:
            return
        if self._times.last_at:
            INTER_TOKEN_SECONDS.observe(now - self._times.last_at, self.model_name)
        else:
            self._first(now, num_cached)
        self._times.last_at = now

    def _first(self, now: float, num_cached: int) -> None:
        self._times.first_at = now
        self._times.num_cached_tokens = num_cached
        self._facts.cached_tokens += num_cached
        CACHE_QUERIES.add(self._times.num_prompt_tokens, self.model_name)
        CACHE_HITS.add(num_cached, self.model_name)
        if self.admitted_at is not None:
            self._times.admitted_at = self.admitted_at
            self._note_queue(self.admitted_at - self._times.queued_at)
        if self._ticket is None:
            return
        # Later rounds of a run come after calls of MCP servers: their first tokens are not the first of the answer.
        if not self._is_continued and not self._ticket.has_answered:
            FIRST_TOKEN_SECONDS.labels(self.model_name).observe(now - self._ticket.began_at)
            self._facts.first_token_ms = (now - self._ticket.began_at) * 1000
        self._ticket.generate()

    def _note_queue(self, seconds: float) -> None:
        QUEUE_SECONDS.labels(self.model_name).observe(seconds)
        self._facts.queue_ms = (self._facts.queue_ms or 0.0) + seconds * 1000

    def finished(self, reason: FinishedReason, error_code: str | None = None, *, is_last: bool = True) -> None:
        """Called for each choice; `is_last`: all others have finished before."""
        FINISHED.labels(self.model_name, reason).inc()
        self._facts.finish = reason
        self._facts.error_code = error_code or self._facts.error_code
        if is_last:
            self._times.admitted_at = self.admitted_at or 0.0
            self._times.ended_at = time.monotonic()
        if is_last and reason in ("stop", "length", "content_filter") and not self._is_continued:
            self._observe_all(time.monotonic())
        if is_last and self._span.is_recorded:
            self._make_spans(time.monotonic())

    def _observe_all(self, now: float) -> None:
        model, times = self.model_name, self._times
        began_at = self._ticket.began_at if self._ticket else times.queued_at
        ANSWER_SECONDS.labels(model).observe(now - began_at)
        PROMPT_LENGTHS.labels(model).observe(times.num_prompt_tokens)
        ANSWER_LENGTHS.labels(model).observe(times.num_made)
        if self.admitted_at is not None:
            INFERENCE_SECONDS.labels(model).observe(now - self.admitted_at)
        if not times.first_at:
            return
        if self.admitted_at is not None:
            PREFILL_SECONDS.labels(model).observe(times.first_at - self.admitted_at)
        seconds = times.last_at - times.first_at
        DECODE_SECONDS.labels(model).observe(seconds)
        if times.num_made > 1:
            TIME_PER_TOKEN_SECONDS.labels(model).observe(seconds / (times.num_made - 1))

    def _make_spans(self, now: float) -> None:
        """All at once, when the times are known: nothing of it runs at a token."""
        times = self._times
        model: dict[str, AttributeValue] = {"tis.model": self.model_name}
        admitted_at = now if self.admitted_at is None else self.admitted_at
        self._span.child("queue", model, began_at=times.queued_at).end(at=admitted_at)
        if self.admitted_at is None:
            return
        prompt = {**model, "tis.prompt_tokens": times.num_prompt_tokens}
        if not (times.first_at and times.num_prompt_tokens):  # made at once: vectors, windows, sentences
            self._span.child("compute", prompt, began_at=admitted_at).end(at=now)
            return
        self._span.child("prefill", prompt, began_at=admitted_at).end(at=times.first_at)
        decoded = {**model, "tis.completion_tokens": times.num_made}
        self._span.child("decode", decoded, began_at=times.first_at).end(at=times.last_at)
