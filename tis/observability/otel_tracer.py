"""Traces with the SDK of OpenTelemetry, which reads the OTEL_* variables. Imported where TRACES is on only.

The provider is not the global one: libraries that know OpenTelemetry would send URLs and messages of exceptions.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tis.observability.spans import PROVIDER, Attributes, AttributeValue, Span
from tis.observability.spans import SpanKind as OwnKind

# Of one span. A job of many statements, or a file of many windows, would fill the queue of the exporter.
MAX_CHILDREN = 200
_CLOSE_SECONDS = 3.0
_KINDS = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT}
_PROPAGATOR = TraceContextTextMapPropagator()


class OtelTracer:
    def __init__(self, processor: SpanProcessor, version: str) -> None:
        """OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over what is set here."""
        resource = Resource({"service.version": version}).merge(Resource.create())
        if str(resource.attributes["service.name"]).startswith("unknown_service"):
            resource = resource.merge(Resource({"service.name": PROVIDER}))
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("tis", version)

    def request_span(self, name: str, headers: Mapping[str, str], attributes: Attributes) -> Span:
        return self._begin(name, _PROPAGATOR.extract(headers, otel_context.Context()), SpanKind.SERVER, attributes)

    def resumed_span(self, name: str, traceparent: str, attributes: Attributes) -> Span:
        before = _PROPAGATOR.extract({"traceparent": traceparent}, otel_context.Context())
        first = _span_context(traceparent)
        return self._begin(name, before, SpanKind.INTERNAL, attributes, [Link(first)] if first else [])

    def _begin(
        self,
        name: str,
        parent: otel_context.Context,
        kind: SpanKind,
        attributes: Attributes,
        links: Sequence[Link] = (),
    ) -> Span:
        begun = self._tracer.start_span(name, parent, kind, _present(attributes), links)
        return _own_span(begun, self._tracer)

    def close(self) -> None:
        # The SDK waits for 30 s, and a request that hangs cannot be stopped.
        ending = threading.Thread(target=self._provider.shutdown, name="traces:close", daemon=True)
        ending.start()
        ending.join(_CLOSE_SECONDS)


class OtelSpan:
    """Used on the event loop and in threads: the SDK locks what it changes."""

    is_recorded = True

    def __init__(self, span: trace.Span, tracer: trace.Tracer) -> None:
        self._span = span
        self._tracer = tracer
        self._num_children = 0

    @cached_property
    def _context(self) -> otel_context.Context:
        """Most spans have no children and need none."""
        return trace.set_span_in_context(self._span, otel_context.Context())

    @property
    def trace_id(self) -> str:
        return trace.format_trace_id(self._span.get_span_context().trace_id)

    @property
    def traceparent(self) -> str:
        return self.outgoing_headers.get("traceparent", "")

    @property
    def outgoing_headers(self) -> Mapping[str, str]:
        headers: dict[str, str] = {}
        _PROPAGATOR.inject(headers, self._context)
        return headers

    def child(
        self,
        name: str,
        attributes: Attributes | None = None,
        *,
        kind: OwnKind = "internal",
        began_at: float | None = None,
    ) -> Span:
        self._num_children += 1
        if self._num_children > MAX_CHILDREN:
            return UnrecordedSpan(self._span, self._tracer)
        begun = self._tracer.start_span(
            name, self._context, _KINDS[kind], _present(attributes or {}), start_time=_unix_ns(began_at)
        )
        return _own_span(begun, self._tracer)

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def set(self, attributes: Attributes) -> None:
        self._span.set_attributes(_present(attributes))

    def link(self, traceparent: str) -> None:
        other = _span_context(traceparent)
        if other and other.trace_id != self._span.get_span_context().trace_id:
            self._span.add_link(other)

    def end(self, error: str | None = None, *, at: float | None = None) -> None:
        if not self._span.is_recording():
            return
        if error:
            self._span.set_attribute("error.type", error)
            self._span.set_status(Status(StatusCode.ERROR))
        if self._num_children > MAX_CHILDREN:
            self._span.set_attribute("tis.children_left_out", self._num_children - MAX_CHILDREN)
        # The clocks are read anew for each time, so an end at its beginning might come before it.
        ended = _unix_ns(at)
        self._span.end(ended if ended is None else max(ended, getattr(self._span, "start_time", None) or 0))

    @contextmanager
    def attached(self) -> Iterator[None]:
        token = otel_context.attach(self._context)
        try:
            yield
        finally:
            otel_context.detach(token)


class UnrecordedSpan(OtelSpan):
    """Left out by the sampler, or of too many: its place in the trace is known to others, and nothing is sent."""

    is_recorded = False

    def child(
        self,
        name: str,
        attributes: Attributes | None = None,
        *,
        kind: OwnKind = "internal",
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


def _own_span(span: trace.Span, tracer: trace.Tracer) -> Span:
    return OtelSpan(span, tracer) if span.is_recording() else UnrecordedSpan(span, tracer)


def _present(attributes: Attributes) -> dict[str, AttributeValue]:
    return {name: value for name, value in attributes.items() if value is not None}


def _span_context(traceparent: str) -> SpanContext | None:
    found = trace.get_current_span(_PROPAGATOR.extract({"traceparent": traceparent}, otel_context.Context()))
    context = found.get_span_context()
    return context if context.is_valid else None


def _unix_ns(monotonic: float | None) -> int | None:
    if monotonic is None:
        return None
    return time.time_ns() - round((time.monotonic() - monotonic) * 1e9)
