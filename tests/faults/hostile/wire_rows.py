"""Bytes that are no good HTTP, on any path; sent over a bare socket."""

from collections.abc import Iterator

from tests.faults.hostile.row import CHAT, CLOSED, Row, get

_HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: $host\r\nAuthorization: Bearer $key\r\nConnection: close\r\n"
_CHUNKED = _HEAD + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
_ASK = b'{"model": "demo", "messages": [{"role": "user", "content": "Halo"}], "max_tokens": 1}'


def _line(target: bytes, *headers: bytes, host: bytes = b"Host: $host", method: bytes = b"GET") -> bytes:
    first = b"%s %s HTTP/1.1" % (method, target)
    return b"\r\n".join([first, *([host] if host else []), *headers, b"Connection: close", b"", b""])


_ASKED = [b"Origin: null", b"Access-Control-Request-Method: GET", b"Access-Control-Request-Headers: " + b"x," * 9000]
_PREFLIGHT = _line(b"/v1/models", *_ASKED, method=b"OPTIONS")


def rows() -> Iterator[Row]:
    for name, (statuses, raw) in _raw().items():
        method = "HEAD" if b"HEAD /" in raw else "OPTIONS" if raw.startswith(b"OPTIONS") else "GET"
        yield Row(f"wire: {name}", statuses, method, raw=raw)
    yield from _heads()
    yield from _slow()


