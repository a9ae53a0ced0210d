"""LiteLLM, which speaks to the server as it speaks to Anthropic."""

import json
from typing import Any

import litellm
import pytest

STORY: Any = [{"role": "user", "content": "Tell me a short story."}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@pytest.fixture
def ask(url: str, api_key: str) -> dict[str, Any]:
    return {
        "model": "anthropic/demo",
        "api_base": url,
        "api_key": api_key,
        "max_tokens": 200,
        "temperature": 0,
        "num_retries": 0,
        "timeout": 60,
    }


def test_a_stream_is_the_whole_answer(ask: dict[str, Any]) -> None:
    whole = litellm.completion(messages=STORY, **ask)
    chunks = list(litellm.completion(messages=STORY, stream=True, **ask))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content != ""
    assert whole.choices[0].finish_reason == "stop" and whole.usage.completion_tokens > 0


def test_a_tool_is_called_and_its_result_told(ask: dict[str, Any]) -> None:
    messages: list[Any] = [{"role": "user", "content": "Bagaimana cuaca di Bandung?"}]
    answer = litellm.completion(messages=messages, tools=[WEATHER], **ask).choices[0]
    [call] = answer.message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Bandung"})
    assert answer.finish_reason == "tool_calls"
    result = '{"city": "Bandung", "temperature": 24, "condition": "cerah"}'
    messages += [answer.message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": result}]
    told = litellm.completion(messages=messages, tools=[WEATHER], **ask)
    assert told.choices[0].message.content == "Cuaca di Bandung: cerah, 24 derajat."


async def test_messages_are_passed_on(ask: dict[str, Any]) -> None:
    """As LiteLLM's proxy does for Claude Code."""
    message: Any = await litellm.anthropic.messages.acreate(messages=STORY, **ask)
    assert message["type"] == "message" and message["content"][-1]["text"]


def test_an_error_keeps_its_class(ask: dict[str, Any]) -> None:
    with pytest.raises(litellm.AuthenticationError):
        litellm.completion(messages=STORY, **{**ask, "api_key": "wrong"})
    with pytest.raises(litellm.BadRequestError):
        litellm.completion(messages=STORY, **{**ask, "temperature": 9})
