"""kill -9 in the middle of answers of Ollama's API: `GET /v1/stream` has exactly the lines that are missing."""

import asyncio
import json
from collections.abc import Sequence
from random import Random
from typing import Any

import httpx2
import pytest

from scripts.demo_model.checks import GET_WEATHER
from tests.faults.forms import short_or_long
from tests.faults.mortal_server import MortalServer, SharedServer, until
from tests.faults.test_kill import PACED, story
from tests.openai_api.test_chat import said
from tests.openai_api.test_tools import CALL

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

NUM_CLIENTS = 10
NUM_KINDS, CALLING, RAW = 5, 3, 4
ROUNDS = short_or_long(3, 30)
_HERMES = "echo?tokens_per_second=80&thinks=1&tool_format=hermes"


class LineReader:
    """Reads lines until the server is gone, and then what comes behind them."""

    def __init__(self, server: MortalServer, path: str, body: dict[str, Any], session_id: str) -> None:
        self._server, self._path, self._body, self.session_id = server, path, body, session_id
        self.lines: list[str] = []

    @property
    def is_over(self) -> bool:
        return bool(self.lines) and json.loads(self.lines[-1]).get("done", True)

    @property
    def cursor(self) -> dict[str, str]:
        return {"Last-Event-ID": f"{self.session_id}:{len(self.lines) - 1}"} if self.lines else {}

    async def follow(self) -> None:
        async with httpx2.AsyncClient(base_url=self._server.url, timeout=60) as http, asyncio.timeout(120):
            while not self.is_over:
                try:
                    await self._read(http)
                except httpx2.TransportError:
                    await asyncio.sleep(0.05)

    async def read_again(self) -> "LineReader":
        """A reader that has seen nothing, of the same answer."""
        fresh = LineReader(self._server, self._path, self._body, self.session_id)
        await fresh.follow()
        return fresh

    async def _read(self, http: httpx2.AsyncClient) -> None:
        if not self.lines:
            headers = {"X-Session-Id": self.session_id}
            async with http.stream("POST", self._path, json=self._body, headers=headers) as answer:
                assert answer.headers["content-type"] == "application/x-ndjson", await answer.aread()
                async for line in answer.aiter_lines():
                    json.loads(line)
                    self.lines.append(line)
            return
        async with http.stream("GET", f"/v1/stream/{self.session_id}", headers=self.cursor) as answer:
            assert answer.status_code == 200, await answer.aread()
            async for line in answer.aiter_lines():
                if line.startswith("id: "):
                    assert line == f"id: {self.session_id}:{len(self.lines)}"
                if line.startswith("data: "):
                    self.lines.append(line.removeprefix("data: "))


def texts_of(reader: LineReader) -> dict[str, str]:
    found = {"content": "", "thinking": "", "response": ""}
    for line in map(json.loads, reader.lines):
        for name in found:
            found[name] += line.get("message", line).get(name, "")
    return found


def different_readers(server: MortalServer, prefix: str) -> list[LineReader]:
    readers = []
    for number in range(NUM_CLIENTS):
        text = f"<think>{story(number, 40)}</think>{story(number, 60)}"
        kinds: Sequence[tuple[str, dict[str, Any]]] = [
            ("/api/chat", said(text, model="echo")),
            ("/api/generate", {"model": "echo", "prompt": text}),
            ("/api/chat", said(text, model="echo", logprobs=True)),
            ("/api/chat", said(f"{text}\n{CALL}", model="echo", tools=[GET_WEATHER])),
            ("/api/generate", {"model": "echo", "prompt": text, "raw": True}),
        ]
        path, body = kinds[number % NUM_KINDS]
        readers.append(LineReader(server, path, body, f"{prefix}-{number}"))
    return readers


async def test_after_a_kill_every_reader_gets_exactly_the_missing_lines(shared: SharedServer) -> None:
    chance = Random(11)
    async with shared.running(MODEL_REPO_ID=_HERMES) as server:
        for number in range(ROUNDS):
            readers = different_readers(server, f"ollama-{number}")
            following = asyncio.gather(*(reader.follow() for reader in readers))
            at_least = chance.randrange(NUM_CLIENTS, NUM_CLIENTS * 80)
            await until(lambda n=at_least, r=readers: sum(len(one.lines) for one in r) >= n, what="lines")  # type: ignore[misc]
            server.kill()
            await server.start()
            await following
            again = await asyncio.gather(*(reader.read_again() for reader in readers))
            for place, (reader, fresh) in enumerate(zip(readers, again, strict=True)):
                assert reader.lines == fresh.lines, reader.session_id
                texts = texts_of(reader)
                if place % NUM_KINDS == RAW:
                    assert texts["response"] == f"<think>{story(place, 40)}</think>{story(place, 60)}"
                else:
                    assert texts["thinking"] == story(place, 40).strip()
                    assert (texts["content"] or texts["response"]).strip() == story(place, 60).strip()
                calls = [line for line in reader.lines if '"tool_calls"' in line]
                assert len(calls) == (place % NUM_KINDS == CALLING)
                last = json.loads(reader.lines[-1])
                assert last["done_reason"] == "stop" and last["eval_count"] == last["prompt_eval_count"]
                assert last["total_duration"] >= last["eval_duration"] > 0


async def test_the_last_line_is_the_same_in_another_process(shared: SharedServer) -> None:
    """Its durations are recorded, not measured once more."""
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        reader = LineReader(server, "/api/chat", said(story(1, 30), model="echo"), "ollama-last")
        await reader.follow()
        server.kill()
        await server.start()
        assert (await reader.read_again()).lines == reader.lines


async def test_with_resume_off_the_last_line_is_an_error(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        reader = LineReader(server, "/api/chat", said(story(2), model="echo"), "ollama-off")
        following = asyncio.create_task(reader.follow())
        await until(lambda: len(reader.lines) > 10, what="lines")
        server.kill()
        await server.start(RESUME_GENERATION="0")
        await following
        assert list(json.loads(reader.lines[-1])) == ["error"]
