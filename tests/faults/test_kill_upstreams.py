"""Kills of upstreams and of the server in front, at random, under readers that come and go: no answer has a hole."""

import asyncio
import contextlib
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest

from tests.faults.forms import short_or_long
from tests.faults.mortal_server import MortalServer, durable, running
from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import SseBlock, blocks_of, text_of
from tests.upstream.gateway import write_catalogue

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

DEMO = {"MODEL_REPO_ID": "models/demo", "TORCH_DTYPE": "float32", "EAGER_LOAD_MODEL": "1", "LOAD_WAIT_SECONDS": "120"}
QUESTIONS = ("Tell me a long story.", "Siapa kamu?", "Tell me a short story.", "What is 12 + 7?")


def question(number: int, **more: Any) -> dict[str, Any]:
    return said(QUESTIONS[number % len(QUESTIONS)], temperature=0, max_tokens=300, **more)


class Follower:
    """Reads one answer to its end, over lost connections, its own and others'."""

    def __init__(self, number: int, chance: Random) -> None:
        # Longer than its own end, behind which nothing is compared: ends that are ignored are in no text.
        self.body = {**question(number, ignore_eos=True), "session_id": f"s-{number}", "stream": True}
        self.blocks: list[SseBlock] = []
        self._chance = chance

    @property
    def is_over(self) -> bool:
        return bool(self.blocks) and (self.blocks[-1].data == "[DONE]" or '"error":' in self.blocks[-1].data[:12])

    async def follow(self, url: str) -> None:
        async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
            while not self.is_over:
                with contextlib.suppress(httpx2.TransportError):
                    await self._read(http, self._chance.randint(5, 120))
                await asyncio.sleep(0.02)

    async def _read(self, http: httpx2.AsyncClient, count: int) -> None:
        headers = {"Last-Event-ID": self.blocks[-1].id} if self.blocks else {}
        text, before = "", len(self.blocks)
        try:
            async with http.stream("POST", CHAT, json=self.body, headers=headers) as answer:
                if answer.status_code == 503:
                    return
                assert answer.status_code == 200, await answer.aread()
                async for piece in answer.aiter_text():
                    text += piece
                    if text.count("\n\n") >= count:
                        break  # gone, without a word
        finally:
            whole = text[: text.rfind("\n\n") + 2] if "\n\n" in text else ""
            self.blocks += blocks_of(whole)
            assert [block.index for block in self.blocks[before:]] == list(range(before, len(self.blocks)))


async def test_kills_at_random_lose_nothing_and_no_answer_ends_in_silence(tmp_path: Path) -> None:
    chance = Random(7)
    folders = [tmp_path / name for name in ("one", "two", "front")]
    for folder in folders:
        folder.mkdir()
    async with contextlib.AsyncExitStack() as stack:
        backs = [await stack.enter_async_context(running(folder, **DEMO)) for folder in folders[:2]]
        references = await asyncio.gather(*(reference(backs[0].url, number) for number in range(len(QUESTIONS))))
        path = write_catalogue(tmp_path, [f"{one.url}/v1" for one in backs], upstream_model="demo")
        variables = durable(folders[2], MODEL_CONFIG=str(path), MODEL_REPO_ID="far")
        front = await stack.enter_async_context(running(folders[2], **variables))
        followers = [Follower(number, chance) for number in range(short_or_long(8, 40))]
        following = asyncio.gather(*(one.follow(front.url) for one in followers))
        for number in range(short_or_long(3, 20)):
            await until_more(followers, following)
            await kill_and_restart([*backs, front][number % 3])
        async with asyncio.timeout(120):
            await following
    ended = {True: 0, False: 0}
    for number, one in enumerate(followers):
        is_whole = one.blocks[-1].data == "[DONE]"
        ended[is_whole] += 1
        text = text_of([block for block in one.blocks if '"choices"' in block.data])
        expected = references[number % len(QUESTIONS)]
        assert text.startswith(expected) if is_whole else text[: len(expected)] == expected[: len(text)]
    assert ended[True] >= len(followers) // 2, ended  # those with an error say why


async def reference(url: str, number: int) -> str:
    async with httpx2.AsyncClient(base_url=url, timeout=120) as http:
        answer = await http.post(CHAT, json=question(number))
        return str(answer.json()["choices"][0]["message"]["content"])


async def until_more(followers: list[Follower], following: "asyncio.Future[Any]") -> None:
    """Some more events than now have come, or all."""
    wanted = sum(len(one.blocks) for one in followers) + 150
    while sum(len(one.blocks) for one in followers) < wanted and not following.done():  # noqa: ASYNC110
        await asyncio.sleep(0.02)


async def kill_and_restart(server: MortalServer) -> None:
    server.kill()
    await server.start()
