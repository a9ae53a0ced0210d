"""An upstream withholds an answer (`content_filter`): every dialect says so in its own word."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import blocks_of
from tests.upstream.gateway import DONE, HEAD, chunk, client_of, event, gateway, scripted

pytestmark = pytest.mark.long

WITHHELD = (HEAD, chunk({"content": "I "}), chunk(finish="content_filter"), DONE)
MESSAGES = [{"role": "user", "content": "Halo"}]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    with (
        scripted(*WITHHELD) as upstream,
        gateway(tmp_path_factory.mktemp("withheld"), upstream.url, upstream_kind="openai") as server,
        client_of(server) as client,
    ):
        yield client


def ask(client: httpx2.Client, path: str, body: dict[str, Any]) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_chat_ends_with_content_filter(client: httpx2.Client) -> None:
    choice = ask(client, CHAT, said("Halo"))["choices"][0]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("content_filter", "I ")
    streamed = blocks_of(client.post(CHAT, json=said("Halo", stream=True)).text)
    assert streamed[-2].chunk["choices"][0]["finish_reason"] == "content_filter"


def test_a_response_is_incomplete_because_of_the_filter(client: httpx2.Client) -> None:
    response = ask(client, "/v1/responses", {"input": "Halo"})
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": "content_filter"})
    assert response["output"][0]["status"] == "incomplete"
    stored = client.get(f"/v1/responses/{response['id']}").json()
    assert stored["incomplete_details"] == {"reason": "content_filter"}


def test_a_message_ends_with_refusal(client: httpx2.Client) -> None:
    message = ask(client, "/v1/messages", {"model": "far", "max_tokens": 50, "messages": MESSAGES})
    assert (message["stop_reason"], message["content"][0]["text"]) == ("refusal", "I ")


def test_ollama_clients_see_why_it_is_done(client: httpx2.Client) -> None:
    answer = ask(client, "/ollama/api/chat", {"model": "far", "messages": MESSAGES, "stream": False})
    assert answer["done"] and answer["done_reason"] == "content_filter"


def test_a_completion_ends_with_content_filter(tmp_path: Path) -> None:
    withheld = event({"choices": [{"index": 0, "text": "I ", "finish_reason": "content_filter"}]})
    with (
        scripted(HEAD, withheld, DONE) as upstream,
        gateway(tmp_path, upstream.url, upstream_kind="openai") as server,
        client_of(server) as client,
    ):
        assert ask(client, "/v1/completions", {"prompt": "Halo"})["choices"][0]["finish_reason"] == "content_filter"
        lines = client.get("/metrics").text.splitlines()
    assert [one for one in lines if one.startswith("tis_request_success_total{") and "content_filter" in one]
