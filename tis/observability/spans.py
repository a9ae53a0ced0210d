"""Spans of a trace: what the parts of the server say about the time that something took. Never content.

Without traces there is one span, `NO_SPAN`, which does nothing. `tis/observability/otel_tracer.py` makes others.
"""

import contextvars
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal, Protocol, TypeAlias

AttributeValue: TypeAlias = str | int | float | bool | Sequence[str] | None
Attributes: TypeAlias = Mapping[str, AttributeValue]  # those that are None are left out
SpanKind: TypeAlias = Literal["internal", "client"]


class Span(Protocol):
    """Times are those of `time.monotonic`; without one, now."""

    @property
    def trace_id(self) -> str:
        """32 hexadecimal digits; empty without traces."""
        ...

    @property
    def traceparent(self) -> str:
        """The header by which another process finds the span; empty without traces."""
        ...

    @property
    def is_recorded(self) -> bool:
        """False without traces, and for a trace that the sampler leaves out."""
        ...

    @property
    def outgoing_headers(self) -> Mapping[str, str]:
        """For requests to other servers, whose spans become children of this one."""
        ...

    def child(
        self,
        name: str,
        attributes: Attributes | None = None,
        *,
        kind: SpanKind = "internal",
        began_at: float | None = None,
    ) -> "Span": ...

    def rename(self, name: str) -> None: ...

    def set(self, attributes: Attributes) -> None: ...

    def link(self, traceparent: str) -> None:
        """Names a span of another trace that belongs to the same work."""
        ...

    def end(self, error: str | None = None, *, at: float | None = None) -> None:
        """The first call counts. `error`: a code or the name of a class, never a message."""
        ...

    def attached(self) -> AbstractContextManager[None]:
        """For calls of libraries that know OpenTelemetry: it is their current span for the length of the block."""
        ...


class Tracer(Protocol):
    def request_span(self, name: str, headers: Mapping[str, str], attributes: Attributes) -> Span:
        """Continues the trace of the client, if the headers name one."""
        ...

    def resumed_span(self, name: str, traceparent: str, attributes: Attributes) -> Span:
        """Of work that another process began and could not end: in the same trace, with a link to its span."""
        ...

    def close(self) -> None:
        """Sends what is not sent yet, for a few seconds. Not on the event loop."""
        ...


class NoSpan:
    trace_id = traceparent = ""
    is_recorded = False
    outgoing_headers: Mapping[str, str] = {}

    def child(
        self,
        name: str,
        attributes: Attributes | None = None,
        *,
        kind: SpanKind = "internal",
        began_at: float | None = None,
    ) -> Span:
        return self

    def rename(self, name: str) -> None:
        pass

    def set(self, attributes: Attributes) -> None:
        pass

    def link(self, traceparent: str) -> None:
        pass

    def end(self, error: str | None = None, *, at: float | None = None) -> None:
        pass

    def attached(self) -> AbstractContextManager[None]:
        return nullcontext()


class NoTracer:
    def request_span(self, name: str, headers: Mapping[str, str], attributes: Attributes) -> Span:
        return NO_SPAN

    def resumed_span(self, name: str, traceparent: str, attributes: Attributes) -> Span:
        return NO_SPAN

    def close(self) -> None:
        pass


PROVIDER = "transformers-inference-server"  # of models, in OpenTelemetry's GenAI conventions
NO_SPAN: Span = NoSpan()
NO_TRACER: Tracer = NoTracer()
_current: contextvars.ContextVar[Span] = contextvars.ContextVar("span", default=NO_SPAN)


def current_span() -> Span:
    """Of the request that this task serves, or of the part of it."""
    return _current.get()


@contextmanager
def use_span(span: Span) -> Iterator[None]:
    """Makes it the current one. Not around a `yield` of a generator: its reader would have it, too."""
    token = _current.set(span)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def ending(span: Span) -> Iterator[None]:
    """Ends it with the block, unless the block has done so."""
    try:
        yield
    except BaseException as fault:
        span.end(error_of(fault))
        raise
    span.end()


@contextmanager
def child_span(name: str, attributes: Attributes | None = None, *, kind: SpanKind = "internal") -> Iterator[Span]:
    """A child of the current span, which is the current one for the length of the block."""
    span = current_span().child(name, attributes, kind=kind)
    with use_span(span), ending(span):
        yield span


def error_of(fault: BaseException) -> str:
    """Its code, if it has one; else the name of its class. A message may quote what a user wrote."""
    code = getattr(fault, "code", None)
    return code if isinstance(code, str) else type(fault).__name__
