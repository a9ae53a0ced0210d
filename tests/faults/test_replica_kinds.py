"""Two servers on one Redis: speech, heard or made, and turns of the assistant go on at the other."""

import json
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from tests.faults import test_kill_speech as speech
from tests.faults import test_kill_transcriptions as transcriptions
from tests.faults.mortal_server import get, post
from tests.faults.replicas import replicas
from tests.faults.test_kill_assistant import read_until_products, stock_a_shop
from tests.redis_server import RedisServer

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


def without(variables: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name not in names}


_OF_A_FILE = ("PERSIST_SESSIONS", "SESSIONS_DB_PATH")


async def test_a_transcription_goes_on_at_the_other_server(tmp_path: Path, redis_server: RedisServer) -> None:
    variables = without(transcriptions.variables(tmp_path), *_OF_A_FILE)
    program, read = transcriptions.PROGRAM, transcriptions.read
    async with replicas(tmp_path, redis_server, 2, program=program, **variables) as (a, b):
        seen = await read(a, "moved", None, "json", until_blocks=4)
        seen += await read(b, "moved", num_blocks(seen) - 1, "json", until_blocks=4)  # while the first one hears it
        a.kill()
        seen += await read(b, "moved", num_blocks(seen) - 1, "json")
        heard = Counter((tmp_path / "diary").read_text().splitlines())
        assert seen == await read(b, "moved", None, "json")
        await a.start()
        assert seen == await read(a, "moved", None, "json")
        assert Counter((tmp_path / "diary").read_text().splitlines()) == heard  # nobody heard it again
        done = json.loads(seen.strip().split("\n\n")[-1].partition("data: ")[2])
    assert (done["type"], done["text"]) == ("transcript.text.done", " ".join(transcriptions.NUMBERS))
    assert heard.total() <= len(transcriptions.NUMBERS) + transcriptions.AT_ONCE + 1


async def test_a_transcription_is_cancelled_at_the_other_server(tmp_path: Path, redis_server: RedisServer) -> None:
    variables = without(transcriptions.variables(tmp_path), *_OF_A_FILE) | {"TONES_SECONDS": "0.3"}
    program, read = transcriptions.PROGRAM, transcriptions.read
    async with replicas(tmp_path, redis_server, 2, program=program, **variables) as (a, b):
        seen = await read(a, "stopped", None, "json", until_blocks=3)
        assert (await post(b.url, "/v1/cancel/stopped")).json()["status"] == "cancelled"
        wholes = [await read(server, "stopped", None, "json") for server in (a, b)]
        assert wholes[0] == wholes[1] and wholes[0].startswith(seen)
        heard = set((tmp_path / "diary").read_text().splitlines())
    assert heard < set(transcriptions.NUMBERS)


async def test_a_speech_goes_on_at_the_other_server(tmp_path: Path, redis_server: RedisServer) -> None:
    variables = without(speech.variables(tmp_path), *_OF_A_FILE)
    async with replicas(tmp_path, redis_server, 2, **variables) as (a, b):
        seen = await speech.read(a, "moved", None, "flac", until_blocks=2)
        a.kill()
        seen += await speech.read(b, "moved", num_blocks(seen) - 1, "flac")
        assert await speech.num_made(b) > 0
        assert seen == await speech.read(b, "moved", None, "flac")
        whole = await speech.read(b, "whole", None, "flac")
    assert seen.replace("moved", "whole") == whole and "speech.audio.done" in seen


@pytest.mark.model
async def test_a_turn_of_the_assistant_goes_on_at_the_other_server(tmp_path: Path, redis_server: RedisServer) -> None:
    variables = {"MODEL_REPO_ID": "models/demo", "ASSISTANT_MODEL": "demo", "EAGER_LOAD_MODEL": "1"}
    variables |= {"DATABASE_URL": f"sqlite:///{tmp_path}/market.db", "MARKETPLACE_AUTH": "open"}
    async with replicas(tmp_path, redis_server, 2, **variables) as (a, b):
        await stock_a_shop(a)
        first = await read_until_products(a)
        session_id = json.loads(first[0].partition("data: ")[2])["session_id"]
        a.kill()
        url = f"/api/chat/stream/{session_id}?user_id=1"
        rest = (await get(b.url, url, **{"last-event-id": f"{session_id}:{len(first) - 1}"})).text
        whole = (await get(b.url, url)).text
        assert "".join(f"{block}\n\n" for block in first) + rest.replace(": ping\n", "") == whole
        assert whole.count("event: chat.search.completed") == 1
        await a.start()
        assert (await get(a.url, url)).text == whole
        messages = (await get(a.url, f"/api/chat/conversations/{session_id}?user_id=1")).json()
        assert sorted(message["role"] for message in messages) == ["assistant", "user"]


async def test_who_deletes_his_conversations_at_one_server_deletes_the_answer_of_the_other(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    variables = {"MODEL_REPO_ID": "echo?tokens_per_second=4", "ASSISTANT_MODEL": "echo"}
    variables |= {"DATABASE_URL": f"sqlite:///{tmp_path}/market.db", "MARKETPLACE_AUTH": "open"}
    async with replicas(tmp_path, redis_server, 2, **variables) as (a, b):
        await stock_a_shop(a)
        first = await read_until_products(a)
        session_id = json.loads(first[0].partition("data: ")[2])["session_id"]
        assert redis_server.ask("KEYS", "tis:*:events") != []
        async with httpx2.AsyncClient(base_url=b.url, timeout=60) as http:
            deleted = await http.delete("/api/chat/conversations?user_id=1")
        assert deleted.json() == {"detail": "Deleted 1 conversations."}
        assert redis_server.ask("KEYS", "tis:*:events") == []
        for server in (a, b):
            assert (await get(server.url, f"/api/chat/stream/{session_id}?user_id=1")).status_code in (404, 410)


def num_blocks(text: str) -> int:
    return text.count("\n\n")
