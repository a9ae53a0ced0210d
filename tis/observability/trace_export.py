"""Sends spans to a collector by OTLP over HTTP, from a thread of the SDK with a bounded queue.

A collector that does not answer costs nothing: spans are dropped, and the log has a line when that begins and ends.
"""

import logging
import os
from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from tis.observability.otel_tracer import OtelTracer
from tis.observability.spans import Tracer

_log = logging.getLogger("tis.traces")
_SDK = logging.getLogger("opentelemetry")
_MAX_REASON_CHARS = 300
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


def otlp_tracer(version: str) -> Tracer:
    """As the OTEL_* variables say. Raises ValueError if one of them cannot be used."""
    protocol = next((os.environ[name] for name in _PROTOCOLS if os.environ.get(name)), "http/protobuf")
    if protocol != "http/protobuf":
        raise ValueError(f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol}, and spans are sent by http/protobuf (port 4318)")
    return OtelTracer(BatchSpanProcessor(QuietExporter(OTLPSpanExporter())), version)


class QuietExporter(SpanExporter):
    """Says once that a collector fails, and once that it works again: the SDK has several lines for each batch."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._reason = _LastMessage()
        self._fails = False
        _SDK.handlers[:] = [self._reason]
        _SDK.propagate = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        fails = result is not SpanExportResult.SUCCESS
        if fails and not self._fails:
            _log.warning("spans are dropped until the collector takes them: %s", self._reason.text)
        elif self._fails and not fails:
            _log.warning("the collector takes spans again")
        self._fails = fails
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class _LastMessage(logging.Handler):
    """What exporter and SDK said last. It names the endpoint and the fault, which no request can influence."""

    text = "no reason is known"

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith(("opentelemetry.exporter", "opentelemetry.sdk")):
            self.text = " ".join(record.getMessage().split())[:_MAX_REASON_CHARS]
