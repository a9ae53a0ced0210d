"""`transformers serve` behind this server: it speaks less of the API than the others, and ignores what it lacks."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import blocks_of, text_of
from tests.test_status import until
from tests.upstream.gateway import client_of, gateway
from tests.upstream.real.engines import EngineProcess, EngineProgram
from tests.upstream.real.text_model import write_text_model
from tests.upstream.test_several_upstreams import Reading

pytestmark = pytest.mark.slow
SECONDS = {"connect": 10, "first_token": 120, "next_token": 60, "answer": 240, "probe": 0.5}
OURS = EngineProgram(
    "transformers",
    "transformers",
    "transformers",
    lambda folder, port: ["serve", str(folder), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"],
    environment=str(Path(sys.executable).parent.parent),
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    folder = write_text_model(tmp_path_factory.mktemp("model"))
    (cache := tmp_path_factory.mktemp("cache") / "hub").mkdir()  # without one it lists no models, but fails
    engine = EngineProcess(OURS, folder, variables={"HF_HUB_CACHE": str(cache)})
    try:
        engine.wait_until_ready()
        fields: dict[str, Any] = {
            "upstream_kind": "transformers",
            "upstream_model": str(folder),
            "upstream_seconds": SECONDS,
        }
        with gateway(tmp_path_factory.mktemp("front"), f"{engine.url}/v1", **fields) as server:
            with client_of(server) as client:
                client.timeout = 120
                yield client
    finally:
        engine.kill()


def test_chats_and_completions_are_answered(client: httpx2.Client) -> None:
    body = said("Who are you?", temperature=0, max_tokens=60)
    whole = client.post(CHAT, json=body).json()
    assert "demo model" in whole["choices"][0]["message"]["content"]
    assert whole["choices"][0]["finish_reason"] == "stop" and whole["usage"]["completion_tokens"] > 10
    blocks = blocks_of(client.post(CHAT, json={**body, "stream": True}).text)
    assert text_of(blocks) == whole["choices"][0]["message"]["content"] and len(blocks) > 10
    prompt = "<|im_start|>user\nCount to ten.<|im_end|>\n<|im_start|>assistant\n"
    told = client.post("/v1/completions", json={"prompt": prompt, "temperature": 0, "max_tokens": 60}).json()
    assert told["choices"][0]["text"].strip() == "1, 2, 3, 4, 5, 6, 7, 8, 9, 10."


def test_what_it_would_ignore_is_refused_by_name(client: httpx2.Client) -> None:
    form = {"type": "json_object"}
    for name, value in (("n", 2), ("logprobs", True), ("presence_penalty", 0.5), ("response_format", form)):
        answer = client.post(CHAT, json=said("Halo", **{name: value}))
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unsupported_parameter"), name


def test_a_tool_is_called(client: httpx2.Client) -> None:
    place = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    weather = {"type": "function", "function": {"name": "get_weather", "parameters": place}}
    choice = client.post(
        CHAT, json=said("What is the weather in Jakarta?", temperature=0, max_tokens=60, tools=[weather])
    ).json()["choices"][0]
    [call] = choice["message"]["tool_calls"]
    assert (call["function"]["name"], choice["finish_reason"]) == ("get_weather", "tool_calls")


def test_a_cancelled_answer_ends(client: httpx2.Client) -> None:
    reading = Reading(client, said("Tell me a long story.", temperature=0, max_tokens=400, session_id="cancelled"))
    reading.until_blocks(3)
    client.post("/v1/cancel/cancelled")
    assert blocks_of(reading.rest())[-1].data == "[DONE]"
    until(lambda: client.post(CHAT, json=said("Halo", temperature=0, max_tokens=30)).status_code == 200)