def _raw() -> dict[str, tuple[tuple[int, ...], bytes]]:
    return {
        "two Hosts": ((400,), _line(b"/live", b"Host: $host")),
        "no Host": ((400,), _line(b"/live", host=b"")),
        "a foreign Host": ((403,), _line(b"/live", host=b"Host: evil.example")),
        "a Host of an address": ((403,), _line(b"/live", host=b"Host: 169.254.169.254")),
        "a long Host": ((400,), _line(b"/live", host=b"Host: " + b"a." * 5000)),
        "a Host with a path": ((400,), _line(b"/live", host=b"Host: localhost/x")),
        "a Host of bytes": ((400,), _line(b"/live", host=b"Host: \xff\xfe")),
        "a foreign Host in the target": ((200, 400, 403), _line(b"http://evil.example/live")),
        "10,000 headers": ((431,), _line(b"/live", *[b"X-%d: y" % n for n in range(10_000)])),
        "a header of 10 MB": ((431,), _line(b"/live", b"X: " + b"y" * 10_000_000)),
        "a name of 1 MB": ((431,), _line(b"/live", b"X" * 1_000_000 + b": y")),
        "a target of 1 MB": ((431,), _line(b"/" + b"y" * 1_000_000)),
        "a query of 31 KB": ((200,), _line(b"/live?" + b"a=b&" * 7000)),
        "a folded header": ((400,), _line(b"/live", b"X: a\r\n b")),
        "a header with zero": ((400,), _line(b"/live", b"X: a\0b")),
        "a header with a line end": ((400,), _line(b"/live", b"X: a\nSet-Cookie: b")),
        "a header with a carriage return": ((400,), _line(b"/live", b"X: a\rb")),
        "a space before the colon": ((400,), _line(b"/live", b"X : a")),
        "a header without a name": ((400,), _line(b"/live", b": a")),
        "HTTP/0.9": ((400, 505), b"GET /live\r\n\r\n"),
        "HTTP/2": ((400, 505), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)),
        "HTTP/3": ((400, 505), b"GET /live HTTP/3.0\r\nHost: $host\r\n\r\n"),
        "HTTP/1.1 of lines without returns": ((400,), b"GET /live HTTP/1.1\nHost: $host\n\n"),
        "TLS": ((400,), bytes.fromhex("16030100a5010000a10303") + b"\xff" * 200),
        "zeros": ((400, 431), bytes(100_000)),
        "noise": ((400, 431), bytes(range(1, 256)) * 400),
        "empty lines": ((431,), b"\r\n" * 200_000),
        "SSH": ((400, 505), b"SSH-2.0-OpenSSH_9.0\r\n\r\n"),
        "Redis": ((400, 505), b"*1\r\n$8\r\nFLUSHALL\r\n\r\n"),
        "CONNECT": ((400, 404, 405), b"CONNECT $host:22 HTTP/1.1\r\nHost: $host\r\n\r\n"),
        "TRACE": ((400, 405), b"TRACE /live HTTP/1.1\r\nHost: $host\r\nConnection: close\r\n\r\n"),
        "a star": ((400, 401, 404, 405), b"OPTIONS * HTTP/1.1\r\nHost: $host\r\nConnection: close\r\n\r\n"),
        "a method of 1 MB": ((400, 431), b"A" * 1_000_000 + b" / HTTP/1.1\r\nHost: $host\r\n\r\n"),
        "a small method": ((400, 405), b"get /live HTTP/1.1\r\nHost: $host\r\n\r\n"),
        "two lengths": ((400,), _HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
        "a length below zero": ((400,), _HEAD + b"Content-Length: -2\r\n\r\n{}"),
        "a length of words": ((400,), _HEAD + b"Content-Length: two\r\n\r\n{}"),
        "a length of a list": ((400,), _HEAD + b"Content-Length: 2, 2\r\n\r\n{}"),
        "a length of 2**80": ((400, 413), _HEAD + b"Content-Length: %d\r\n\r\n{}" % 2**80),
        "a length of 2**62": ((400, 413), _HEAD + b"Content-Length: %d\r\n\r\n{}" % 2**62),
        "a length and chunks": ((400,), _HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        "chunks of gzip": ((400,), _HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        "chunks in capitals": ((200, 400), _HEAD + b"Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n"),
        "chunks of chunks": ((400,), _HEAD + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
        "identity": ((400,), _HEAD + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
        "a chunk of 0x": ((400,), _CHUNKED + b"0x3\r\nabc\r\n0\r\n\r\n"),
        "a chunk below zero": ((400,), _CHUNKED + b"-3\r\nabc\r\n0\r\n\r\n"),
        "a chunk of 2**72": ((400, CLOSED), _CHUNKED + b"FFFFFFFFFFFFFFFFFF\r\nabc"),
        "a chunk of letters": ((400,), _CHUNKED + b"xyz\r\nabc\r\n0\r\n\r\n"),
        "a chunk without its end": ((400,), _CHUNKED + b"3\r\nabcX0\r\n\r\n"),
        "an extension of 1 MB": ((400, 431), _CHUNKED + b"3;" + b"x" * 1_000_000),
        "trailers of 1 MB": ((400, 431), _CHUNKED + b"0\r\nX: " + b"y" * 1_000_000),
        "100,000 chunks": ((400,), _CHUNKED + b"1\r\n[\r\n" * 100_000 + b"0\r\n\r\n"),
        "chunks of one byte": ((200,), _CHUNKED + b"".join(b"1\r\n%c\r\n" % byte for byte in _ASK) + b"0\r\n\r\n"),
        "a trailer with a key": ((200,), _CHUNKED + b"%x\r\n%s\r\n0\r\nHost: evil\r\n\r\n" % (len(_ASK), _ASK)),
        "a body of GET": ((200,), _line(b"/live", b"Content-Length: 5") + b"abcde"),
        "a body of HEAD": ((200, 405), _line(b"/live", b"Content-Length: 2").replace(b"GET", b"HEAD") + b"{}"),
        "2,000 requests at once": ((200, 400), b"GET /live HTTP/1.1\r\nHost: $host\r\n\r\n" * 2000),
        "a request in a body": ((200, 400), _HEAD + b"Content-Length: 3\r\n\r\n{}\rGET /metrics HTTP/1.1\r\n\r\n"),
        "garbage behind": ((200, 400), _line(b"/live") + b"garbage" * 100),
        "an upgrade": ((200,), _line(b"/live", b"Upgrade: websocket", b"Sec-WebSocket-Key: x")),
        "a web socket": ((400, 404, 405), _line(b"/v1/stream/x", b"Upgrade: websocket", b"Authorization: Bearer $key")),
        "expect something": ((200, 400, 417), _line(b"/live", b"Expect: miracles")),
        "a range": ((200,), _line(b"/live", b"Range: bytes=0-,0-,0-,0-,0-")),
        "95 cookies": ((200,), _line(b"/live", *[b"Cookie: a%d=b" % number for number in range(95)])),
        "a cookie of 30 KB": ((200,), _line(b"/live", b"Cookie: " + b"a=b; " * 6000)),
        "a forged request id": ((200,), _line(b"/live", b"X-Request-ID: " + b"x" * 9000)),
        "a request id of bytes": ((200, 400), _line(b"/live", b"X-Request-ID: \xff\x7f<script>")),
        "a forged address": ((200,), _line(b"/live", b"X-Forwarded-For: " + b"1.2.3.4, " * 3000)),
        "a forged host": ((200,), _line(b"/live", b"X-Forwarded-Host: evil", b"Forwarded: host=evil")),
        "an evil origin": ((200,), _line(b"/live", b"Origin: https://evil.example")),
        "a preflight of 20 KB": (
            (200, 204, 400),
            _PREFLIGHT,
        ),
    }  # fmt: skip


def _heads() -> Iterator[Row]:
    for path in (
        "/../../../etc/passwd",
        "/docs/../../etc/passwd",
        "/docs/..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/static/..%5c..%5cwin.ini",
        "//evil.example/",
        "/v1//models",
        "/V1/models",
        "/.env",
        "/.git/config",
        "/marketplace.db",
        "/sessions.db",
        "/proc/self/environ",
        "/%00",
        "/%ff",
        "/;/live",
        "/live%0d%0aSet-Cookie:x",
        "/api",
        "/v1",
        "/v1/",
        "/v1/completions",
        "/v1/embeddings",
        "/v1/files",
        "/v1/chat/completions/x",
        "/api/../v1/models",
        "/openapi.json/..",
        "/redoc",
        "/" + "a/" * 10_000,
    ):
        given = {"Authorization": "-"} if path.startswith("/v1") else {}
        yield get("no such page", (307, 400, 401, 403, 404, 405), path, headers=given)
    for path in ("/docs", "/openapi.json", "/openapi.yaml", "/health", "/ready", "/metrics", "/"):
        for method in ("POST", "DELETE", "PUT", "TRACE", "PATCH", "PROPFIND"):
            yield Row(f"{method} {path}", (400, 405), method, path, b"{}")
        yield get("a flood", (200, 307), path + "?" + "a=b&" * 5000)


def _slow() -> Iterator[Row]:
    body = b'{"model": "demo", "messages": [' + b" " * 300_000
    yield Row("slow: half a head", (CLOSED, 408), raw=b"GET /live HTTP/1.1\r\nX: ", pause_at=20)
    yield Row("slow: a head in two", (408,), raw=b"GET /live HTTP/1.1\r\nX: y\r\nHost: $host\r\n\r\n", pause_at=30)
    yield Row("slow: nothing", (CLOSED,), raw=b"\r\n", pause_at=1)
    yield Row("slow: half a body", (408,), raw=_HEAD + b"Content-Length: 500000\r\n\r\n" + body, pause_at=9000)
    yield Row("slow: half a chunk", (408,), raw=_CHUNKED + b"ffff\r\n{" + b" " * 70_000, pause_at=400)
    login = _line(b"/api/auth/login", b"Content-Length: 900", method=b"POST") + b"{"
    yield Row("slow: half a login", (408,), raw=login + b" " * 9, pause_at=len(login) + 3)
    stream = {"model": "demo", "messages": [{"role": "user", "content": "Halo"}], "stream": True, "max_tokens": 500}
    yield Row("leaves at once", (200, CLOSED), "POST", CHAT, {**stream, "ignore_eos": True}, leaves_after=1)
    yield Row("leaves a stream", (200, CLOSED), "POST", CHAT, {**stream, "ignore_eos": True}, leaves_after=2000)
    yield Row("leaves an answer", (200, 408, CLOSED), "POST", CHAT, {**stream, "stream": False}, pause_at=200)
