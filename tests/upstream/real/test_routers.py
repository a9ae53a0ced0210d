"""Routers of other people between this server and two more of it: what they pass on, and what a kill does."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import blocks_of, text_of
from tests.serving import Process, server_process, wait_until_live
from tests.test_status import until
from tests.upstream.gateway import client_of, gateway
from tests.upstream.real.engines import EngineProcess, EngineProgram
from tests.upstream.test_several_upstreams import Reading, num_running

pytestmark = pytest.mark.slow
WORKER = "echo?tokens_per_second=40"
LONG = "It took the ferry a night to cross the sea. " * 3
ROUTERS = ("sglang-router", "vllm-router")  # our servers behind them take what vLLM takes
SECONDS = {"connect": 2, "first_token": 60, "next_token": 30, "answer": 120, "probe": 0.2}


@dataclass
class Routed:
    client: httpx2.Client
    router: EngineProcess
    workers: list[Process]

    @property
    def num_running(self) -> float:
        return sum(map(num_running, self.workers))


def program(name: str, workers: list[Process]) -> EngineProgram:
    def arguments(folder: Path, port: int) -> list[str]:
        begin = ["launch"] if name == "sglang-router" else []
        where = ["--host", "127.0.0.1", "--port", str(port), "--worker-urls", *(one.url for one in workers)]
        return [*begin, *where, "--policy", "round_robin"]

    return EngineProgram(name, "vllm", name, arguments, environment="routers")


@pytest.fixture(params=ROUTERS)
def routed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Routed]:
    program(request.param, []).require()
    # Else a worker of ours would wait for a client that is gone to come back.
    variables = {"MODEL_REPO_ID": WORKER, "LOG_LEVEL": "warning", "ANONYMOUS_GRACE_SECONDS": "0"}
    with server_process(**variables) as one, server_process(**variables) as other:
        workers = [one, other]
        for worker in workers:
            wait_until_live(worker.url)
        router = EngineProcess(program(request.param, workers), tmp_path)
        try:
            router.wait_until_ready()
            until(lambda: router.lists_models)
            fields: dict[str, Any] = {
                "upstream_kind": router.of.kind,
                "upstream_model": "echo",
                "upstream_seconds": SECONDS,
            }
            with gateway(tmp_path, f"{router.url}/v1", **fields) as server, client_of(server) as client:
                yield Routed(client, router, workers)
        finally:
            router.kill()


def test_answers_come_through(routed: Routed) -> None:
    for number in range(4):
        choice = routed.client.post(CHAT, json=said(f"Halo {number}")).json()["choices"][0]
        assert (choice["message"]["content"], choice["finish_reason"]) == (f"Halo {number}", "stop")
    streamed = routed.client.post(CHAT, json=said("Halo", stream=True, stream_options={"include_usage": True}))
    blocks = blocks_of(streamed.text)
    assert text_of(blocks) == "Halo" and blocks[-2].chunk["usage"]["completion_tokens"] == 4
    told = routed.client.post("/v1/completions", json={"prompt": "Halo"}).json()
    assert told["choices"][0]["text"] == "Halo"


def test_what_a_worker_refuses_is_a_400(routed: Routed) -> None:
    answer = routed.client.post(CHAT, json=said(""))
    assert (answer.status_code, "empty" in answer.json()["error"]["message"]) == (400, True), answer.text


def test_a_cancel_reaches_the_worker(routed: Routed) -> None:
    reading = Reading(routed.client, said(LONG * 20, session_id="cancelled"))
    reading.until_blocks(5)
    assert routed.num_running == 1
    assert routed.client.post("/v1/cancel/cancelled").status_code == 200
    assert blocks_of(reading.rest())[-1].data == "[DONE]"
    until(lambda: routed.num_running == 0)


def test_an_answer_goes_on_when_a_worker_is_killed(routed: Routed) -> None:
    reading = Reading(routed.client, said(LONG, session_id="killed"))
    reading.until_blocks(10)
    [serving] = [one for one in routed.workers if num_running(one)]
    os.kill(serving.popen.pid, signal.SIGKILL)
    blocks = blocks_of(reading.rest())
    assert [block.index for block in blocks] == list(range(len(blocks)))
    # The echo of what is continued: the other worker was asked to go on behind what clients had.
    assert text_of(blocks).startswith(LONG[:8]) and blocks[-1].data == "[DONE]"
    assert routed.client.post(CHAT, json=said("Halo")).json()["choices"][0]["message"]["content"] == "Halo"


def test_a_dead_router_is_a_503_and_a_new_one_is_found(routed: Routed) -> None:
    routed.router.kill()
    until(lambda: routed.client.get("/ready").status_code == 503)
    assert routed.client.post(CHAT, json=said("Halo")).status_code == 503
    routed.router.start()
    routed.router.wait_until_ready()
    until(lambda: routed.client.get("/ready").status_code == 200)
    until(lambda: routed.client.post(CHAT, json=said("Halo")).status_code == 200)
