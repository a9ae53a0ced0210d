"""`tis bench` against a server whose delays are known, and against ours."""

import asyncio
import json
import random
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse

from tests.cli.tis_process import tis
from tests.serving import free_port, listening, served, settings_with
from tis.cli.bench import MeasuredRequest, open_arrivals, percentile, random_pauses, spread
from tis.http.transport.limits import TransportLimits

pytestmark = pytest.mark.long

FIRST, GAP, NUM_TOKENS, TAIL = 0.2, 0.04, 6, 0.3


def chunk(text: str) -> str:
    return f"data: {json.dumps({'choices': [{'delta': {'content': text}}]})}\n\n"


async def paced() -> AsyncIterator[str]:
    yield 'data: {"choices": [{"delta": {"role": "assistant", "content": ""}}]}\n\n'
    await asyncio.sleep(FIRST)
    yield chunk("a")
    for _ in range(NUM_TOKENS - 1):
        await asyncio.sleep(GAP)
        yield chunk("b")
    await asyncio.sleep(TAIL)  # no token comes in it
    yield f"data: {json.dumps({'choices': [], 'usage': {'prompt_tokens': 7, 'completion_tokens': NUM_TOKENS}})}\n\n"
    yield "data: [DONE]\n\n"


class PacedServer:
    """An OpenAI server that answers after known times, and refuses every fourth request if it is told to."""

    def __init__(self) -> None:
        self.app = FastAPI(openapi_url=None)
        self.prompts: list[str] = []
        self.num_at_once = self.max_at_once = 0
        self.refuses = False
        self.app.get("/v1/models")(self.models)
        self.app.post("/v1/chat/completions")(self.answer)

    async def models(self) -> dict[str, object]:
        return {"data": [{"id": "paced"}]}

    async def answer(self, request: Request) -> object:
        body = await request.json()
        self.prompts.append(body["messages"][0]["content"])
        if self.refuses and len(self.prompts) % 4 == 0:
            return JSONResponse({"error": {"message": "too many"}}, 429)
        return StreamingResponse(self._counted(), media_type="text/event-stream")

    async def _counted(self) -> AsyncIterator[str]:
        self.num_at_once += 1
        self.max_at_once = max(self.max_at_once, self.num_at_once)
        async for block in paced():
            yield block
        self.num_at_once -= 1


@pytest.fixture
def paced_server() -> Iterator[tuple[str, PacedServer]]:
    server = PacedServer()
    with listening(server.app, TransportLimits()) as url:
        yield url, server


def bench(folder: Path, url: str, *arguments: str) -> dict[str, object]:
    done = tis("bench", url, "--json", *arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_closed_arrivals_measure_what_the_server_does(tmp_path: Path, paced_server: tuple[str, PacedServer]) -> None:
    url, server = paced_server
    found = bench(tmp_path, f"{url}/v1", "--requests", "12", "--concurrency", "3", "--prompt-words", "20")
    assert (found["succeeded"], found["failed"], found["tokens"], found["model"]) == (12, 0, 12 * NUM_TOKENS, "paced")
    # A busy machine adds to a time, and takes nothing from it.
    for name, seconds in (("first_token_ms", FIRST), ("gap_ms", GAP), ("per_token_ms", GAP)):
        shown = found[name]
        assert isinstance(shown, dict)
        assert seconds * 1000 * 0.9 <= shown["p50"] <= seconds * 1000 + 40, name
        assert shown["p50"] <= shown["p90"] <= shown["p99"] <= shown["max"]
    assert server.max_at_once == 3
    assert len(set(server.prompts)) == 12 and {len(one.split()) for one in server.prompts} == {20}


@pytest.mark.slow
def test_open_arrivals_do_not_wait_for_answers(tmp_path: Path, paced_server: tuple[str, PacedServer]) -> None:
    url, server = paced_server
    server.refuses = True
    found = bench(tmp_path, url, "--requests", "12", "--rate", "40")
    assert (found["succeeded"], found["failed"]) == (9, 3)
    assert found["errors"] == {"ApiRefused: 429: too many": 3}
    assert server.max_at_once > 4


def test_open_arrivals_begin_when_they_are_due() -> None:
    begun = []
    lock = threading.Lock()

    def ask(body: dict[str, object]) -> MeasuredRequest:
        with lock:
            begun.append(body["n"])
        return MeasuredRequest(first=0.1)

    assert len(open_arrivals(ask, [{"n": number} for number in range(5)], [0.01] * 5)) == 5
    assert sorted(map(str, begun)) == list("01234")


def test_open_arrivals_are_by_chance_and_have_the_rate_that_was_asked_for() -> None:
    pauses = random_pauses(random.Random(1), 20, 4.0)
    assert sum(pauses) == pytest.approx(20 / 4.0)
    assert min(pauses) < 0.5 / 4.0 and max(pauses) > 2 / 4.0


def test_percentiles_are_those_of_numpy() -> None:
    values = sorted(np.random.default_rng(0).gamma(2, 0.1, 37).tolist())
    for percent in (0, 50, 90, 99, 100):
        assert percentile(values, percent) == pytest.approx(np.percentile(values, percent))
    shown = spread(values)
    assert shown and shown["mean"] == pytest.approx(1000 * np.mean(values), abs=0.01)
    assert spread([]) is None


@pytest.mark.slow
def test_the_table_of_our_own_server(tmp_path: Path) -> None:
    with served(settings_with(model_repo_id="echo?tokens_per_second=200", served_model_name="echo")) as server:
        done = tis("bench", server.url, "--requests", "6", "--concurrency", "2", "--max-tokens", "9", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"echo at {server.url}, arrivals closed, 2 at once"
    assert lines[1].startswith("6 answers, 0 failures in ")
    assert [line.split("  ")[0] for line in lines[3:]] == [
        "milliseconds",
        "first token",
        "gap",
        "per token",
        "end to end",
    ]


@pytest.mark.slow
def test_without_a_server_it_is_one_line(tmp_path: Path) -> None:
    done = tis("bench", f"http://127.0.0.1:{free_port()}", folder=tmp_path)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "Cannot measure: " in done.stderr
