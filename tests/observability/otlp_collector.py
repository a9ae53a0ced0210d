"""A collector in a thread: takes spans by OTLP over HTTP, as an OpenTelemetry Collector or Jaeger does."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.test_status import until


@dataclass
class OtlpCollector:
    url: str = ""
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    status: int = 200

    @property
    def resources(self) -> list[dict[str, Any]]:
        return [_plain(batch.resource.attributes) for batch in self._batches()]

    @property
    def spans(self) -> list[Any]:
        return [span for batch in self._batches() for scope in batch.scope_spans for span in scope.spans]

    def _batches(self) -> Iterator[Any]:
        for body in list(self.bodies):
            yield from ExportTraceServiceRequest.FromString(body).resource_spans

    def named(self, name: str) -> Any:
        """The only one; see `has` where there may be more."""
        until(lambda: self.has(name))
        [found] = [span for span in self.spans if span.name == name]
        return found

    def has(self, name: str) -> bool:
        return any(span.name == name for span in self.spans)


def attributes_in(span: Any) -> dict[str, Any]:
    return _plain(span.attributes)


def _plain(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@contextmanager
def otlp_collector(port: int = 0) -> Iterator[OtlpCollector]:
    collector = OtlpCollector()

    class OtlpHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if collector.status == 200:
                collector.headers.append({name.lower(): value for name, value in self.headers.items()})
                collector.paths.append(self.path)
                collector.bodies.append(body)
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), OtlpHandler) as server:
        collector.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
