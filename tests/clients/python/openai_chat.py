"""openai-python, whichever version the environment has: chat completions."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

STORY = "Tell me a short story."
SARI = "Answer in JSON: name and city of Sari from Bandung."
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


@pytest.fixture
def client(base_url: str, api_key: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=base_url, api_key=api_key, max_retries=0, timeout=60) as client:
        yield client


def said(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def whole(client: OpenAI, text: str = STORY) -> str:
    answer = client.chat.completions.create(model="demo", messages=said(text), temperature=0)
    return answer.choices[0].message.content or ""


def test_a_whole_answer(client: OpenAI) -> None:
    answer = client.chat.completions.create(model="demo", messages=said("Say hello."), temperature=0)
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("Hello!", "stop")
    assert answer.usage and answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_stream_is_the_whole_answer(client: OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="demo",
            messages=said(STORY),
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole(client) and len(chunks) > 5
    assert chunks[-1].usage and chunks[-1].usage.completion_tokens


def test_the_async_client_streams_too(base_url: str, api_key: str) -> None:
    async def ask() -> str:
        async with AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0) as client:
            stream = await client.chat.completions.create(
                model="demo", messages=said("Say hello."), temperature=0, stream=True
            )
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    assert asyncio.run(ask()) == "Hello!"


def test_thoughts_are_apart_from_the_answer(client: OpenAI) -> None:
    message = client.chat.completions.create(model="demo", messages=said("What is 12 + 7?"), temperature=0).choices[0]
    assert message.message.content == "12 + 7 = 19."
    assert (message.message.model_extra or {})["reasoning_content"]


def test_a_tool_is_called_and_its_result_told(client: OpenAI) -> None:
    messages = said("Bagaimana cuaca di Bandung?")
    answer = client.chat.completions.create(model="demo", messages=messages, tools=WEATHER, temperature=0).choices[0]
    assert answer.finish_reason == "tool_calls" and answer.message.content is None and answer.message.tool_calls
    call: Any = answer.message.tool_calls[0]
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Bandung"})
    result = '{"city": "Bandung", "temperature": 24, "condition": "cerah"}'
    messages += [answer.message, {"role": "tool", "tool_call_id": call.id, "content": result}]
    told = client.chat.completions.create(model="demo", messages=messages, tools=WEATHER, temperature=0)
    assert told.choices[0].message.content == "Cuaca di Bandung: cerah, 24 derajat."


def test_the_stream_helper_puts_a_call_together(client: OpenAI) -> None:
    with client.chat.completions.stream(
        model="demo", messages=said("What is the weather in Jakarta?"), tools=WEATHER, temperature=0
    ) as stream:
        kinds = {event.type for event in stream}
        message = stream.get_final_completion().choices[0].message
    assert "tool_calls.function.arguments.delta" in kinds and message.tool_calls
    call: Any = message.tool_calls[0]
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Jakarta"})


class ChatPerson(BaseModel):
    name: str
    city: str


def test_an_answer_is_parsed_into_an_object(client: OpenAI) -> None:
    answer = client.chat.completions.parse(model="demo", messages=said(SARI), response_format=ChatPerson, temperature=0)
    assert answer.choices[0].message.parsed == ChatPerson(name="Sari", city="Bandung")
    with client.chat.completions.stream(
        model="demo", messages=said(SARI), response_format=ChatPerson, temperature=0
    ) as stream:
        for _ in stream:
            pass
        assert stream.get_final_completion().choices[0].message.parsed == ChatPerson(name="Sari", city="Bandung")


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
def test_a_tool_is_called_if_it_has_to_be(client: OpenAI, choice: Any) -> None:
    answer = client.chat.completions.create(
        model="demo", messages=said("Bandung"), tools=WEATHER, tool_choice=choice, temperature=0, max_tokens=100
    ).choices[0]
    assert answer.message.tool_calls and answer.finish_reason == "tool_calls"
    call: Any = answer.message.tool_calls[0]
    assert call.function.name == "get_weather" and isinstance(json.loads(call.function.arguments)["city"], str)


def test_an_unsupported_keyword_is_a_400_that_names_it(client: OpenAI) -> None:
    schema = {"type": "object", "properties": {"a": {"not": {"type": "string"}}}}
    form: Any = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="demo", messages=said("Halo"), response_format=form)
    assert refused.value.code == "unsupported_schema_keyword" and "properties.a.not" in (refused.value.param or "")


def test_logprobs(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model="demo", messages=said("Say hello."), temperature=0, logprobs=True, top_logprobs=2
    )
    logprobs = answer.choices[0].logprobs
    assert logprobs and logprobs.content and all(len(one.top_logprobs) == 2 for one in logprobs.content)


def test_models(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["demo", "demo-embedding"]
    assert client.models.retrieve("demo").id == "demo"


def test_a_wrong_key_is_an_authentication_error(base_url: str) -> None:
    with (
        OpenAI(base_url=base_url, api_key="wrong", max_retries=0) as stranger,
        pytest.raises(openai.AuthenticationError) as refused,
    ):
        whole(stranger)
    assert refused.value.code == "invalid_api_key"


def test_a_bad_request_says_what_is_bad(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="demo", messages=said("Halo"), temperature=9)
    assert refused.value.param == "temperature"
