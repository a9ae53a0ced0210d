"""Errors below /v1/messages, and of its clients at /v1/models, have Anthropic's shape, whoever refuses the request."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.anthropic_api.message_requests import COUNT, MESSAGES, message_of
from tests.serving import Served, served, settings_with
from tis.anthropic_api.wire.message_answer import fold_message
from tis.errors import BadRequest
from tis.http.anthropic_errors import anthropic_error

VERSION = {"anthropic-version": "2023-06-01"}
JSON = {"Content-Type": "application/json"}


def error_of(answer: httpx2.Response, status: int) -> dict[str, Any]:
    """The error, if all around it is as clients expect it."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) == {"type", "error", "request_id"} and body["type"] == "error"
    assert body["request_id"] == answer.headers["request-id"] == answer.headers["x-request-id"]
    assert set(body["error"]) == {"type", "message", "details"} and body["error"]["message"]
    return dict(body["error"])


@pytest.fixture(scope="module")
def guarded() -> Iterator[httpx2.Client]:
    settings = settings_with(api_keys="sk-one,sk-two", max_body_mb=0.01, strict_model="1")
    with served(settings) as running, httpx2.Client(base_url=running.url) as client:
        yield client


@pytest.mark.parametrize("headers", [{"x-api-key": "sk-one"}, {"Authorization": "Bearer sk-one"}])
def test_both_ways_to_send_a_key_are_accepted(guarded: httpx2.Client, headers: dict[str, str]) -> None:
    assert guarded.post(MESSAGES, json=message_of("Halo"), headers=headers).status_code == 200
    assert guarded.get("/v1/models", headers={**headers, **VERSION}).status_code == 200


@pytest.mark.parametrize("headers", [{}, {"x-api-key": "wrong"}, {"Authorization": "Bearer wrong"}])
def test_a_wrong_key_is_a_401(guarded: httpx2.Client, headers: dict[str, str]) -> None:
    for path in (MESSAGES, COUNT, f"{MESSAGES}/batches"):
        assert error_of(guarded.post(path, json={}, headers=headers), 401)["type"] == "authentication_error"
    for path in ("/v1/models", "/v1/models/echo"):
        assert error_of(guarded.get(path, headers={**headers, **VERSION}), 401)["type"] == "authentication_error"
        assert guarded.get(path, headers=headers).json()["error"]["code"] == "invalid_api_key"


def test_an_unknown_model_is_a_404(guarded: httpx2.Client) -> None:
    key = {"x-api-key": "sk-one"}
    answer = guarded.post(MESSAGES, json=message_of("Halo", model="claude-9"), headers=key)
    error = error_of(answer, 404)
    assert error["type"] == "not_found_error" and "claude-9" in error["message"]
    assert error_of(guarded.get("/v1/models/claude-9", headers={**key, **VERSION}), 404) == error


def test_a_prompt_that_is_too_long_is_refused_in_the_words_of_anthropic(http: httpx2.Client) -> None:
    for body in (message_of("Halo" * 100_000), message_of("Halo" * 100_000, stream=True)):
        error = error_of(http.post(MESSAGES, json=body), 400)
        assert error["details"] == {"error_code": "context_length_exceeded", "param": "messages"}
        assert error["message"].startswith("prompt is too long: This model's maximum context length is ")
        with pytest.raises(BadRequest) as recorded:
            fold_message([json.dumps({"type": "error", "error": error}).encode()])
        assert anthropic_error(recorded.value) == error


def test_a_large_body_is_a_413(guarded: httpx2.Client) -> None:
    key = {"x-api-key": "sk-one"}
    large = message_of("x" * 20_000)
    assert error_of(guarded.post(MESSAGES, json=large, headers=key), 413)["type"] == "request_too_large"
    chunked = guarded.post(MESSAGES, content=iter([b'{"a": "', b"x" * 20_000]), headers={**key, **JSON})
    assert error_of(chunked, 413)["type"] == "request_too_large"


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"', b"\xff", b"{}"])
def test_a_body_that_is_none_is_a_400(http: httpx2.Client, body: bytes) -> None:
    for path in (MESSAGES, COUNT):
        assert error_of(http.post(path, content=body, headers=JSON), 400)["type"] == "invalid_request_error"


