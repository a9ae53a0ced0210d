"""Which JSON answers under /api are compressed, and how caches learn of it."""

from collections.abc import Iterator

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response, StreamingResponse

from tests.serving import listening, served, settings_with
from tis.http.json_compression import JsonCompressionMiddleware
from tis.http.transport.limits import TransportLimits

_LONG = [{"id": number, "name": "Laptop Gaming Rinjani"} for number in range(100)]


def test_a_list_of_the_marketplace_is_compressed_for_who_takes_it() -> None:
    with served(settings_with()) as server, httpx2.Client(base_url=server.url) as client:
        plain = client.get("/api/categories", headers={"Accept-Encoding": "identity"})
        small = client.get("/api/categories", headers={"Accept-Encoding": "br, gzip;q=0.5"})
        assert len(plain.content) > 1024 and plain.json() == small.json()
        assert "content-encoding" not in plain.headers and small.headers["content-encoding"] == "gzip"
        assert small.num_bytes_downloaded < len(plain.content) / 2
        assert int(small.headers["content-length"]) == small.num_bytes_downloaded
        for answer in (plain, small):
            assert "accept-encoding" in answer.headers["vary"].lower()
        short = client.get("/api/products/1", headers={"Accept-Encoding": "gzip"})
        assert short.status_code == 404 and "content-encoding" not in short.headers


@pytest.fixture(scope="module")
def answers() -> Iterator[httpx2.Client]:
    app = FastAPI()
    app.add_middleware(JsonCompressionMiddleware, prefix="/api/", except_for="/api/auth/")

    def add(path: str, answer: Response) -> None:
        app.add_api_route(path, lambda: answer)

    app.add_api_route("/api/register", lambda: JSONResponse(_LONG), methods=["POST"])
    for path in ("/api/goods", "/api/auth/login", "/v1/models"):
        add(path, JSONResponse(_LONG))
    add("/api/short", JSONResponse(_LONG[:1]))
    add("/api/secret", JSONResponse(_LONG, headers={"Cache-Control": "no-store"}))
    add("/api/product", JSONResponse(_LONG, headers={"ETag": '"3"'}))
    add("/api/cookie", JSONResponse(_LONG, headers={"Set-Cookie": "a=b"}))
    add("/api/text", Response("x" * 5000, media_type="text/csv"))
    app.add_api_route(
        "/api/stream", lambda: StreamingResponse(iter(["[" + " " * 2000, "]"]), media_type="application/json")
    )
    with listening(app, TransportLimits()) as url, httpx2.Client(base_url=url) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "is_compressed"),
    [
        ("/api/goods", True),
        ("/api/auth/login", False),
        ("/v1/models", False),
        ("/api/short", False),
        ("/api/secret", False),
        ("/api/product", False),
        ("/api/cookie", False),
        ("/api/text", False),
        ("/api/stream", False),
    ],
)
def test_what_is_compressed(answers: httpx2.Client, path: str, *, is_compressed: bool) -> None:
    found = answers.get(path, headers={"Accept-Encoding": "gzip"})
    assert found.status_code == 200
    assert ("content-encoding" in found.headers, "vary" in found.headers) == (is_compressed, is_compressed)
    plain = answers.get(path, headers={"Accept-Encoding": "identity"})
    assert found.content == plain.content


@pytest.mark.parametrize("accepted", ["gzip;q=0", "gzip; q=0.000", "identity", "deflate, br", ""])
def test_who_does_not_take_it_gets_it_plain(answers: httpx2.Client, accepted: str) -> None:
    found = answers.get("/api/goods", headers={"Accept-Encoding": accepted})
    assert "content-encoding" not in found.headers and found.headers["vary"] == "Accept-Encoding"
    assert found.json() == _LONG


def test_an_answer_to_a_post_is_plain_as_it_may_have_a_token(answers: httpx2.Client) -> None:
    found = answers.post("/api/register", headers={"Accept-Encoding": "gzip"})
    assert found.json() == _LONG and "content-encoding" not in found.headers
