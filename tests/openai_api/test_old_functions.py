"""`functions` and `function_call`: the model has tools, and the client gets the shape it asked for."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import stream
from tests.serving import Served, served, settings_with

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bandung"}}\n</tool_call>'
WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Get the weather in a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.fixture(scope="module")
def hermes() -> Iterator[httpx2.Client]:
    settings = settings_with(model_repo_id="echo?thinks=1&tool_format=hermes")
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        yield client


def test_a_call_has_the_old_shape(hermes: httpx2.Client) -> None:
    body = said(CALL + CALL, functions=[WEATHER])
    [choice] = hermes.post(CHAT, json=body).json()["choices"]
    assert choice["finish_reason"] == "function_call"
    assert choice["message"]["function_call"] == {"name": "get_weather", "arguments": '{"city": "Bandung"}'}
    assert choice["message"]["content"] is None and "tool_calls" not in choice["message"]
    chunks = [block.chunk["choices"][0] for block in stream(hermes, body)[:-1]]
    calls = [chunk["delta"]["function_call"] for chunk in chunks if "function_call" in chunk["delta"]]
    assert calls[0] == {"name": "get_weather", "arguments": ""}
    assert "".join(one["arguments"] for one in calls) == '{"city": "Bandung"}'
    assert chunks[-1]["finish_reason"] == "function_call"


def test_functions_that_may_not_be_called_are_not(hermes: httpx2.Client) -> None:
    [choice] = hermes.post(CHAT, json=said(CALL, functions=[WEATHER], function_call="none")).json()["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("stop", CALL)


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"functions": [WEATHER], "tools": [{"type": "function", "function": WEATHER}]}, "tools"),
        ({"functions": [WEATHER], "function_call": {"name": "other"}}, "function_call.name"),
        ({"functions": [WEATHER], "function_call": "required"}, "function_call"),
        ({"function_call": {"name": "f"}}, "function_call"),
        ({"functions": [WEATHER, WEATHER]}, "functions.1.name"),
        ({"functions": [{"name": "a b"}]}, "functions.0.name"),
    ],
)
def test_what_is_wrong_is_named_as_the_client_has_it(hermes: httpx2.Client, more: dict[str, Any], param: str) -> None:
    answer = hermes.post(CHAT, json=said("Halo", **more))
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text


@pytest.mark.model
def test_the_official_client_makes_a_round(demo_server: Served) -> None:
    with OpenAI(base_url=f"{demo_server.url}/v1", api_key="none", timeout=120, max_retries=0) as client:
        messages: list[Any] = [{"role": "user", "content": "What is the weather in Bandung?"}]
        create: Any = client.chat.completions.create
        asked = {"model": "demo", "messages": messages, "functions": [WEATHER], "temperature": 0}
        first = create(**asked, function_call={"name": "get_weather"})
        called = first.choices[0].message.function_call
        assert called and (called.name, called.arguments) == ("get_weather", '{"city": "Bandung"}')
        messages += [
            {"role": "assistant", "content": None, "function_call": called.model_dump()},
            {"role": "function", "name": "get_weather", "content": '{"weather": "rain", "celsius": 21}'},
        ]
        second = create(**asked)
        assert second.choices[0].finish_reason == "stop" and "21" in (second.choices[0].message.content or "")