def test_unknown_paths_and_methods_are_answered_in_this_shape(http: httpx2.Client) -> None:
    assert error_of(http.get(f"{MESSAGES}/batches"), 404)["type"] == "not_found_error"
    assert error_of(http.get(MESSAGES), 405)["type"] == "invalid_request_error"
    assert error_of(http.delete(COUNT), 405)["type"] == "invalid_request_error"


@pytest.mark.parametrize("path", [MESSAGES, "/v1/models"])
def test_headers_that_are_too_large_are_refused_with_an_id(http: httpx2.Client, path: str) -> None:
    """Before any of them is read: there the path alone says whose client it is."""
    answer = http.get(path, headers={**VERSION, "x-request-id": "mine", "x-long": "x" * 40_000})
    assert answer.status_code == 431 and answer.headers["x-request-id"] == "mine"
    if path == MESSAGES:
        assert error_of(answer, 431)["details"] == {"error_code": "headers_too_large"}


def test_what_only_begins_like_this_path_has_the_shape_of_openai(http: httpx2.Client) -> None:
    assert set(http.get("/v1/messages-of-others").json()["error"]) == {"message", "type", "param", "code"}


def test_half_a_surrogate_is_a_400(http: httpx2.Client) -> None:
    body = b'{"model": "echo", "max_tokens": 5, "messages": [{"role": "user", "content": "\\ud800"}]}'
    assert error_of(http.post(MESSAGES, content=body, headers=JSON), 400)["type"] == "invalid_request_error"
    assert http.post(COUNT, content=body, headers=JSON).status_code in (200, 400)


def test_a_full_queue_is_a_429_and_a_model_that_loads_a_503() -> None:
    settings = settings_with(model_repo_id="echo?load_seconds=5", load_wait_seconds=0.05)
    with served(settings) as loading, httpx2.Client(base_url=loading.url) as http:
        answer = http.post(MESSAGES, json=message_of("Halo"))
        assert error_of(answer, 503)["type"] == "overloaded_error" and answer.headers["retry-after"]
    settings = settings_with(model_repo_id="echo?tokens_per_second=1", max_sessions=1)
    with served(settings) as full, httpx2.Client(base_url=full.url) as http:
        with http.stream("POST", MESSAGES, json=message_of("Halo" * 50, stream=True)):
            answer = http.post(MESSAGES, json=message_of("Halo", stream=True))
        assert error_of(answer, 429)["type"] == "rate_limit_error" and answer.headers["retry-after"]


def test_a_failed_answer_is_the_same_error_later(session_id: str = "failed-message") -> None:
    with (
        served(settings_with(model_repo_id="echo?no_memory_after=2")) as failing,
        httpx2.Client(base_url=failing.url) as http,
    ):
        streamed = http.post(MESSAGES, json=message_of("Halo", session_id=session_id, stream=True))
        assert '"overloaded_error"' in streamed.text
        error = error_of(http.post(MESSAGES, json={"session_id": session_id}), 503)
    assert (error["type"], error["details"]["error_code"]) == ("overloaded_error", "out_of_memory")


def test_browsers_may_read_the_id_of_a_request(http: httpx2.Client) -> None:
    answer = http.post(MESSAGES, json=message_of("Halo"), headers={"Origin": "http://localhost:5173"})
    assert "Request-Id" in answer.headers["access-control-expose-headers"].split(", ")


def test_the_router_of_models_leaves_other_clients_alone(echo_server: Served) -> None:
    with httpx2.Client(base_url=echo_server.url) as http:
        assert http.get("/v1/models").json()["object"] == "list"
        assert error_of(http.get("/v1/models/nobody", headers=VERSION), 404)["details"]["param"] == "model"
        assert http.get("/v1/models/nobody").json()["error"]["type"] == "invalid_request_error"
