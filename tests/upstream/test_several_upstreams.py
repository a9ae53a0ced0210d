"""Two servers of ours behind a third: who is asked, and what happens to answers when one of them dies."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import blocks_of, text_of
from tests.serving import Process, free_port, server_process, wait_until_live
from tests.test_status import until
from tests.upstream.gateway import DONE, HEAD, SECONDS, Send, chunk, client_of, event, gateway, scripted
from tis.engine.models.entry_fields import UpstreamSeconds
from tis.upstream.endpoints import Endpoint
from tis.upstream.errors import failed
from tis.upstream.http_client import UpstreamHttp

pytestmark = pytest.mark.long

SLOW = "echo?tokens_per_second=40"
LONG = "It took the ferry a night to cross the sea. " * 3


@contextmanager
def upstreams(*models: str) -> Iterator[Sequence[Process]]:
    with ExitStack() as stack:
        started = [stack.enter_context(server_process(MODEL_REPO_ID=model, LOG_LEVEL="warning")) for model in models]
        for one in started:
            wait_until_live(one.url)
        yield started


@contextmanager
def front_of(folder: Path, processes: Sequence[Process], **fields: Any) -> Iterator[httpx2.Client]:
    urls = [f"{one.url}/v1" for one in processes]
    with gateway(folder, *urls, **{"upstream_model": "echo", **fields}) as server, client_of(server) as client:
        yield client


def num_served(process: Process) -> float:
    lines = httpx2.get(f"{process.url}/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("tis_request_success_total"))


def num_running(process: Process) -> float:
    lines = httpx2.get(f"{process.url}/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("tis_num_requests_running{"))


class Reading:
    """One stream, read piece by piece."""

    def __init__(self, client: httpx2.Client, body: dict[str, Any]) -> None:
        self._stack = ExitStack()
        self._answer = self._stack.enter_context(client.stream("POST", CHAT, json={**body, "stream": True}))
        self._pieces = self._answer.iter_text()
        self.text = ""

    def until_blocks(self, count: int) -> None:
        while self.text.count("\n\n") < count:
            self.text += next(self._pieces)

    def rest(self) -> str:
        self.text += "".join(self._pieces)
        self._stack.close()
        return self.text


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=lambda how: how.name)
def test_an_answer_goes_on_when_its_upstream_dies(how: signal.Signals, tmp_path: Path) -> None:
    seconds = {**SECONDS, "connect": 1}  # three probes without an answer, and it counts as gone
    with upstreams(SLOW, SLOW) as both, front_of(tmp_path, both, upstream_seconds=seconds) as client:
        reading = Reading(client, said(LONG, session_id="s"))
        reading.until_blocks(10)
        [serving] = [one for one in both if num_running(one)]
        os.kill(serving.popen.pid, how)
        blocks = blocks_of(reading.rest())
        assert [block.index for block in blocks] == list(range(len(blocks)))
        assert text_of(blocks) == LONG and blocks[-1].data == "[DONE]"
        [other] = [one for one in both if one is not serving]
        assert num_served(other) == 1
        assert blocks_of(client.get("/v1/stream/s").text)[-1].data == "[DONE]"
        page = client.get("/metrics").text
        assert 'tis_upstream_continued_total{model_name="far"}' in page  # it is not there before the first one
        ups = [
            f'tis_upstream_up{{model_name="far",upstream="{n}"}} {float(one is other)}' for n, one in enumerate(both)
        ]
        assert [line for line in ups if line in page] == ups


def test_an_upstream_that_hangs_before_its_first_word_is_given_up(tmp_path: Path) -> None:
    seconds = {**SECONDS, "connect": 1}
    with upstreams("echo", "echo") as both:
        with front_of(tmp_path, both, upstream_seconds=seconds, upstream_kind="openai") as client:
            assert client.post(CHAT, json=said("Halo")).status_code == 200
            os.kill(both[0].popen.pid, signal.SIGSTOP)
            with ThreadPoolExecutor() as pool:  # at once, so that both are asked
                answers = list(pool.map(lambda text: client.post(CHAT, json=said(text)), ["one", "two", "three"]))
    assert [one.json()["choices"][0]["message"]["content"] for one in answers] == ["one", "two", "three"]


def test_an_answer_that_is_cancelled_at_once_has_an_end(tmp_path: Path) -> None:
    with upstreams(SLOW) as one, front_of(tmp_path, one, limits={"max_batch_size": 1}) as client:
        for number in range(5):
            with client.stream("POST", CHAT, json=said(LONG, session_id=f"c-{number}", stream=True)):
                assert client.post(f"/v1/cancel/c-{number}").status_code == 200
            assert blocks_of(client.get(f"/v1/stream/c-{number}").text)[-1].data == "[DONE]"
        assert client.post(CHAT, json=said("Halo")).json()["choices"][0]["message"]["content"] == "Halo"


def test_before_the_first_token_another_one_is_asked(tmp_path: Path) -> None:
    with scripted(HEAD) as broken, upstreams("echo") as [whole]:
        urls = [broken.url, f"{whole.url}/v1"]
        with gateway(tmp_path, *urls, upstream_model="echo") as server, client_of(server) as client:
            for text in ("Halo", "one", "two", "three"):
                answer = client.post(CHAT, json=said(text))
                assert answer.json()["choices"][0]["message"]["content"] == text
    assert broken.bodies


def test_nobody_is_sent_to_an_upstream_that_failed_three_times(tmp_path: Path) -> None:
    with scripted(HEAD) as broken, upstreams("echo") as [whole]:
        urls = [broken.url, f"{whole.url}/v1"]
        with gateway(tmp_path, *urls, upstream_model="echo", upstream_kind="openai") as server:
            with client_of(server) as client:
                for number in range(12):
                    assert client.post(CHAT, json=said(f"Halo {number}")).status_code == 200
    assert len(broken.bodies) <= 4  # at most one more, after a pause


def test_a_call_that_has_begun_is_not_continued(tmp_path: Path) -> None:
    call = chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "now", "arguments": '{"a"'}}]})
    with scripted(HEAD, call) as one, scripted(HEAD, call) as other:
        with gateway(tmp_path, one.url, other.url) as server, client_of(server) as client:
            blocks = blocks_of(client.post(CHAT, json=said("Halo", stream=True)).text)
    error = blocks[-1].chunk["error"]
    assert error["code"] == "upstream_failed" and "it had begun a tool call" in error["message"]
    assert len([*one.bodies, *other.bodies]) == 1


def test_the_second_one_gets_what_clients_have_and_blanks_come_once(tmp_path: Path) -> None:
    first = [HEAD, chunk({"reasoning_content": "Hm."}), chunk({"content": "It took "}), chunk({"content": "a "})]
    usage = event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}})
    second = [HEAD, chunk({"content": " ferry"}), chunk({"content": "."}, finish="stop"), usage, DONE]
    turns = iter([first, second])

    def script(send: Send) -> None:
        for one in next(turns):
            send(one)

    body = said("Halo", max_tokens=9, stream=True, stream_options={"include_usage": True})
    with scripted(script) as one, gateway(tmp_path, one.url, upstream_kind="vllm") as server:
        with client_of(server) as client:
            blocks = blocks_of(client.post(CHAT, json=body).text)
    assert text_of(blocks) == "It took a ferry."
    usage_of_all = blocks[-2].chunk["usage"]
    assert (usage_of_all["prompt_tokens"], usage_of_all["completion_tokens"]) == (6, 6)
    continued = one.bodies[-1]
    assert continued["messages"][-1] == {"role": "assistant", "content": "It took a", "reasoning_content": "Hm."}
    assert continued["continue_final_message"] and continued["add_generation_prompt"] is False
    assert continued["max_tokens"] == 6


def test_tokens_of_blanks_that_the_second_one_makes_again_count_once(tmp_path: Path) -> None:
    def token(text: str, **more: Any) -> bytes:
        one = {"token": text, "bytes": [*text.encode()], "logprob": -0.5, "top_logprobs": []}
        choice = {"index": 0, "delta": {"content": text}, "logprobs": {"content": [one]}, "finish_reason": None}
        return event({"object": "chat.completion.chunk", "choices": [{**choice, **more}]})

    first = [HEAD, token("Rice."), token("\n"), token("\n")]
    usage = event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 4}})
    second = [HEAD, token("\n"), token("\n"), token("And"), token(" tea", finish_reason="length"), usage, DONE]
    turns = iter([first, second])

    def script(send: Send) -> None:
        for one in next(turns):
            send(one)

    body = said("Halo", max_tokens=5, stream=True, logprobs=True, stream_options={"include_usage": True})
    with scripted(script) as one, gateway(tmp_path, one.url, upstream_kind="vllm") as server:
        with client_of(server) as client:
            blocks = blocks_of(client.post(CHAT, json=body).text)
    assert text_of(blocks) == "Rice.\n\nAnd tea"
    usage_of_all = blocks[-2].chunk["usage"]
    assert (usage_of_all["prompt_tokens"], usage_of_all["completion_tokens"]) == (6, 5)
    assert one.bodies[-1]["messages"][-1]["content"] == "Rice." and one.bodies[-1]["max_tokens"] == 4
    choices = [choice for block in blocks[:-1] for choice in block.chunk["choices"]]
    told = [token["token"] for choice in choices for token in (choice.get("logprobs") or {}).get("content") or ()]
    assert told == ["Rice.", "\n", "\n", "And", " tea"]


def test_a_prompt_goes_where_its_beginning_is_known(tmp_path: Path) -> None:
    with upstreams("echo", "echo") as both, front_of(tmp_path, both) as client:
        system = {"role": "system", "content": "You sell rice. " * 60}
        for number in range(8):
            messages = [system, {"role": "user", "content": f"Halo {number}"}]
            assert client.post(CHAT, json={"messages": messages}).status_code == 200
        assert sorted(map(num_served, both)) == [0, 8]


def test_many_at_once_are_shared_out(tmp_path: Path) -> None:
    with upstreams(SLOW, SLOW) as both, front_of(tmp_path, both) as client:
        readings = [Reading(client, said(f"{number} {LONG}")) for number in range(6)]
        for reading in readings:
            reading.until_blocks(2)
        assert sorted(map(num_running, both)) == [3, 3]
        for reading in readings:
            reading.rest()


def test_an_upstream_that_comes_back_is_asked_again(tmp_path: Path) -> None:
    port = free_port()
    with gateway(tmp_path, f"http://127.0.0.1:{port}/v1", upstream_model="echo") as server, client_of(server) as client:
        assert client.post(CHAT, json=said("Halo")).status_code == 503
        assert client.get("/ready").status_code == 503
        with server_process(MODEL_REPO_ID="echo", PORT=str(port)) as process:
            wait_until_live(process.url)
            until(lambda: client.get("/ready").status_code == 200)
            assert client.post(CHAT, json=said("Halo")).status_code == 200


@pytest.mark.parametrize(
    "listed",
    [
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 2",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2",
    ],
    ids=["none", "of another type", "of no type"],
)
def test_a_list_of_models_may_have_any_type_or_be_absent(listed: bytes, tmp_path: Path) -> None:
    def list_them(send: Send) -> None:
        send(listed + b"\r\nConnection: close\r\n\r\n" + (b"" if b"404" in listed else b"{}"))

    with (
        scripted(HEAD, chunk({"content": "Halo"}, finish="stop"), DONE, models=list_them) as upstream,
        gateway(tmp_path, upstream.url, upstream_kind="openai") as server,
        client_of(server) as client,
    ):
        until(lambda: client.get("/ready").status_code == 200)
        assert client.post(CHAT, json=said("Halo")).json()["choices"][0]["message"]["content"] == "Halo"


def test_answers_that_break_off_together_count_as_one_fault() -> None:
    endpoint = Endpoint(UpstreamHttp("http://127.0.0.1:1/v1", "", UpstreamSeconds(), None))
    begun_at = time.monotonic()
    for _ in range(10):  # it was killed, and is back at once
        endpoint.failed(failed("closed the connection"), begun_at)
    assert endpoint.is_usable
    for _ in range(2):
        endpoint.failed(failed("closed the connection"), time.monotonic())
    assert not endpoint.is_usable
