import json
import logging

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.serving import served, settings_with
from tis.errors import BadRequest, QueueFull, error_with_code
from tis.media.errors import BadMedia

SECRET = "what the user wrote"
KEYS = {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nowhere", 404, "unknown_url"),
        ("GET", "/v1", 404, "unknown_url"),
        ("DELETE", "/v1/models", 405, "method_not_allowed"),
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("GET", "/v1/models/nobody", 404, "model_not_found"),
    ],
)
def test_openai_routes_answer_errors_in_openai_shape(
    http: httpx2.Client, method: str, path: str, status: int, code: str
) -> None:
    answer = http.request(method, path)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], set(error)) == (status, code, KEYS)


def test_other_routes_answer_errors_as_detail(http: httpx2.Client) -> None:
    answer = http.get("/nowhere")
    assert answer.status_code == 404 and list(answer.json()) == ["detail"]


def test_a_recorded_error_is_restored_with_its_status() -> None:
    for error in (BadMedia("too large", code="video_too_large", param="input.0"), BadRequest("no"), QueueFull("full")):
        restored = error_with_code(error.message, error.type, error.code, error.param)
        assert (restored.status, restored.type, restored.code, restored.param) == (
            error.status,
            error.type,
            error.code,
            error.param,
        )


def test_an_unexpected_exception_reveals_only_the_request_id(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise KeyError(SECRET)

    with served(settings_with()) as broken, caplog.at_level(logging.ERROR, "tis.errors"):
        monkeypatch.setattr("tis.openai_api.wire.begin.chat_prompt", fail)
        answer = httpx2.post(broken.url + CHAT, json=said("Halo"), headers={"X-Request-ID": "my-id"})
    assert answer.status_code == 500 and answer.headers["x-request-id"] == "my-id"
    assert set(answer.json()["error"]) == KEYS and "my-id" in answer.json()["error"]["message"]
    assert SECRET not in answer.text + caplog.text
    assert "KeyError" in caplog.text and "my-id" in caplog.text


def test_an_exception_while_recording_reaches_the_client_as_an_error_block(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError(SECRET)

    monkeypatch.setattr("tis.openai_api.wire.chat_writer.ChatWriter.part", fail)
    with served(settings_with()) as broken:
        answer = httpx2.post(broken.url + CHAT, json=said("Halo", stream=True))
    last = answer.text.strip().split("data: ")[-1]
    assert json.loads(last)["error"]["code"] == "internal_error" and "[DONE]" not in answer.text
    assert SECRET not in answer.text


def test_a_body_over_max_body_mb_is_refused_in_the_shape_of_its_route(caplog: pytest.LogCaptureFixture) -> None:
    """Whether its size is announced or not, and whatever else the route had to say."""
    too_large = b" " * 2**21
    with served(settings_with(max_body_mb=1)) as running, httpx2.Client(base_url=running.url) as client:
        for body in (too_large, iter([too_large])):
            answer = client.post(CHAT, content=body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")
            assert answer.headers["x-request-id"]
        for path in ("/api/auth/login", "/api/suppliers/1/products/import", "/nowhere"):
            answer = client.post(path, content=too_large)
            assert answer.status_code == 413 and list(answer.json()) == ["detail"]
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
