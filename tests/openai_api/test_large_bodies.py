"""Large bodies mean the same as small ones: repeated requests, pictures, limits and errors."""

import hashlib
import json
from typing import Any

import httpx2
import pytest

from tests.openai_api.media_requests import data_uri, picture_file
from tests.serving import served, settings_with
from tis.openai_api.wire.chat_request import ChatRequest

MIB = 2**20
JSON = {"Content-Type": "application/json"}
CHAT = "/v1/chat/completions"


def large_chat(**more: Any) -> dict[str, Any]:
    earlier = [{"role": "user", "content": "é one"}, {"role": "assistant", "content": "some text " * 30_000}]
    return {"messages": [*earlier, {"role": "user", "content": "Halo"}], **more}


def post(http: httpx2.Client, body: dict[str, Any], path: str = CHAT, **form: Any) -> httpx2.Response:
    return http.post(path, content=json.dumps(body, **form).encode(), headers=JSON)


def test_a_repeated_request_attaches_however_its_json_is_written(http: httpx2.Client) -> None:
    body = large_chat(session_id="large-and-repeated", temperature=0)
    first = post(http, body, ensure_ascii=False)
    again = post(http, dict(reversed(body.items())), ensure_ascii=True, indent=1)
    assert first.json()["choices"][0]["message"]["content"] == "Halo"
    assert again.json()["id"] == first.json()["id"]
    streamed = post(http, body | {"stream": True, "stream_options": {"include_usage": True}})
    assert first.json()["id"] in streamed.text


def test_the_fingerprint_is_of_the_meaning_and_stays_so() -> None:
    """Stored sessions are found by it."""
    picture, text = "data:image/png;base64," + "A" * (3 * MIB), "words " * 1000
    parts = [{"type": "image_url", "image_url": {"url": picture}}, {"type": "text", "text": "é" * 5000}]
    body = {"messages": [{"role": "user", "content": parts}, {"role": "user", "content": text}], "seed": 1}
    digest = {name: {"sha256": hashlib.sha256(one.encode()).hexdigest()} for name, one in (("p", picture), ("t", text))}
    digested = [{"image_url": {"url": digest["p"]}, "type": "image_url"}, {"text": "é" * 5000, "type": "text"}]
    messages = [{"content": digested, "role": "user"}, {"content": digest["t"], "role": "user"}]
    canonical = json.dumps({"messages": messages, "seed": 1}, ensure_ascii=False, separators=(",", ":"))
    expected = hashlib.sha256(canonical.encode()).hexdigest()
    assert ChatRequest.model_validate(body).fingerprint() == expected
    assert ChatRequest.model_validate(ChatRequest.prepare_large(body)).fingerprint() == expected


@pytest.mark.parametrize("escape", [False, True])
def test_a_picture_arrives_as_it_was_sent(http: httpx2.Client, escape: bool) -> None:
    picture = data_uri(_noise())
    body = json.dumps({"items": [{"role": "user", "content": [{"type": "input_image", "image_url": picture}]}]})
    content = body.replace("/", "\\/").replace("+", "\\u002B") if escape else body
    made = http.post("/v1/conversations", content=content, headers=JSON)
    listed = http.get(f"/v1/conversations/{made.json()['id']}/items?include=message.input_image.image_url").json()
    assert listed["data"][0]["content"][0]["image_url"] == picture


def test_long_arguments_named_like_a_picture_stay_as_they_are(http: httpx2.Client) -> None:
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": json.dumps({"url": "x" * 9000})}
    listed = {
        "type": "mcp_list_tools",
        "server_label": "s",
        "tools": [{"name": "f", "input_schema": {"url": "y" * 9000}}],
    }
    made = http.post("/v1/conversations", json={"items": [item, listed]}).json()
    items = http.get(f"/v1/conversations/{made['id']}/items?order=asc").json()["data"]
    assert items[0]["arguments"] == item["arguments"]
    assert items[1]["tools"][0]["input_schema"] == {"url": "y" * 9000}


@pytest.mark.parametrize(
    ("number", "wrong", "param"),
    [
        (0, {"role": "nobody", "content": "x"}, "messages.0.role"),
        (3001, {"role": "user", "content": 5}, "messages.3001.content"),
        (4999, {"content": "x"}, "messages.4999.role"),
    ],
)
def test_the_error_of_one_message_among_thousands_names_it(
    http: httpx2.Client, number: int, wrong: dict[str, Any], param: str
) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "x"}] * 5000
    messages[number] = wrong
    answer = post(http, {"messages": messages})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    "body", [b"[" + b"1," * 3000 + b"1]", b'{"a": "' + b"x" * 300_000, b'"' + b"x" * 300_000 + b'"']
)
def test_a_large_body_that_is_no_request_is_a_400(http: httpx2.Client, body: bytes) -> None:
    answer = http.post(CHAT, content=body, headers=JSON)
    assert answer.status_code == 400 and answer.json()["error"]["type"] == "invalid_request_error"


def test_the_limit_of_text_is_a_setting() -> None:
    with served(settings_with(max_text_mb=0.01)) as running, httpx2.Client(base_url=running.url) as client:
        answer = post(client, {"messages": [{"role": "user", "content": "x" * 20_000}]})
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "text_too_large")
        assert "0.01 MiB" in answer.json()["error"]["message"]
        assert post(client, {"messages": [{"role": "user", "content": "x" * 5_000}], "max_tokens": 1}).is_success


def _noise() -> bytes:
    import io

    import numpy as np
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 255, (400, 400, 3), np.uint8)).save(file, "PNG")
    assert picture_file() != file.getvalue()
    return file.getvalue()
