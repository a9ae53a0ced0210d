"""The package `ollama`, unmodified: sync and async, with the paths at `/api` and at `/ollama/api`; and its errors."""

import json
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from ollama import AsyncClient, Client, ResponseError

STORY = [{"role": "user", "content": "Tell me a short story."}]
GREEDY = {"temperature": 0, "num_predict": 40}
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}


@pytest.fixture(params=["", "/ollama"])
def client(request: pytest.FixtureRequest, url: str, api_key: str) -> Iterator[Client]:
    with Client(host=f"{url}{request.param}", headers={"Authorization": f"Bearer {api_key}"}, timeout=60) as one:
        yield one


@pytest.fixture
def slow_client() -> Client:
    return Client(host=os.environ["CLIENTS_SLOW_URL"], timeout=60)


def png(red: int, green: int, blue: int, size: int = 64) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes([red, green, blue]) * size) * size
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def get_weather(city: str) -> str:
    """
    Get the weather in a city

    Args:
      city: The name of the city
    """
    return f"rain in {city}"


def test_a_whole_answer_and_a_stream_say_the_same(client: Client) -> None:
    whole = client.chat("demo", STORY, options=GREEDY)
    assert whole.message.role == "assistant" and whole.message.content
    assert whole.done and whole.done_reason in ("stop", "length")
    assert whole.total_duration and whole.eval_duration and whole.prompt_eval_count and whole.eval_count
    parts = list(client.chat("demo", STORY, options=GREEDY, stream=True))
    assert "".join(part.message.content or "" for part in parts) == whole.message.content
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].eval_count == whole.eval_count


def test_a_prompt_goes_on_with_the_context_of_the_last_answer(client: Client) -> None:
    first = client.generate("demo", "Tell me a short story.", options=GREEDY)
    second = client.generate("demo", "And then?", context=first.context, options=GREEDY)
    history = [*STORY, {"role": "assistant", "content": first.response}, {"role": "user", "content": "And then?"}]
    assert second.response == client.chat("demo", history, options=GREEDY).message.content
    parts = list(client.generate("demo", "And then?", context=first.context, options=GREEDY, stream=True))
    assert parts[-1].context == second.context and all(part.context is None for part in parts[:-1])


def test_generate(client: Client) -> None:
    whole = client.generate("demo", "Tell me a short story.", system="You are brief.", options=GREEDY)
    parts = list(
        client.generate("demo", "Tell me a short story.", system="You are brief.", options=GREEDY, stream=True)
    )
    assert whole.response and "".join(part.response or "" for part in parts) == whole.response
    assert client.generate("demo").done_reason == "load"
    entries = client.generate("demo", "Halo", options={"num_predict": 3}, logprobs=True, top_logprobs=2).logprobs
    assert entries and len(entries) == 3 and all(len(one.top_logprobs or ()) == 2 for one in entries)


async def test_the_async_client(url: str, api_key: str) -> None:
    async with AsyncClient(host=url, headers={"Authorization": f"Bearer {api_key}"}, timeout=60) as client:
        whole = await client.chat("demo", STORY, options=GREEDY)
        text = ""
        async for part in await client.chat("demo", STORY, options=GREEDY, stream=True):
            text += part.message.content or ""
        assert text == whole.message.content
        names = [model.model for model in (await client.list()).models]
        assert names == ["demo:latest", "demo-embedding:latest"]


