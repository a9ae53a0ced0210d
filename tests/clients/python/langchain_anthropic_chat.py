"""LangChain's ChatAnthropic: answers, streams, tools, structured output, thinking."""

from typing import Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import BaseModel

STORY = "Tell me a short story."
WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Get the weather in a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def model(url: str, api_key: str, **more: Any) -> ChatAnthropic:
    known = {"model": "demo", "max_tokens": 200, "max_retries": 0, "timeout": 60, "temperature": 0}
    return ChatAnthropic(base_url=url, api_key=api_key, **{**known, **more})


@pytest.fixture
def chat(url: str, api_key: str) -> ChatAnthropic:
    return model(url, api_key)


def test_an_answer_and_its_usage(chat: ChatAnthropic) -> None:
    answer = chat.invoke("Say hello.")
    assert answer.text == "Hello!" and answer.response_metadata["stop_reason"] == "end_turn"
    assert answer.usage_metadata and answer.usage_metadata["output_tokens"] > 0


def test_a_stream_is_the_whole_answer(chat: ChatAnthropic) -> None:
    chunks = list(chat.stream(STORY))
    assert "".join(chunk.text for chunk in chunks) == chat.invoke(STORY).text and len(chunks) > 5


async def test_an_async_stream_is_the_whole_answer(chat: ChatAnthropic) -> None:
    pieces = [chunk.text async for chunk in chat.astream(STORY)]
    assert "".join(pieces) == chat.invoke(STORY).text


def test_a_tool_is_called_and_its_result_told(chat: ChatAnthropic) -> None:
    asked = chat.bind_tools([WEATHER])
    question = HumanMessage("Bagaimana cuaca di Bandung?")
    answer = asked.invoke([question])
    assert isinstance(answer, AIMessage)
    [call] = answer.tool_calls
    assert (call["name"], call["args"]) == ("get_weather", {"city": "Bandung"})
    result = ToolMessage('{"city": "Bandung", "temperature": 24, "condition": "cerah"}', tool_call_id=call["id"])
    assert asked.invoke([question, answer, result]).text == "Cuaca di Bandung: cerah, 24 derajat."


class Inhabitant(BaseModel):
    name: str
    city: str


def test_an_answer_is_an_object(chat: ChatAnthropic) -> None:
    structured = chat.with_structured_output(Inhabitant, method="json_schema")
    sari = structured.invoke("Answer in JSON: name and city of Sari from Bandung.")
    assert sari == Inhabitant(name="Sari", city="Bandung")


def test_thinking_goes_back_with_the_conversation(url: str, api_key: str) -> None:
    thinking = model(
        url, api_key, thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=2000, temperature=None
    )
    question = HumanMessage("What is 12 + 7?")
    answer = thinking.invoke([question])
    assert [block["type"] for block in answer.content if isinstance(block, dict)] == ["thinking", "text"]
    assert thinking.invoke([question, answer, HumanMessage("Say hello.")]).text


def test_tokens_are_counted(chat: ChatAnthropic) -> None:
    assert chat.get_num_tokens_from_messages([HumanMessage(STORY)]) > 0
