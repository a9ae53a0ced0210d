"""A state-space model over HTTP: it cannot be batched, and yet nobody waits for the end of another answer."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import jsonschema
import pytest
from openai import OpenAI

from tests.engine.batching.grammars import make_folder
from tests.serving import Served, served, settings_with

pytestmark = [pytest.mark.slow, pytest.mark.model]

CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"enum": ["Bandung", "Medan"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
WEATHER: Any = {"type": "function", "function": {"name": "get_weather", "parameters": CITY}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = make_folder(tmp_path_factory.mktemp("zamba") / "model", "Zamba2")
    with served(settings_with(model_repo_id=str(folder), torch_dtype="float32", load_wait_seconds=120)) as running:
        yield running


@pytest.fixture
def client(server: Served) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=120, max_retries=0)


def stream(client: OpenAI, text: str, max_tokens: int, **more: Any) -> Any:
    more["extra_body"] = {"ignore_eos": True, "thinking_token_budget": 0, **more.get("extra_body", {})}
    [model] = client.models.list().data
    return client.chat.completions.create(
        model=model.id,
        messages=[{"role": "user", "content": text}],
        max_tokens=max_tokens,
        seed=7,
        stream=True,
        **more,
    )


def test_a_short_answer_finishes_while_a_long_one_is_streamed(client: OpenAI, server: Served) -> None:
    begun, may_end = threading.Event(), threading.Event()
    length = 0

    def read_long() -> None:
        nonlocal length
        for _ in stream(client, "Ceritakan!", 3_000, extra_body={"session_id": "long"}):
            length += 1
            begun.set()
        may_end.set()

    reader = threading.Thread(target=read_long)
    reader.start()
    assert begun.wait(60)
    texts = ["".join(chunk.choices[0].delta.content or "" for chunk in stream(client, "Halo", 8)) for _ in range(2)]
    assert texts[0] == texts[1] != "" and not may_end.is_set()
    before = length
    assert httpx2.post(f"{server.url}/v1/cancel/long", timeout=30).status_code == 200
    reader.join(60)
    assert may_end.is_set() and 0 < before <= length < 3_000


def test_a_forced_call_and_a_structured_answer_are_valid(client: OpenAI) -> None:
    [model] = client.models.list().data
    asked: Any = {"model": model.id, "messages": [{"role": "user", "content": "Bagaimana cuacanya?"}], "seed": 3}
    more: Any = {"max_tokens": 200, "extra_body": {"thinking_token_budget": 0}}
    forced: Any = {"type": "function", "function": {"name": "get_weather"}}
    [choice] = client.chat.completions.create(**asked, **more, tools=[WEATHER], tool_choice=forced).choices
    [call] = choice.message.tool_calls
    jsonschema.validate(json.loads(call.function.arguments), CITY)
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY, "strict": True}}
    [choice] = client.chat.completions.create(**asked, **more, response_format=wanted).choices
    jsonschema.validate(json.loads(choice.message.content), CITY)
