"""The demo model in two processes behind a third: the same text as asking directly, whoever is killed."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.faults.mortal_server import durable, running
from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import blocks_of, text_of
from tests.serving import Process, free_port, server_process, wait_until_loaded
from tests.upstream.gateway import client_of, gateway, write_catalogue
from tests.upstream.test_several_upstreams import Reading, num_running

pytestmark = [pytest.mark.slow, pytest.mark.long]

DEMO = {"MODEL_REPO_ID": "models/demo", "TORCH_DTYPE": "float32", "EAGER_LOAD_MODEL": "1", "LOG_LEVEL": "warning"}
QUESTIONS = ("Tell me a short story.", "Siapa kamu?", "What is 12 + 7?")
STORY = said("Tell me a long story.", temperature=0, max_tokens=400)
# Goes on behind its own end, so that there is time to kill; but ends that are ignored are in no text to continue.
ENDLESS_STORY = {**STORY, "ignore_eos": True}


class DemoUpstreams:
    """Two servers of the demo model, each of which is started again after a test has killed it."""

    def __init__(self) -> None:
        self._stacks = [ExitStack(), ExitStack()]
        self._ports = [free_port(), free_port()]
        self.processes: list[Process] = [self._start(number) for number in (0, 1)]
        for one in self.processes:
            wait_until_loaded(one.url)

    @property
    def urls(self) -> Sequence[str]:
        return [f"{one.url}/v1" for one in self.processes]

    @property
    def busy(self) -> Process:
        [serving] = [one for one in self.processes if num_running(one)]
        return serving

    def restart(self, process: Process) -> None:
        number = self.processes.index(process)
        self._stacks[number].close()
        self.processes[number] = self._start(number)
        wait_until_loaded(self.processes[number].url)

    def close(self) -> None:
        for stack in self._stacks:
            stack.close()

    def _start(self, number: int) -> Process:
        self._stacks[number] = ExitStack()
        return self._stacks[number].enter_context(server_process(**DEMO, PORT=str(self._ports[number])))


@pytest.fixture(scope="module")
def pair() -> Iterator[DemoUpstreams]:
    both = DemoUpstreams()
    yield both
    both.close()


def asked(url: str, body: dict[str, Any]) -> Any:
    return httpx2.post(f"{url}{CHAT}", json=body, timeout=60).json()["choices"]


def test_the_text_is_that_of_asking_directly(pair: DemoUpstreams, tmp_path: Path) -> None:
    with gateway(tmp_path, *pair.urls, upstream_model="demo") as server:
        for question in QUESTIONS:
            for more in ({"temperature": 0}, {"temperature": 1.1, "seed": 5}, {"temperature": 0, "n": 2}):
                body = said(question, max_tokens=60, **more)
                assert asked(server.url, body) == asked(pair.processes[0].url, body)
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        body = said("What is 12 + 7?", temperature=0, max_tokens=60, response_format=form)
        assert asked(server.url, body) == asked(pair.processes[0].url, body)


def test_an_answer_is_the_same_when_its_upstream_is_killed(pair: DemoUpstreams, tmp_path: Path) -> None:
    whole = asked(pair.processes[0].url, STORY)[0]["message"]["content"]
    with gateway(tmp_path, *pair.urls, upstream_model="demo") as server, client_of(server) as client:
        reading = Reading(client, {**ENDLESS_STORY, "session_id": "killed"})
        reading.until_blocks(30)
        serving = pair.busy
        os.kill(serving.popen.pid, signal.SIGKILL)
        blocks = blocks_of(reading.rest())
    pair.restart(serving)
    assert [block.index for block in blocks] == list(range(len(blocks)))
    assert blocks[-1].data == "[DONE]"
    assert text_of(blocks).startswith(whole)


@pytest.mark.anyio
async def test_an_answer_goes_on_after_a_kill_of_the_server_in_front(pair: DemoUpstreams, tmp_path: Path) -> None:
    whole = asked(pair.processes[0].url, STORY)[0]["message"]["content"]
    path = write_catalogue(tmp_path, pair.urls, upstream_model="demo")
    variables = durable(tmp_path, MODEL_CONFIG=str(path), MODEL_REPO_ID="far")
    async with running(tmp_path, **variables) as server:
        with httpx2.Client(base_url=server.url, timeout=60) as client:
            reading = Reading(client, {**ENDLESS_STORY, "session_id": "front"})
            reading.until_blocks(30)
            server.kill()
        shown = blocks_of(reading.text)
        await server.start()
        with httpx2.Client(base_url=server.url, timeout=60) as client:
            rest = client.get("/v1/stream/front", headers={"Last-Event-ID": shown[-1].id})
            again = client.get("/v1/stream/front")
    assert rest.status_code == 200
    blocks = [*shown, *blocks_of(rest.text)]
    assert [block.index for block in blocks] == list(range(len(blocks)))
    assert text_of(blocks).startswith(whole) and blocks[-1].data == "[DONE]"
    assert list(blocks_of(again.text)) == blocks
