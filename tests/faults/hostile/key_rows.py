"""Keys that are none, keys that may not, and keys that have had enough; and pages, which a browser asks for."""

import base64
from collections.abc import Iterator

from tests.faults.hostile.row import CHAT, HELLO, MESSAGES, RESPONSES, Row

_NO_KEYS = {
    "none": "-",
    "no scheme": "$none",
    "only the scheme": "Bearer",
    "an empty key": "Bearer ",
    "another scheme": "Digest username=eve",
    "a key of 30 KB": "Bearer " + "x" * 30_000,
    "a key of bytes": "Bearer \xff\xfe\x80",
    "two keys": "Bearer a, Bearer b",
    "a wrong key": "Bearer key-of-ev",
    "the digest of a key": "Bearer $digest",
    "the name of a key": "Bearer eve",
    "an expired key": "Bearer $expired",
    "a pattern": "Bearer *",
    "an order": "Bearer ' OR '1'='1",
    "a token of the market": "Bearer eyJhbGciOiJub25lIn0.e30.",
}
_PATHS = {
    "GET": ("/v1/models", "/v1/usage", "/nowhere"),
    "POST": (CHAT, RESPONSES, MESSAGES, "/ollama/api/chat", "/ktp-ocr/"),
}
_PAGES = ("/docs", "/docs/swagger-ui.css", "/openapi.json", "/openapi.yaml", "/metrics")
_LOGINS = {
    "a login of nobody": base64.b64encode(b"eve:wrong").decode(),
    "a login that is no base64": "!!!",
    "a login without a colon": base64.b64encode(b"eve").decode(),
    "a login of bytes": base64.b64encode(bytes(range(256)) * 90).decode(),
    "an empty login": "",
}


def rows() -> Iterator[Row]:
    for name, value in _NO_KEYS.items():
        for method, paths in _PATHS.items():
            for path in paths:
                body = {"model": "demo", "messages": [HELLO], "max_tokens": 1} if method == "POST" else None
                yield Row(f"key, {name}: {path}", (401,), method, path, body, headers={"Authorization": value})
    yield Row("key in a query", (401,), "GET", "/v1/models?api_key=$narrow&key=$narrow", headers={"Authorization": "-"})
    yield Row("key twice, one of them wrong", (200, 401), "GET", "/v1/models", headers={"x-api-key": "$none"})
    yield from _pages()
    yield from _narrow()


def _pages() -> Iterator[Row]:
    for path in _PAGES:
        yield Row(f"page {path}: a stranger", (401,), "GET", path, headers={"Authorization": "-"})
        yield Row(f"page {path}: a HEAD of a stranger", (401,), "HEAD", path, headers={"Authorization": "-"})
        for name, login in _LOGINS.items():
            yield Row(f"page {path}: {name}", (401,), "GET", path, headers={"Authorization": f"Basic {login}"})
        for evil in ("/%00", "/..%2f..%2fkeys.yaml", "/" + "x" * 600, "%0d%0aX: y"):
            yield Row(f"page {path}: behind it {evil[:20]}", (307, 400, 401, 404, 405, 422), "GET", path + evil)
        tags = {"If-None-Match": '"' + "x," * 9000 + '"', "Range": "bytes=-1,0-,5-2", "Accept": "\x7f" * 500}
        yield Row(f"page {path}: odd headers", (200, 304, 400), "GET", path, headers=tags)


def _narrow() -> Iterator[Row]:
    """A key for the paced model alone, with one request a minute: a refusal is one in the shape of the API."""
    narrow = {"Authorization": "Bearer $narrow"}
    for path, field in ((CHAT, "max_tokens"), (MESSAGES, "max_tokens"), (RESPONSES, "max_output_tokens")):
        given = {"input": "Halo"} if path == RESPONSES else {"messages": [HELLO]}
        for model, statuses in (
            ("demo", (403, 429)),
            ("paced", (200, 429)),
            ("paced", (200, 429)),
            ("nobody's", (403, 404, 429)),
        ):
            yield Row(
                f"narrow key, {model}: {path}",
                statuses,
                "POST",
                path,
                {"model": model, field: 16, **given},
                headers=narrow,
            )
    yield Row("narrow key: a card", (403, 429), "POST", "/ktp-ocr/", b"", headers=narrow)
    yield Row("narrow key: a chat of Ollama", (403, 429), "POST", "/ollama/api/chat", {"model": "demo"}, headers=narrow)
    yield Row("narrow key: unloads", (401, 403, 429), "POST", "/v1/models/paced/unload", b"", headers=narrow)
    for _ in range(3):
        yield Row("narrow key: its usage", (200,), "GET", "/v1/usage", headers=narrow)
