"""huggingface_hub, as the documents of `transformers serve` show it."""

import asyncio
import json
from typing import Any

import pytest
from huggingface_hub import AsyncInferenceClient, InferenceClient
from huggingface_hub.errors import HfHubHTTPError

STORY = [{"role": "user", "content": "Tell me a short story."}]
WEATHER: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Get the weather in a city",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


@pytest.mark.parametrize("suffix", ["", "/v1"])
def test_a_stream_is_the_whole_answer(url: str, api_key: str, suffix: str) -> None:
    async def ask() -> tuple[str, str | None]:
        client = AsyncInferenceClient(url + suffix, token=api_key)
        texts = []
        async for chunk in await client.chat_completion(
            STORY, model="demo", max_tokens=256, temperature=0, stream=True
        ):
            if chunk.choices and (token := chunk.choices[0].delta.content):
                texts.append(token)
        whole = await client.chat_completion(STORY, model="demo", max_tokens=256, temperature=0)
        await client.close()
        return "".join(texts), whole.choices[0].message.content

    streamed, whole = asyncio.run(ask())
    assert streamed == whole != ""


def test_a_tool_is_called(url: str, api_key: str) -> None:
    client = InferenceClient(url, token=api_key)
    answer = client.chat_completion(
        [{"role": "user", "content": "What is the weather in Paris?"}],
        model="demo",
        tools=WEATHER,
        tool_choice="auto",
        temperature=0,
    )
    calls = answer.choices[0].message.tool_calls
    assert calls and len(calls) == 1
    call = calls[0]
    assert call.function.name == "get_weather" and json.loads(call.function.arguments) == {"city": "Paris"}
    assert answer.choices[0].finish_reason == "tool_calls"


def test_an_error_says_what_was_wrong(url: str, api_key: str) -> None:
    with pytest.raises(HfHubHTTPError, match="temperature"):
        InferenceClient(url, token=api_key).chat_completion(STORY, model="demo", temperature=9)
