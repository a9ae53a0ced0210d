"""Messages of a real model: they are the answers that it gives to the same chats."""

import base64
import io
import json
import os
from typing import Any

import httpx2
import pytest
from PIL import Image

from tests.anthropic_api.message_requests import COUNT, WEATHER, asked, check_order, message_of, streamed
from tests.openai_api.media_requests import image_url, picture_file
from tests.openai_api.test_chat import CHAT

pytestmark = pytest.mark.model

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "city": {"enum": ["Bandung", "Medan", "Solo"]}},
    "required": ["name", "city"],
    "additionalProperties": False,
}
FUNCTION = {
    "type": "function",
    "function": {name: WEATHER[name] for name in ("name", "description")} | {"parameters": WEATHER["input_schema"]},
}


def ask(text: Any, **more: Any) -> dict[str, Any]:
    return message_of(text, **{"model": "demo", "temperature": 0, "max_tokens": 200, **more})


def chat(demo: httpx2.Client, *messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    body = {"model": "demo", "temperature": 0, "max_tokens": 200, "messages": messages, **more}
    answer = demo.post(CHAT, json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.parametrize("question", ["Say hello.", "Tell me a short story.", "What is 12 + 7?"])
def test_it_says_what_it_says_in_a_chat(demo: httpx2.Client, question: str) -> None:
    whole = asked(demo, ask(question))
    answer = chat(demo, {"role": "user", "content": question})
    message = answer["choices"][0]["message"]
    texts = {block["type"]: block.get("text") or block.get("thinking") for block in whole["content"]}
    assert texts["text"] == message["content"]
    assert texts.get("thinking") == message.get("reasoning_content")
    usage = whole["usage"]
    assert usage["input_tokens"] + usage["cache_read_input_tokens"] == answer["usage"]["prompt_tokens"]
    assert usage["output_tokens"] == answer["usage"]["completion_tokens"]
    assert check_order(streamed(demo, ask(question)))["content"] == whole["content"]
    assert demo.post(COUNT, json=ask(question)).json()["input_tokens"] == answer["usage"]["prompt_tokens"]


def test_a_tool_is_called_and_its_result_told(demo: httpx2.Client) -> None:
    body = ask("Bagaimana cuaca di Bandung?", tools=[WEATHER])
    first = check_order(streamed(demo, body))
    call = first["content"][-1]
    assert (call["name"], call["input"], first["stop_reason"]) == ("get_weather", {"city": "Bandung"}, "tool_use")
    result = '{"city": "Bandung", "temperature": 24, "condition": "cerah"}'
    block = {"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": result}]}
    body["messages"] += [{"role": "assistant", "content": first["content"]}, {"role": "user", "content": [block]}]
    assert asked(demo, body)["content"][-1]["text"] == "Cuaca di Bandung: cerah, 24 derajat."


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "get_weather"}])
def test_a_tool_is_called_if_it_has_to_be(demo: httpx2.Client, choice: dict[str, Any]) -> None:
    message = asked(demo, ask("Bandung", tools=[WEATHER], tool_choice=choice))
    assert message["stop_reason"] == "tool_use" and isinstance(message["content"][-1]["input"]["city"], str)


def test_an_answer_follows_a_schema(demo: httpx2.Client) -> None:
    form = {"type": "json_schema", "schema": PERSON}
    for more in ({"output_config": {"format": form}}, {"output_format": form}):
        message = asked(demo, ask("Answer in JSON: name and city of Sari from Bandung.", **more))
        assert json.loads(message["content"][-1]["text"]) == {"name": "Sari", "city": "Bandung"}


def test_the_beginning_of_an_answer_is_continued(demo: httpx2.Client) -> None:
    whole = asked(demo, ask("Tell me a short story.", thinking={"type": "disabled"}))["content"][-1]["text"]
    beginning = whole[: whole.index(" ", 10)]
    body = ask("Tell me a short story.", thinking={"type": "disabled"})
    body["messages"].append({"role": "assistant", "content": beginning})
    assert beginning + asked(demo, body)["content"][-1]["text"] == whole


@pytest.mark.parametrize("thinking", [{"type": "disabled"}, {"type": "enabled", "budget_tokens": 4}])
def test_thinking_is_bounded(demo: httpx2.Client, thinking: dict[str, Any]) -> None:
    free = asked(demo, ask("What is 12 + 7?"))
    bounded = asked(demo, ask("What is 12 + 7?", thinking=thinking))
    assert free["content"][0]["type"] == "thinking"
    spent = bounded["usage"]["output_tokens_details"]["thinking_tokens"]
    assert spent < free["usage"]["output_tokens_details"]["thinking_tokens"]
    assert bounded["content"][-1]["type"] == "text"


def test_pictures_are_seen_wherever_they_stand(demo: httpx2.Client) -> None:
    data = picture_file("red")
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(data).decode()},
    }
    question = "What colour is this?"
    seen = asked(demo, ask([image, {"type": "text", "text": question}], max_tokens=12))
    content = [image_url(data), {"type": "text", "text": question}]
    answer = chat(demo, {"role": "user", "content": content}, max_tokens=12)
    assert seen["content"][-1]["text"] == answer["choices"][0]["message"]["content"]
    assert (
        sum(seen["usage"][name] for name in ("input_tokens", "cache_read_input_tokens"))
        == (answer["usage"]["prompt_tokens"])
    )
    call = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Solo"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "Seen:"}, image]}
    body = ask("Look!", tools=[WEATHER], max_tokens=4)
    body["messages"] += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    assert asked(demo, body)["stop_reason"] in ("max_tokens", "end_turn")


def test_a_large_picture_in_the_result_of_a_tool_is_no_text(demo: httpx2.Client) -> None:
    """Texts of a body have at most 4 MiB, its pictures more."""
    file = io.BytesIO()
    Image.frombytes("RGB", (1280, 1280), os.urandom(1280 * 1280 * 3)).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    assert len(data) > 5 * 2**20
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [image]}
    assert asked(demo, ask([result], max_tokens=2))["usage"]["output_tokens"] <= 2
    text = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x " * (3 * 2**20)}}
    assert demo.post("/v1/messages", json=ask([text])).status_code == 413
