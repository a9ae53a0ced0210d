"""Chats through one upstream: what clients see is what the upstream said, recorded as every other answer."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import blocks_of, stream, text_of
from tests.openai_api.test_resume import read_blocks
from tests.serving import Served, served, settings_with
from tests.test_status import until
from tests.upstream.gateway import DONE, HEAD, chunk, client_of, event, gateway, scripted

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
LONG = "It took the ferry a night to cross the sea. "


@pytest.fixture(scope="module")
def front(echo_server: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    with (
        gateway(tmp_path_factory.mktemp("front"), f"{echo_server.url}/v1", upstream_model="echo") as server,
        client_of(server) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def slow_front(slow_server: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    with (
        gateway(tmp_path_factory.mktemp("slow"), f"{slow_server.url}/v1", upstream_model="echo") as server,
        client_of(server) as client,
    ):
        yield client


def test_an_answer_is_that_of_the_upstream(front: httpx2.Client, http: httpx2.Client) -> None:
    body = said("Halo 你好", max_tokens=5)
    there, here = http.post(CHAT, json=body).json(), front.post(CHAT, json=body).json()
    assert here["choices"] == there["choices"]
    assert here["model"] == "far" and here["id"] != there["id"]
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    assert [here["usage"][name] for name in names] == [there["usage"][name] for name in names] == [7, 5, 12]


def test_chunks_are_numbered_and_end_with_usage(front: httpx2.Client) -> None:
    answer = front.post(CHAT, json=said("Halo", stream=True, stream_options={"include_usage": True}))
    blocks = blocks_of(answer.text)
    session = answer.headers["x-session-id"]
    assert [block.id for block in blocks] == [f"{session}:{index}" for index in range(len(blocks))]
    assert text_of(blocks) == "Halo" and blocks[-1].data == "[DONE]"
    assert blocks[-3].chunk["choices"][0]["finish_reason"] == "stop"
    assert blocks[-2].chunk["usage"]["total_tokens"] == 8


def test_tokens_come_while_the_upstream_still_writes(slow_front: httpx2.Client) -> None:
    first = read_blocks(slow_front, said(LONG, session_id="live"), 4)
    running = slow_front.get("/v1/stream/live", params={"last_event_id": first[-1].id})
    assert text_of([*first, *blocks_of(running.text)]) == LONG


def test_a_dropped_connection_is_resumed_with_the_same_bytes(slow_front: httpx2.Client) -> None:
    body = said(LONG, session_id="dropped")
    first = read_blocks(slow_front, body, 5)
    second = stream(slow_front, body, **{"Last-Event-ID": first[-1].id})
    assert [*first, *second] == list(stream(slow_front, body))
    assert text_of([*first, *second]) == LONG


def test_a_cancelled_answer_ends_here_and_at_the_upstream(slow_front: httpx2.Client, slow_server: Served) -> None:
    read_blocks(slow_front, said(LONG * 99, session_id="cancelled"), 3)
    assert slow_front.post("/v1/cancel/cancelled").status_code == 200
    last = blocks_of(slow_front.get("/v1/stream/cancelled").text)[-2].chunk["choices"][0]
    assert last["finish_reason"] == "stop" and last["cancelled"]
    engine = slow_server.app.state.engine
    until(lambda: all(status.num_running == 0 for status in engine.statuses))


def test_reasoning_and_calls_keep_their_places(tmp_path: Path) -> None:
    call = '{"name": "weather", "parameters": {"city": "Bandung"}}'
    with (
        served(settings_with(model_repo_id="echo?thinks=1")) as upstream,
        gateway(tmp_path, f"{upstream.url}/v1", upstream_model="echo") as server,
        client_of(server) as client,
        httpx2.Client(base_url=upstream.url) as direct,
    ):
        for text in ("<think>\nHm.\n</think>\n\nHalo", call, f"<think>\nHm.\n</think>\n\n{call}"):
            body = said(text, tools=[WEATHER])
            here, there = (one.post(CHAT, json=body).json()["choices"][0] for one in (client, direct))
            for choice in (here, there):
                for made in choice["message"].get("tool_calls", ()):
                    assert made.pop("id").startswith("call_")
            assert here == there
            assert here["finish_reason"] == ("tool_calls" if "city" in text else "stop")


def test_log_probabilities_and_several_choices_pass(front: httpx2.Client, http: httpx2.Client) -> None:
    for more in ({"logprobs": True, "top_logprobs": 1}, {"n": 2}):
        here, there = (one.post(CHAT, json=said("Halo", **more)).json() for one in (front, http))
        assert here["choices"] == there["choices"]


def test_what_an_upstream_refuses_is_a_400_with_its_reason(front: httpx2.Client) -> None:
    answer = front.post(CHAT, json=said(""))
    assert answer.status_code == 400
    assert "repeats the last message" in answer.json()["error"]["message"]


def test_a_prompt_beyond_the_context_of_the_upstream_is_refused_here(front: httpx2.Client) -> None:
    answer = front.post(CHAT, json=said("a" * 40_000))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded")


def test_what_the_kind_lacks_is_refused_by_name(echo_server: Served, tmp_path: Path) -> None:
    with (
        gateway(tmp_path, f"{echo_server.url}/v1", upstream_model="echo", upstream_kind="openai") as server,
        client_of(server) as client,
    ):
        for name, value in (("top_k", 5), ("min_p", 0.1), ("guided_regex", "a+"), ("continue_final_message", True)):
            messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
            answer = client.post(CHAT, json={"messages": messages, name: value})
            assert answer.status_code == 400, name
            assert answer.json()["error"]["param"] == name
        counted = client.post(f"{CHAT}/input_tokens", json=said("Halo")).json()
        assert counted["is_estimate"] and counted["input_tokens"] > 4
        assert client.post(CHAT, json=said("Halo", top_p=0.5, stop="o")).json()["choices"][0]["message"]["content"] == (
            "Hal"
        )


def test_the_upstream_gets_only_what_somebody_set(tmp_path: Path) -> None:
    reply = (HEAD, chunk({"content": "ok"}), chunk(finish="stop"), DONE)
    with (
        scripted(*reply) as upstream,
        gateway(tmp_path, upstream.url, upstream_kind="openai", upstream_model="there") as server,
        client_of(server) as client,
    ):
        client.post(CHAT, json=said("Halo", user="me", metadata={"a": "b"}, presence_penalty=0.5))
    [body] = upstream.bodies
    body.pop("max_tokens")
    assert body == {
        "model": "there",
        "messages": [{"role": "user", "content": "Halo"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "presence_penalty": 0.5,
    }


def test_the_key_is_sent_and_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FAR_KEY", "sk-very-secret")
    said_back = event({"error": {"message": "no sk-very-secret here", "type": "invalid_request_error"}})
    with (
        scripted(HEAD, said_back) as upstream,
        gateway(tmp_path, upstream.url, upstream_kind="openai", upstream_key_env="FAR_KEY") as server,
        client_of(server) as client,
    ):
        answer = client.post(CHAT, json=said("Halo"))
        shown = [answer.text, *(client.get(path).text for path in ("/v1/models", "/health", "/metrics", "/props"))]
    assert answer.status_code == 400 and "no *** here" in answer.text
    assert "Authorization: Bearer sk-very-secret" in upstream.headers[0]
    assert not [one for one in (*shown, caplog.text) if "very-secret" in one]


def test_the_model_is_described_by_its_upstream(front: httpx2.Client) -> None:
    until(lambda: front.get("/v1/models").json()["data"][0].get("max_model_len") == 32768)
    [model] = front.get("/v1/models").json()["data"]
    assert (model["id"], model["status"]) == ("far", "loaded")


def test_a_session_knows_the_tokens_that_its_upstream_counted(front: httpx2.Client) -> None:
    def made() -> float:
        lines = front.get("/metrics").text.splitlines()
        [line] = [one for one in lines if one.startswith('tis_generation_tokens_total{model_name="far"}')]
        return float(line.split()[-1])

    front.post(CHAT, json=said("a"))
    before = made()
    front.post(CHAT, json=said("Halo"))
    assert made() - before == 4
