"""A server with CACHE_DTYPE=int8 answers over HTTP."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from tests.serving import REPOSITORY, Served, served, settings_with

pytestmark = [pytest.mark.slow, pytest.mark.model]

QUESTION = "Halo! Saya mau tahu dulu, dengan beberapa kalimat yang pendek saja: apa yang bisa kamu bantu untuk saya?"
ASKED: Any = {
    "model": "shop",
    "messages": [{"role": "user", "content": QUESTION}],
    "max_tokens": 24,
    "temperature": 0,
}


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    settings = settings_with(
        model_repo_id=str(REPOSITORY / "models" / "demo"),
        served_model_name="shop",
        cache_dtype="int8",
        cache_tokens=4096,
        load_wait_seconds=120,
    )
    with served(settings) as running:
        yield running


@pytest.fixture
def client(server: Served) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=120, max_retries=0)


def whole(client: OpenAI) -> tuple[str, int]:
    """The text, and how many tokens of the prompt were in the cache."""
    made = client.chat.completions.create(**ASKED)
    return made.choices[0].message.content, made.usage.prompt_tokens_details.cached_tokens


def streamed(client: OpenAI) -> str:
    chunks = client.chat.completions.create(**ASKED, stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def test_answers_are_the_same_whole_streamed_and_behind_a_cached_prefix(client: OpenAI, server: Served) -> None:
    (first, num_cached), (second, num_cached_again) = whole(client), whole(client)
    assert first and first == second == streamed(client)
    assert num_cached < num_cached_again
    text = httpx2.get(f"{server.url}/metrics").text
    assert 'tis_kv_cache_tokens{model_name="shop"} 4096.0' in text
