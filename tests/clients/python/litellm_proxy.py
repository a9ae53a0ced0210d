"""LiteLLM as a proxy in front of the server: a process of its own, asked by the clients of OpenAI and of Anthropic."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

KEY = "sk-proxy"
BY_OPENAI, BY_MESSAGES = "demo", "demo-by-messages"  # how the proxy asks the server
HELLO: Any = [{"role": "user", "content": "Hello!"}]
HELLO_ANSWER = "Hello! I am a tiny demo model. How can I help you?"
WEATHER: Any = [{"role": "user", "content": "Bagaimana cuaca di Bandung?"}]
WEATHER_RESULT = '{"city": "Bandung", "temperature": 24, "condition": "cerah"}'
WEATHER_ANSWER = "Cuaca di Bandung: cerah, 24 derajat."
PARAMETERS: Any = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"name": "get_weather", "description": "Get the weather in a city"}
OF_OPENAI: Any = [{"type": "function", "function": {**TOOL, "parameters": PARAMETERS}}]
OF_ANTHROPIC: Any = [{**TOOL, "input_schema": PARAMETERS}]
_START_SECONDS = 120  # it imports for half a minute on a busy machine


@pytest.fixture(scope="session")
def proxy(tmp_path_factory: pytest.TempPathFactory, url: str, base_url: str, api_key: str) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("litellm")
    models = [
        (BY_OPENAI, {"model": "openai/demo", "api_base": base_url}),
        (BY_MESSAGES, {"model": "anthropic/demo", "api_base": url}),
        ("demo-embedding", {"model": "openai/demo-embedding", "api_base": base_url}),
    ]
    config = {
        "model_list": [
            {"model_name": name, "litellm_params": {**params, "api_key": api_key}} for name, params in models
        ],
        "litellm_settings": {"telemetry": False},
        "general_settings": {"master_key": KEY},
    }
    (folder / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [Path(sys.executable).with_name("litellm"), "--config", folder / "config.yaml"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*map(str, command), "--host", "127.0.0.1", "--port", str(port)],
            env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},  # it would be downloaded
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until_up(f"http://127.0.0.1:{port}", process, folder / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def wait_until_up(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()[-5000:]
        try:
            if httpx.get(f"{url}/health/liveliness", timeout=2).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    pytest.fail(log.read_text()[-5000:])


@pytest.fixture
def client(proxy: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{proxy}/v1", api_key=KEY, max_retries=0, timeout=60) as one:
        yield one


@pytest.fixture
def messages_client(proxy: str) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=proxy, api_key=KEY, max_retries=0, timeout=60) as one:
        yield one


def test_it_lists_the_models(client: openai.OpenAI) -> None:
    assert {BY_OPENAI, BY_MESSAGES, "demo-embedding"} <= {model.id for model in client.models.list()}


@pytest.mark.parametrize("model", [BY_OPENAI, BY_MESSAGES])
def test_a_chat_and_its_stream_say_the_same(client: openai.OpenAI, model: str) -> None:
    whole = client.chat.completions.create(model=model, messages=HELLO, temperature=0)
    assert whole.choices[0].message.content == HELLO_ANSWER
    assert whole.usage and whole.usage.completion_tokens == 15
    stream = client.chat.completions.create(
        model=model, messages=HELLO, temperature=0, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert len(pieces) > 5 and "".join(pieces) == HELLO_ANSWER
    assert [chunk.usage.completion_tokens for chunk in chunks if chunk.usage] == [15]


@pytest.mark.parametrize("model", [BY_OPENAI, BY_MESSAGES])
def test_a_tool_is_called_and_its_result_told(client: openai.OpenAI, model: str) -> None:
    answer = client.chat.completions.create(model=model, messages=WEATHER, tools=OF_OPENAI, temperature=0).choices[0]
    [call] = answer.message.tool_calls or []
    assert call.type == "function" and call.function.name == "get_weather"
    assert json.loads(call.function.arguments) == {"city": "Bandung"} and answer.finish_reason == "tool_calls"
    result = {"role": "tool", "tool_call_id": call.id, "content": WEATHER_RESULT}
    history: Any = [*WEATHER, answer.message.model_dump(exclude_none=True), result]
    told = client.chat.completions.create(model=model, messages=history, tools=OF_OPENAI, temperature=0)
    assert told.choices[0].message.content == WEATHER_ANSWER


def test_vectors_come_as_the_server_makes_them(client: openai.OpenAI, base_url: str, api_key: str) -> None:
    texts = ["kopi susu", "coffee with milk"]
    through = client.embeddings.create(model="demo-embedding", input=texts)
    with openai.OpenAI(base_url=base_url, api_key=api_key) as straight:
        made = straight.embeddings.create(model="demo-embedding", input=texts)
    for one, other in zip(through.data, made.data, strict=True):
        assert one.embedding == pytest.approx(other.embedding, abs=1e-6)
    assert through.usage.prompt_tokens == made.usage.prompt_tokens > 0


def test_a_response_is_streamed_and_continued(client: openai.OpenAI) -> None:
    events = list(client.responses.create(model=BY_OPENAI, input="Hello!", temperature=0, stream=True))
    assert events[-1].type == "response.completed" and events[-1].response.output_text == HELLO_ANSWER
    following = client.responses.create(
        model=BY_OPENAI, input="And now?", previous_response_id=events[-1].response.id, max_output_tokens=8
    )
    assert following.output_text and following.usage and following.usage.input_tokens > 25


@pytest.mark.parametrize("model", [BY_OPENAI, BY_MESSAGES])
def test_messages_go_through_whole_and_as_a_stream(messages_client: anthropic.Anthropic, model: str) -> None:
    """With `openai/` the proxy makes them a request for `/v1/responses`."""
    ask: Any = {"model": model, "max_tokens": 100, "messages": HELLO}
    whole = messages_client.messages.create(**ask)
    assert [block.text for block in whole.content if block.type == "text"] == [HELLO_ANSWER]
    assert whole.stop_reason == "end_turn" and whole.usage.output_tokens == 15
    with messages_client.messages.stream(**ask) as stream:
        pieces = list(stream.text_stream)
    assert len(pieces) > 5 and "".join(pieces) == HELLO_ANSWER
    assert messages_client.messages.count_tokens(model=model, messages=HELLO).input_tokens > 5


@pytest.mark.parametrize("model", [BY_OPENAI, BY_MESSAGES])
def test_messages_call_a_tool(messages_client: anthropic.Anthropic, model: str) -> None:
    ask: Any = {"model": model, "max_tokens": 100, "tools": OF_ANTHROPIC}
    with messages_client.messages.stream(messages=WEATHER, **ask) as stream:
        answer = stream.get_final_message()
    [call] = [block for block in answer.content if block.type == "tool_use"]
    assert (call.name, call.input, answer.stop_reason) == ("get_weather", {"city": "Bandung"}, "tool_use")
    result = {"type": "tool_result", "tool_use_id": call.id, "content": WEATHER_RESULT}
    blocks = [block.model_dump(exclude_none=True) for block in answer.content]
    history: Any = [*WEATHER, {"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]
    told = messages_client.messages.create(messages=history, **ask)
    assert [block.text for block in told.content if block.type == "text"] == [WEATHER_ANSWER]


def test_an_error_of_the_server_keeps_its_status_and_its_reason(
    client: openai.OpenAI, messages_client: anthropic.Anthropic
) -> None:
    for model in (BY_OPENAI, BY_MESSAGES):
        with pytest.raises(openai.BadRequestError, match="temperature must be at least 0"):
            client.chat.completions.create(model=model, messages=HELLO, temperature=9)
        with pytest.raises(anthropic.BadRequestError, match="temperature must be at least 0"):
            messages_client.messages.create(model=model, max_tokens=5, messages=HELLO, extra_body={"temperature": 9})
    with pytest.raises(openai.BadRequestError, match="Invalid type: nope"):
        form: Any = {"type": "json_schema", "json_schema": {"name": "one", "schema": {"type": "nope"}}}
        client.chat.completions.create(model=BY_OPENAI, messages=HELLO, response_format=form)
    with pytest.raises(openai.BadRequestError, match="prompt_name"):
        client.embeddings.create(model="demo-embedding", input="kopi", extra_body={"prompt_name": "nope"})
