"""Refusals: the response, the log line and the metric of what is refused before it reaches the app."""

import logging
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

import httptools
from starlette.responses import JSONResponse

from tis.errors import BadRequest, ServiceError
from tis.http.anthropic_errors import REQUEST_ID_HEADER
from tis.http.error_handlers import error_body, error_response
from tis.http.errors import HeadersTooLarge, HttpVersionNotSupported, RequestTimeout
from tis.observability.metrics import TRANSPORT_REFUSALS
from tis.observability.request_log import LINE, UNROUTED, accepted_or_new_id, known_method

log = logging.getLogger("tis.requests")

HeaderPairs = Sequence[tuple[bytes, bytes]]


def headers_too_large(max_bytes: int) -> ServiceError:
    return HeadersTooLarge(f"The request line and the headers are longer than {max_bytes:,} bytes (MAX_HEADER_KB).")


def too_many_headers(max_headers: int) -> ServiceError:
    return HeadersTooLarge(f"The request has more than {max_headers} headers (MAX_HEADERS).", code="too_many_headers")


def headers_too_slow(seconds: float) -> ServiceError:
    return RequestTimeout(f"The headers did not arrive within {seconds:g} s (HEADER_TIMEOUT_SECONDS).")


def wrong_version() -> ServiceError:
    return HttpVersionNotSupported("The server speaks HTTP/1.1 and HTTP/1.0.")


def invalid_host() -> ServiceError:
    return BadRequest("The request must have exactly one valid Host header.", code="invalid_host")


def unknown_coding() -> ServiceError:
    return BadRequest("The only Transfer-Encoding that the server knows is chunked.", code="invalid_http")


def too_many_at_once(max_pipelined: int) -> ServiceError:
    return BadRequest(
        f"More than {max_pipelined} requests were sent before the first was answered.", code="too_many_pipelined"
    )


def unreadable(error: httptools.HttpParserError, method: bytes) -> ServiceError:
    """The parser's own messages are fixed texts, but for those of invalid URLs, which are causes of this error."""
    if method == b"PRI" or "HTTP version" in str(error):
        return wrong_version()
    return BadRequest("The request is not valid HTTP/1.1.", code="invalid_http")


class Refusal:
    """A response without the app, in the shape of the API that the URL names; in both where there is no URL yet."""

    def __init__(self, error: ServiceError, method: bytes, url: bytes, root_path: str, headers: HeaderPairs) -> None:
        self._error = error
        self._method = method.decode()
        self._path = _path_of(url)
        self._root_path = root_path
        client_id = dict(headers).get(b"x-request-id", b"").decode("latin-1")
        self._request_id = accepted_or_new_id(client_id)

    @property
    def status(self) -> int:
        return self._error.status

    def record(self) -> None:
        TRANSPORT_REFUSALS.labels(self._error.code).inc()
        method = known_method(self._method)
        line = {
            "id": self._request_id,
            "method": method,
            "route": UNROUTED,
            "status": self.status,
            "error": self._error.code,
        }
        log.info("%s", " ".join(map(str, [*list(line.values())[1:], self._request_id])), extra={LINE: line})

    def to_bytes(self, status_line: bytes, default_headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        """The response closes the connection: where its end of the request is, nobody knows."""
        response = self._response()
        response.headers["X-Request-ID"] = self._request_id
        response.headers["Connection"] = "close"
        lines = [b"%s: %s\r\n" % pair for pair in [*default_headers, *response.raw_headers]]
        return b"".join([status_line, *lines, b"\r\n", bytes(response.body)])

    def _response(self) -> JSONResponse:
        if self._path:
            path = self._root_path + self._path
            scope = {"type": "http", "path": path, "root_path": self._root_path, REQUEST_ID_HEADER: self._request_id}
            return error_response(scope, self._error)
        body = {**error_body(self._error), "detail": self._error.message}
        return JSONResponse(body, status_code=self._error.status, headers=self._error.headers)


def _path_of(url: bytes) -> str:
    """Also of a URL of which only the beginning has arrived."""
    if not url.startswith(b"/"):
        try:
            url = httptools.parse_url(url).path or b""
        except httptools.HttpParserInvalidURLError:
            url = b""
    path = unquote(url.partition(b"?")[0].decode("latin-1"))
    return path if path.startswith("/") else ""
