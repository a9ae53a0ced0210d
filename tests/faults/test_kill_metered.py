"""kill -9 in the middle of an answer: what the next process makes of it counts for the key that began it."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.faults.mortal_server import MortalServer, durable, running, until
from tests.http.keys import bearer, entry, write_key_file
from tests.openai_api.test_chat import CHAT, said

pytestmark = [pytest.mark.slow, pytest.mark.anyio]
TEXT = "The ferry left with twelve goats and a judge. " * 4
NUM_TOKENS = len(TEXT)


async def usage(server: MortalServer, name: str) -> Any:
    async with httpx2.AsyncClient(base_url=server.url) as http:
        return (await http.get("/v1/usage", headers=bearer(f"sk-{name}"))).json()


async def read(server: MortalServer, name: str, session: str, most: int) -> list[str]:
    """The blocks of a stream that is begun or found again; at most so many."""
    blocks: list[str] = []
    async with (
        httpx2.AsyncClient(base_url=server.url, timeout=60) as http,
        http.stream(
            "POST", CHAT, json=said(TEXT, stream=True, session_id=session), headers=bearer(f"sk-{name}")
        ) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        async for line in answer.aiter_lines():
            blocks += [line] if line.startswith("data:") else []
            if len(blocks) >= most:
                break
    return blocks


async def test_a_resumed_answer_is_metered_to_its_key_once(tmp_path: Path) -> None:
    keys = write_key_file(tmp_path / "keys.json", entry("shop", "sk-shop", tokens_per_day=10_000), entry("b", "sk-b"))
    variables = durable(tmp_path, MODEL_REPO_ID="echo?tokens_per_second=60", API_KEYS_FILE=str(keys))
    async with running(tmp_path, **variables) as server:
        begun = await read(server, "shop", "metered", 40)
        server.kill()
        await server.start()

        async def is_made() -> bool:
            return bool((await usage(server, "shop"))["completion_tokens"])

        await until(is_made, what="tokens of the resumed answer")
        whole = await asyncio.wait_for(read(server, "shop", "metered", 10**6), 60)
        assert whole[: len(begun)] == begun and whole[-1] == "data: [DONE]"
        after = await usage(server, "shop")
        made = after["completion_tokens"]
        assert 0 < made < NUM_TOKENS - len(begun) / 2
        assert (await usage(server, "b"))["completion_tokens"] == 0
        server.kill()
        stored = server.sessions_path.read_bytes()
        assert b"sk-shop" not in stored and b'"caller": "shop"' in stored
