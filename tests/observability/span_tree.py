"""A tracer whose spans a test reads, and servers with it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.serving import Served, served, settings_with
from tests.test_status import until
from tis.observability.otel_tracer import OtelTracer


class SeenSpans:
    """What a server has sent. A span ends after its response, so each look waits for what it names."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracer = OtelTracer(SimpleSpanProcessor(self._exporter), "1")

    @property
    def all(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()

    def clear(self) -> None:
        self._exporter.clear()

    def named(self, name: str) -> ReadableSpan:
        """The only one."""
        until(lambda: any(span.name == name for span in self.all))
        [found] = [span for span in self.all if span.name == name]
        return found

    def children(self, parent: ReadableSpan) -> list[ReadableSpan]:
        """In the order in which they began."""
        found = [span for span in self.all if span.parent and span.parent.span_id == id_of(parent)]
        return sorted(found, key=lambda span: (span.start_time or 0, span.end_time or 0))

    def tree(self, parent: ReadableSpan) -> Any:
        """Names, nested: {"POST /v1/...": [{"chat echo": [...]}, "prepare"]}."""
        below = [self.tree(child) for child in self.children(parent)]
        return {parent.name: below} if below else parent.name


def id_of(span: ReadableSpan) -> int:
    assert span.context
    return int(span.context.span_id)


def trace_of(span: ReadableSpan) -> int:
    assert span.context
    return int(span.context.trace_id)


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@contextmanager
def traced_server(**settings: object) -> Iterator[tuple[Served, SeenSpans]]:
    seen = SeenSpans()
    with served(settings_with(**settings), tracer=seen.tracer) as running:
        yield running, seen
