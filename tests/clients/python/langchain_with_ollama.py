"""LangChain's own package for Ollama: answers, streams, tools, structured output, vectors."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama, OllamaEmbeddings, OllamaLLM
from pydantic import BaseModel

STORY = "Tell me a short story."


class PersonAndCity(BaseModel):
    name: str
    city: str


@tool
def get_weather(city: str) -> str:
    """Get the weather in a city"""
    return f"rain in {city}"


@pytest.fixture
def chat(url: str, api_key: str) -> Iterator[Any]:
    headers = {"headers": {"Authorization": f"Bearer {api_key}"}}
    yield ChatOllama(model="demo", base_url=url, temperature=0, num_predict=60, client_kwargs=headers)


def test_an_answer_and_its_stream(chat: Any) -> None:
    answer = chat.invoke(STORY)
    assert answer.content and answer.response_metadata["done_reason"] in ("stop", "length")
    assert answer.usage_metadata["output_tokens"] > 0
    assert "".join(part.content for part in chat.stream(STORY)) == answer.content


async def test_it_is_awaited(chat: Any) -> None:
    assert (await chat.ainvoke(STORY)).content == chat.invoke(STORY).content


def test_a_tool_is_called_and_its_result_is_read(chat: Any) -> None:
    asked = HumanMessage("What is the weather in Bandung?")
    called = chat.bind_tools([get_weather]).invoke([asked])
    [call] = called.tool_calls
    assert call["name"] == "get_weather" and isinstance(call["args"]["city"], str)
    result = ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])
    end = chat.bind_tools([get_weather]).invoke([asked, called, result])
    assert isinstance(end, AIMessage)


def test_an_answer_is_an_object(chat: Any) -> None:
    asked = "Answer in JSON: name and city of Sari from Bandung."
    found = chat.with_structured_output(PersonAndCity, method="json_schema").invoke(asked)
    assert isinstance(found.name, str) and isinstance(found.city, str)


def test_completions_and_vectors(url: str, api_key: str) -> None:
    headers = {"headers": {"Authorization": f"Bearer {api_key}"}}
    llm = OllamaLLM(model="demo", base_url=url, temperature=0, num_predict=20, client_kwargs=headers)
    assert "".join(llm.stream(STORY)) == llm.invoke(STORY) != ""
    embeddings = OllamaEmbeddings(model="demo-embedding", base_url=url, client_kwargs=headers)
    one, other = embeddings.embed_documents(["kopi", "teh"])
    assert embeddings.embed_query("kopi") == one != other
