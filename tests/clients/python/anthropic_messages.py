"""Anthropic's SDK for Python, unmodified: messages, streams, tools, pictures, counts, models, errors."""

import asyncio
import base64
import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic, beta_tool
from pydantic import BaseModel

STORY: Any = [{"role": "user", "content": "Tell me a short story."}]
BANDUNG: Any = [{"role": "user", "content": "Bagaimana cuaca di Bandung?"}]
SARI: Any = [{"role": "user", "content": "Answer in JSON: name and city of Sari from Bandung."}]
SUM: Any = [{"role": "user", "content": "What is 12 + 7?"}]
CERAH = '{"city": "Bandung", "temperature": 24, "condition": "cerah"}'
WEATHER: Any = {
    "name": "get_weather",
    "description": "Get the weather in a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
# Its methods have no parameter for the temperature, though the API has.
ASK: Any = {"model": "demo", "max_tokens": 200, "extra_body": {"temperature": 0}}


@pytest.fixture
def client(url: str, api_key: str) -> Iterator[Anthropic]:
    with Anthropic(base_url=url, api_key=api_key, max_retries=0, timeout=60) as client:
        yield client


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def picture(red: int, green: int, blue: int, size: int = 128) -> str:
    """A PNG of one colour, as base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes([red, green, blue]) * size) * size)
    file = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return base64.b64encode(file).decode()


def test_a_whole_message(client: Anthropic) -> None:
    message = client.messages.create(messages=[{"role": "user", "content": "Say hello."}], **ASK)
    assert (text_of(message), message.stop_reason, message.role) == ("Hello!", "end_turn", "assistant")
    assert message.usage.input_tokens > 0 and message.usage.output_tokens > 0
    assert message._request_id


def test_a_system_prompt_in_blocks(client: Anthropic) -> None:
    system: Any = [{"type": "text", "text": "Be short.", "cache_control": {"type": "ephemeral"}}]
    message = client.messages.create(messages=STORY, system=system, metadata={"user_id": "u"}, **ASK)
    assert text_of(message)


def test_raw_events_are_the_whole_message(client: Anthropic) -> None:
    whole = text_of(client.messages.create(messages=STORY, **ASK))
    events = list(client.messages.create(messages=STORY, stream=True, **ASK))
    pieces = [
        event.delta.text for event in events if event.type == "content_block_delta" and event.delta.type == "text_delta"
    ]
    assert "".join(pieces) == whole and len(pieces) > 5
    assert events[0].type == "message_start" and events[-1].type == "message_stop"


def test_the_stream_helper_puts_a_message_together(client: Anthropic) -> None:
    whole = client.messages.create(messages=STORY, **ASK)
    with client.messages.stream(messages=STORY, **ASK) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert text == text_of(message) == text_of(whole)
    assert message.stop_reason == whole.stop_reason and message.usage.output_tokens == whole.usage.output_tokens
    with client.messages.stream(messages=STORY, **ASK) as stream:
        assert stream.get_final_text() == text


def test_the_async_client_streams_too(url: str, api_key: str) -> None:
    async def ask() -> tuple[str, str]:
        async with AsyncAnthropic(base_url=url, api_key=api_key, max_retries=0) as client:
            message = await client.messages.create(messages=STORY, **ASK)
            async with client.messages.stream(messages=STORY, **ASK) as stream:
                return text_of(message), "".join([text async for text in stream.text_stream])

    whole, streamed = asyncio.run(ask())
    assert whole == streamed != ""


def test_thinking_comes_first_and_goes_back(client: Anthropic) -> None:
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    kinds = []
    with client.messages.stream(messages=SUM, thinking=thinking, **{**ASK, "max_tokens": 2000}) as stream:
        for event in stream:
            kinds.append(event.type)
        message = stream.get_final_message()
    assert [block.type for block in message.content] == ["thinking", "text"] and text_of(message) == "12 + 7 = 19."
    thought: Any = message.content[0]
    assert "thinking" in kinds and "signature" in kinds and thought.signature
    history: Any = [*SUM, message.to_param(), {"role": "user", "content": "Say hello."}]
    raw = client.messages.with_raw_response.create(messages=history, **ASK)
    assert "x-ignored-parameters" not in raw.headers and text_of(raw.parse())


def test_thinking_can_be_switched_off(client: Anthropic) -> None:
    message = client.messages.create(messages=SUM, thinking={"type": "disabled"}, **ASK)
    assert [block.type for block in message.content] == ["text"]


def test_a_tool_is_called_and_its_result_told(client: Anthropic) -> None:
    with client.messages.stream(messages=BANDUNG, tools=[WEATHER], **ASK) as stream:
        partial = [event.partial_json for event in stream if event.type == "input_json"]
        message = stream.get_final_message()
    call: Any = message.content[-1]
    assert (message.stop_reason, call.type, call.name) == ("tool_use", "tool_use", "get_weather")
    assert call.input == {"city": "Bandung"} == json.loads("".join(partial))
    result: Any = {"type": "tool_result", "tool_use_id": call.id, "content": CERAH}
    history: Any = [*BANDUNG, {"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
    assert (
        text_of(client.messages.create(messages=history, tools=[WEATHER], **ASK))
        == "Cuaca di Bandung: cerah, 24 derajat."
    )


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "get_weather"}])
def test_a_tool_is_called_if_it_has_to_be(client: Anthropic, choice: Any) -> None:
    message = client.messages.create(messages=STORY, tools=[WEATHER], tool_choice=choice, **ASK)
    call: Any = message.content[-1]
    assert message.stop_reason == "tool_use" and isinstance(call.input["city"], str)


def test_the_tool_runner_runs_tools(client: Anthropic) -> None:
    asked: list[str] = []

    @beta_tool
    def get_weather(city: str) -> str:
        """Get the weather in a city

        Args:
            city: The city
        """
        asked.append(city)
        return CERAH

    runner = client.beta.messages.tool_runner(messages=BANDUNG, tools=[get_weather], **ASK)
    messages = list(runner)
    assert asked == ["Bandung"] and len(messages) == 2
    assert text_of(messages[-1]) and messages[-1].stop_reason == "end_turn"


def test_the_tool_runner_adds_tools_and_takes_them_away(client: Anthropic) -> None:
    """By blocks of messages of the system."""
    asked: list[str] = []

    @beta_tool
    def get_weather(city: str) -> str:
        """Get the weather in a city

        Args:
            city: The city
        """
        asked.append(city)
        return CERAH

    @beta_tool
    def unused() -> str:
        """Never called"""
        return ""

    runner = client.beta.messages.tool_runner(messages=BANDUNG, tools=[unused], **ASK)
    runner.add_tools(get_weather)
    runner.remove_tools(unused)
    messages = list(runner)
    assert asked == ["Bandung"] and len(messages) == 2 and messages[-1].stop_reason == "end_turn"


def test_the_newest_fields_of_the_beta_client_are_accepted(client: Anthropic) -> None:
    edits: Any = [{"type": "clear_thinking_20251015", "keep": "all"}, {"type": "clear_tool_uses_20250919"}]
    raw = client.beta.messages.with_raw_response.create(
        messages=SARI,
        thinking={"type": "adaptive", "display": "updates"},
        output_config={"effort": "xhigh"},
        context_management={"edits": edits},
        container={"skills": []},
        speed="fast",
        betas=["context-management-2025-06-27", "thinking-display-updates-2026-08-18"],
        **ASK,
    )
    ignored = raw.headers["x-ignored-parameters"].split(", ")
    assert {"context_management", "container", "speed"} <= set(ignored) and raw.parse().stop_reason == "end_turn"
    counted = client.beta.messages.count_tokens(model="demo", messages=SARI, context_management={"edits": edits})
    assert counted.input_tokens > 5
    parsed = client.beta.messages.parse(messages=SARI, output_format=Resident, **ASK)
    assert parsed.parsed_output == Resident(name="Sari", city="Bandung")


def test_the_streaming_tool_runner_runs_tools(client: Anthropic) -> None:
    @beta_tool
    def get_weather(city: str) -> str:
        """Get the weather in a city

        Args:
            city: The city
        """
        return CERAH

    for stream in client.beta.messages.tool_runner(messages=BANDUNG, tools=[get_weather], stream=True, **ASK):
        for _ in stream:
            pass
        last = stream.get_final_message()
    assert last.stop_reason == "end_turn" and text_of(last)


class Resident(BaseModel):
    name: str
    city: str


def test_an_answer_is_parsed_into_an_object(client: Anthropic) -> None:
    parsed = client.messages.parse(messages=SARI, output_format=Resident, **ASK)
    assert parsed.parsed_output == Resident(name="Sari", city="Bandung")
    with client.messages.stream(messages=SARI, output_format=Resident, **ASK) as stream:
        assert stream.get_final_message().parsed_output == Resident(name="Sari", city="Bandung")


def test_a_stop_sequence_is_named(client: Anthropic) -> None:
    whole = text_of(client.messages.create(messages=STORY, **ASK))
    wanted = whole.split()[3]
    message = client.messages.create(messages=STORY, stop_sequences=["\x00", wanted], **ASK)
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", wanted)
    assert text_of(message) == whole[: whole.index(wanted)]


def test_the_beginning_of_an_answer_is_continued(client: Anthropic) -> None:
    off: Any = {"type": "disabled"}
    whole = text_of(client.messages.create(messages=STORY, thinking=off, **ASK))
    beginning = whole[: whole.index(" ", 10)]
    history: Any = [*STORY, {"role": "assistant", "content": beginning}]
    assert beginning + text_of(client.messages.create(messages=history, thinking=off, **ASK)) == whole


def test_a_picture_is_seen(client: Anthropic) -> None:
    def seen(*colour: int) -> str:
        source: Any = {"type": "base64", "media_type": "image/png", "data": picture(*colour)}
        content: Any = [{"type": "image", "source": source}, {"type": "text", "text": "What colour is this?"}]
        return text_of(client.messages.create(messages=[{"role": "user", "content": content}], **ASK))

    assert seen(255, 0, 0) == seen(255, 0, 0)
    count = client.messages.count_tokens(
        model="demo",
        messages=[
            {
                "role": "user",
                "content": [
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": picture(0, 0, 255)},
                    }
                ],
            }
        ],
    )
    assert (
        count.input_tokens
        > client.messages.count_tokens(model="demo", messages=[{"role": "user", "content": "x"}]).input_tokens
    )


def test_tokens_are_counted(client: Anthropic) -> None:
    count = client.messages.count_tokens(model="demo", messages=STORY, tools=[WEATHER], system="Be short.")
    usage = client.messages.create(messages=STORY, tools=[WEATHER], system="Be short.", **ASK).usage
    assert count.input_tokens == usage.input_tokens + (usage.cache_read_input_tokens or 0)
    assert client.beta.messages.count_tokens(model="demo", messages=STORY).input_tokens < count.input_tokens


def test_the_beta_client_is_answered(client: Anthropic) -> None:
    message = client.beta.messages.create(messages=STORY, betas=["interleaved-thinking-2025-05-14"], **ASK)
    assert text_of(message) == text_of(client.messages.create(messages=STORY, **ASK))
    with client.beta.messages.stream(messages=STORY, **ASK) as stream:
        assert text_of(stream.get_final_message()) == text_of(message)


def test_models(client: Anthropic) -> None:
    models = list(client.models.list())
    assert [model.id for model in models] == ["demo"] and models[0].created_at.year > 2000
    assert client.models.retrieve("demo").display_name == "demo"
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("claude-9")


def test_errors_have_their_classes(client: Anthropic, url: str) -> None:
    with pytest.raises(anthropic.BadRequestError) as refused:
        client.messages.create(messages=STORY, **{**ASK, "extra_body": {"temperature": 9}})
    assert (refused.value.type, refused.value.error_code) == ("invalid_request_error", "invalid_value")
    assert refused.value.request_id and "temperature" in (refused.value.api_message or "")
    with Anthropic(base_url=url, api_key="wrong", max_retries=0) as stranger:
        with pytest.raises(anthropic.AuthenticationError):
            stranger.messages.create(messages=STORY, **ASK)
        with pytest.raises(anthropic.AuthenticationError):
            list(stranger.models.list())
    with pytest.raises(anthropic.NotFoundError):
        client.messages.batches.retrieve("msgbatch_1")
    search: Any = {"type": "web_search_20250305", "name": "web_search"}
    with pytest.raises(anthropic.BadRequestError, match="web_search_20250305"):
        client.messages.create(messages=STORY, tools=[search], **ASK)


def test_a_bearer_token_is_accepted(url: str, api_key: str) -> None:
    with Anthropic(base_url=url, auth_token=api_key, max_retries=0) as client:
        assert text_of(client.messages.create(messages=STORY, **ASK))


def test_a_recording_is_followed_again_and_from_a_cursor(client: Anthropic) -> None:
    headers = {"X-Session-Id": "story-of-the-sdk"}
    first = client.messages.create(messages=STORY, stream=True, extra_headers=headers, **ASK)
    events = [event.to_dict() for event in first]
    again = client.messages.create(messages=STORY, stream=True, extra_headers=headers, **ASK)
    assert [event.to_dict() for event in again] == events
    rest = client.messages.create(messages=STORY, stream=True, extra_headers={**headers, "Last-Event-ID": "4"}, **ASK)
    assert [event.to_dict() for event in rest] == events[5:]
    named = {"temperature": 0, "session_id": "story-of-the-sdk"}
    whole = client.messages.create(messages=STORY, **{**ASK, "extra_body": named})
    assert whole.id == events[0]["message"]["id"]


def test_a_cancelled_stream_ends(client: Anthropic, slow_url: str) -> None:
    with (
        Anthropic(base_url=slow_url, api_key="none", max_retries=0) as slow,
        slow.messages.stream(
            model="echo",
            max_tokens=2000,
            messages=[{"role": "user", "content": "a ferry " * 100}],
            extra_headers={"X-Session-Id": "cancelled-by-the-sdk"},
        ) as stream,
    ):
        for number, _ in enumerate(stream.text_stream):
            if number == 5:
                slow.post("/v1/cancel/cancelled-by-the-sdk", cast_to=object)
        message = stream.get_final_message()
    assert message.stop_reason == "end_turn" and 5 < len(text_of(message)) < 600
