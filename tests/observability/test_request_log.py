import json
import logging
from collections.abc import Iterator
from io import StringIO

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.serving import served, settings_with
from tis.observability.logs import JsonFormatter


@pytest.mark.parametrize("given", ["abc-1.2_3", "x" * 128])
def test_a_request_id_is_echoed(http: httpx2.Client, given: str) -> None:
    assert http.get("/live", headers={"X-Request-ID": given}).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "two words", "x" * 129, "naughty\tid", "a:b"])
def test_an_invalid_request_id_is_replaced(http: httpx2.Client, given: str) -> None:
    assert http.get("/live", headers={"X-Request-ID": given}).headers["x-request-id"].startswith("req-")


def test_the_log_line_has_the_id_and_nothing_of_query_or_body(caplog: pytest.LogCaptureFixture) -> None:
    with served(settings_with(log_level="info")) as running, caplog.at_level(logging.INFO, "tis.requests"):
        url = f"{running.url}{CHAT}?last_event_id=&phone=0812"
        httpx2.post(url, json=said("my secret"), headers={"X-Request-ID": "seen"})
        httpx2.get(f"{running.url}/v1/forged%0Aline")
    lines = [record.getMessage() for record in caplog.records if record.name == "tis.requests"]
    assert lines[0].startswith("POST /v1/chat/completions 200 ") and lines[0].endswith(" echo 9+9 tokens stop seen")
    assert "secret" not in caplog.text and "0812" not in caplog.text
    assert lines[1].startswith("GET (none) 404 ") and "forged" not in lines[1]


@pytest.fixture
def json_log() -> Iterator[StringIO]:
    """What a server with LOG_FORMAT=json writes."""
    written = StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield written
    finally:
        root.removeHandler(handler)


def lines_of(written: StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_a_line_of_json_has_what_happened(json_log: StringIO) -> None:
    with served(settings_with(log_level="info")) as running:
        for is_streamed in (False, True):
            answer = httpx2.post(
                running.url + CHAT, json=said("Halo", stream=is_streamed), headers={"X-Request-ID": "a-1"}
            )
            assert answer.status_code == 200
        httpx2.post(running.url + CHAT, json=said("Halo", max_tokens=2))
        httpx2.post(running.url + CHAT, json=said("Halo", temperature=9))
        httpx2.get(f"{running.url}/v1/stream/budi-santoso")
    lines = [line for line in lines_of(json_log) if line["logger"] == "tis.requests"]
    whole, streamed, cut, wrong, unknown = lines
    for line in (whole, streamed):
        expected = {"id": "a-1", "method": "POST", "route": "/v1/chat/completions", "status": 200, "model": "echo"}
        expected |= {"prompt_tokens": 4, "completion_tokens": 4, "cached_tokens": 0, "finish": "stop", "error": None}
        assert {name: line[name] for name in expected} == expected
        assert 0 <= float(str(line["queue_ms"])) <= float(str(line["first_token_ms"])) <= float(str(line["ms"]))
    assert (cut["finish"], cut["completion_tokens"]) == ("length", 2)
    assert (wrong["status"], wrong["error"], wrong["model"]) == (400, "invalid_value", None)
    assert (unknown["route"], unknown["status"]) == ("/v1/stream/{session_id}", 404)


SECRET = "rahasia-4711"


def test_no_line_has_anything_that_a_client_sent(json_log: StringIO) -> None:
    keys = {"api_keys": "the-key", "log_level": "debug"}
    headers = {"Authorization": "Bearer the-key", "Cookie": SECRET, "User-Agent": SECRET, "X-Request-ID": f"!{SECRET}"}
    with served(settings_with(**keys)) as running, httpx2.Client(base_url=running.url, headers=headers) as ask:
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{SECRET}"}}
        tool = {
            "type": "function",
            "function": {"name": SECRET, "description": SECRET, "parameters": {"type": "object"}},
        }
        for fields in (
            {"user": SECRET, "metadata": {"a": SECRET}, "session_id": SECRET, "stop": [SECRET], "stream": True},
            {"tools": [tool]},
            {"model": SECRET, SECRET: SECRET},
            {"temperature": SECRET},
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": SECRET}}}},
        ):
            ask.post(CHAT, json=said(SECRET, **fields))
        ask.post(CHAT, json={"messages": [{"role": "user", "content": [image]}]})
        ask.post(CHAT, content=f'{{"messages": {SECRET}')
        ask.post("/v1/embeddings", json={"input": SECRET})
        ask.post("/ktp-ocr/", files={"image": (SECRET, SECRET.encode(), "image/jpeg")})
        ask.post("/v1/audio/transcriptions", files={"file": (f"{SECRET}.wav", SECRET.encode())}, data={"model": SECRET})
        ask.post("/api/auth/login", json={"email": f"{SECRET}@example.com", "password": SECRET})
        for path in (
            f"/{SECRET}",
            f"/v1/stream/{SECRET}?q={SECRET}",
            f"/api/products?q={SECRET}",
            f"/v1/files/{SECRET}",
        ):
            ask.get(path)
        ask.request(SECRET.upper(), "/live")
        ask.get("/v1/models", headers={"Authorization": f"Bearer {SECRET}"})
    text = json_log.getvalue()
    assert SECRET not in text and SECRET.upper() not in text and "the-key" not in text
    routes = {line.get("route") for line in lines_of(json_log)}
    assert {"/v1/chat/completions", "/v1/embeddings", "/ktp-ocr/", "/api/products", "(none)"} <= routes


def test_every_line_of_a_process_is_json(json_log: StringIO) -> None:
    logging.getLogger("tis.errors").warning("two\nlines")
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger("tis.errors").exception("a fault")
    first, second = lines_of(json_log)
    assert (first["message"], first["level"], second["message"]) == ("two\nlines", "warning", "a fault")
    assert "ValueError" in str(second["traceback"])