def test_a_key_of_the_environment(url: str, api_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", url)
    with Client() as client, pytest.raises(ResponseError, match="API key") as refused:
        client.list()
    assert refused.value.status_code == 401
    monkeypatch.setenv("OLLAMA_API_KEY", api_key)
    with Client() as client:
        assert client.list().models


def test_a_format_is_enforced(client: Client) -> None:
    asked = [{"role": "user", "content": "Answer in JSON: Sari is 22."}]
    answer = client.chat("demo", asked, format=PERSON, options={"num_predict": 200, "temperature": 0})
    person = json.loads(answer.message.content or "")
    assert isinstance(person["name"], str) and isinstance(person["age"], int)


def test_a_tool_is_called_and_its_result_is_read(client: Client) -> None:
    messages: list[Any] = [{"role": "user", "content": "What is the weather in Bandung?"}]
    answer = client.chat("demo", messages, tools=[get_weather], options=GREEDY)
    for call in answer.message.tool_calls or ():
        assert call.function.name == "get_weather" and isinstance(call.function.arguments["city"], str)
    assert answer.message.tool_calls, answer.message
    result = {"role": "tool", "tool_name": "get_weather", "content": get_weather("Bandung")}
    end = client.chat("demo", [*messages, answer.message, result], tools=[get_weather], options=GREEDY)
    assert end.message.content is not None and end.done
    parts = client.chat("demo", messages, tools=[get_weather], options=GREEDY, stream=True)
    streamed = [call for part in parts for call in part.message.tool_calls or ()]
    assert streamed == answer.message.tool_calls


def test_pictures(client: Client) -> None:
    options = {"num_predict": 2}
    without = client.chat("demo", [{"role": "user", "content": "What is this?"}], options=options)
    message = {"role": "user", "content": "What is this?", "images": [png(255, 0, 0), png(0, 0, 255)]}
    seen = client.chat("demo", [message], options=options)
    assert (seen.prompt_eval_count or 0) > (without.prompt_eval_count or 0)
    one = client.generate("demo", "What is this?", images=[png(255, 0, 0)], options=options)
    assert (without.prompt_eval_count or 0) < (one.prompt_eval_count or 0) < (seen.prompt_eval_count or 0)


def test_embeddings(client: Client) -> None:
    made = client.embed("demo-embedding", ["kopi", "teh", "kopi"])
    assert len(made.embeddings) == 3 and made.embeddings[0] == made.embeddings[2] != made.embeddings[1]
    assert abs(sum(number**2 for number in made.embeddings[0]) - 1) < 1e-5 and made.prompt_eval_count
    assert len(client.embed("demo-embedding", "kopi", dimensions=8).embeddings[0]) == 8
    assert len(client.embeddings("demo-embedding", "kopi").embedding) == len(made.embeddings[0])


def test_the_models(client: Client) -> None:
    [demo] = [model for model in client.list().models if model.model == "demo:latest"]
    assert demo.size and demo.digest and demo.modified_at and demo.details and demo.details.family
    shown = client.show("demo")
    assert {"completion", "tools", "vision"} <= set(shown.capabilities or ()) and shown.template
    assert shown.modelinfo and shown.modelinfo["general.architecture"] == demo.details.family
    loaded = client.ps().models
    assert "demo:latest" in [model.model for model in loaded] and all(model.expires_at for model in loaded)


def test_pull_shows_how_it_goes_on(client: Client, admin_key: str, url: str) -> None:
    with pytest.raises(ResponseError) as refused:
        client.pull("demo")
    assert refused.value.status_code == 403
    with Client(host=url, headers={"Authorization": f"Bearer {admin_key}"}, timeout=60) as admin:
        assert [part.status for part in admin.pull("demo", stream=True)][-1] == "success"
        assert admin.pull("demo").status == "success"


@pytest.mark.parametrize("change", ["create", "copy", "delete", "push"])
def test_what_changes_the_catalogue_is_refused(client: Client, change: str) -> None:
    calls = {
        "create": lambda: client.create("mine", from_="demo"),
        "copy": lambda: client.copy("demo", "mine"),
        "delete": lambda: client.delete("demo"),
        "push": lambda: client.push("demo"),
    }
    with pytest.raises(ResponseError, match=f"{change} is not supported") as refused:
        calls[change]()
    assert refused.value.status_code == 403


def test_errors_are_those_that_the_client_knows(client: Client) -> None:
    with pytest.raises(ResponseError, match="model 'llama3.2' not found") as missing:
        client.show("llama3.2")
    assert missing.value.status_code == 404
    with pytest.raises(ResponseError, match="options.temperature"):
        client.generate("demo", "Halo", options={"temperature": 9})


def test_thinking(client: Client, slow_client: Client) -> None:
    asked = [{"role": "user", "content": "What is 12 + 7?"}]
    answer = client.chat("demo", asked, think=True, options={"temperature": 0, "num_predict": 200})
    parts = list(client.chat("demo", asked, think=True, stream=True, options={"temperature": 0, "num_predict": 200}))
    assert "".join(part.message.thinking or "" for part in parts) == (answer.message.thinking or "")
    assert not client.chat("demo", asked, think=False, options=GREEDY).message.thinking
    with pytest.raises(ResponseError, match="does not support thinking"):
        list(slow_client.chat("echo", asked, think=True, stream=True))


def test_a_stream_that_is_left_is_read_to_its_end_by_its_session(slow_client: Client) -> None:
    text = "It took the ferry a whole night."
    stream = slow_client.chat("echo", [{"role": "user", "content": text}], stream=True)
    assert next(iter(stream)).message.content == "I"
    base = str(slow_client._client.base_url)
    body = {"model": "echo", "messages": [{"role": "user", "content": text}]}
    with httpx.stream("POST", f"{base}/api/chat", json=body, headers={"X-Session-Id": "left"}) as answer:
        first = next(answer.iter_lines())
    followed = httpx.get(f"{base}/v1/stream/left", timeout=30)
    lines = [line.removeprefix("data: ") for line in followed.text.splitlines() if line.startswith("data: ")]
    assert lines[0] == first
    assert "".join(json.loads(line)["message"]["content"] for line in lines) == text


# What other programs send, as they send it.
OPEN_WEBUI: dict[str, Any] = {
    "model": "demo:latest",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
    "options": {"num_predict": 4, "temperature": 0.8, "num_ctx": 2048, "stop": ["zzz"], "mirostat": 0},
    "keep_alive": "5m",
    "stream": True,
    "metadata": {"chat_id": "x"},
}
CONTINUE: dict[str, Any] = {
    "model": "demo",
    "messages": [{"role": "user", "content": "Hello"}],
    "options": {"num_predict": 4, "num_ctx": 8192, "stop": ["<|im_end|>"], "temperature": 0.5, "mirostat": None},
    "keep_alive": 1800,
    "stream": True,
}


@pytest.mark.parametrize("body", [OPEN_WEBUI, CONTINUE], ids=["Open WebUI", "Continue"])
def test_recorded_bodies_of_other_programs(url: str, api_key: str, body: dict[str, Any]) -> None:
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {api_key}"}, timeout=60) as http:
        answer = http.post("/api/chat", json=body)
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert answer.status_code == 200 and lines[-1]["done"] and lines[-1]["eval_count"] <= 4
        assert lines[-1]["model"] == body["model"]
        for method, path, given in (
            ("GET", "/api/version", None),
            ("GET", "/api/tags", None),
            ("GET", "/api/ps", None),
            ("POST", "/api/show", {"name": "demo:latest"}),
            ("POST", "/api/embed", {"model": "demo-embedding:latest", "input": ["kopi"], "truncate": True}),
        ):
            assert http.request(method, path, json=given).status_code == 200, path
