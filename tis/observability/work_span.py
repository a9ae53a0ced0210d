"""The span of an answer that is recorded: it may outlive the request that began it, and even the process."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from tis.observability.spans import NO_SPAN, Attributes, Span, Tracer, current_span, error_of, use_span


class WorkSpan:
    def __init__(self, name: str, attributes: Attributes, traceparent: str = "") -> None:
        """`traceparent`: of the span in the process that began the work, if that was another one."""
        self.span: Span = NO_SPAN
        self._name = name
        self._attributes = attributes
        self._first_traceparent = traceparent

    @property
    def traceparent(self) -> str:
        return self.span.traceparent

    def begin(self) -> None:
        """In the task of the request."""
        self.span = current_span().child(self._name, self._attributes)

    def resume(self, tracer: Tracer) -> None:
        """What another process began. Called again where the work waits for the model and is tried once more."""
        if self.span is NO_SPAN:
            self.span = tracer.resumed_span(self._name, self._first_traceparent, self._attributes)
            self.span.set({"tis.run.is_resumed": True})

    @contextmanager
    def inside(self) -> Iterator[None]:
        with use_span(self.span):
            yield

    def end(self, fault: BaseException | None = None) -> None:
        self.span.end(reason_of(fault))


def reason_of(fault: BaseException | None) -> str | None:
    if isinstance(fault, asyncio.CancelledError | GeneratorExit):
        return "interrupted"  # this process ends, and another one may go on
    return error_of(fault) if fault else None
