"""kill -9 while answers of a model take turns: each goes on where it was, byte for byte."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine.batching.grammars import make_folder
from tests.faults.checker import Reference, check, final_text
from tests.faults.forms import short_or_long
from tests.faults.history import Client, connections_of
from tests.faults.mortal_server import SharedServer
from tests.faults.test_kill import come_back, read_again, seen_blocks
from tests.openai_api.test_chat import said

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.anyio]

NUM_CLIENTS, LENGTH = 3, 80
KILLS = tuple(range(20, 150, short_or_long(100, 30)))  # after so many blocks


@pytest.fixture(params=["Zamba2", "RecurrentGemma"][: short_or_long(1, 2)])
def shared_turns(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServer]:
    folder = make_folder(tmp_path_factory.mktemp("turns") / "model", request.param)
    shared = SharedServer(
        lambda: tmp_path_factory.mktemp("turns"),
        MODEL_REPO_ID=str(folder),
        TORCH_DTYPE="float32",
        EAGER_LOAD_MODEL="1",
        LOAD_WAIT_SECONDS="120",
    )
    yield shared
    shared.close()


def _asked(session: str, number: int) -> dict[str, Any]:
    how: dict[str, Any] = {
        "max_tokens": LENGTH,
        "ignore_eos": True,
        "seed": number,
        "temperature": 1.0,
        "n": 1 + number % 2,
    }
    return said(f"Halo {number}!", session_id=f"{session}-{number}", stream=True, **how)


async def test_answers_that_take_turns_survive_kills(shared_turns: SharedServer) -> None:
    async with shared_turns.running() as server:
        uncut = [await Client(server.url, _asked("uncut", number)).follow() for number in range(NUM_CLIENTS)]
        references = {
            (f"/cut-{number}", 0): Reference(
                [str(final_text(client.blocks, choice)) for choice in range(1 + number % 2)], finish_reason="length"
            )
            for number, client in enumerate(uncut)
        }
        clients = [Client(server.url, _asked("cut", number)) for number in range(NUM_CLIENTS)]
        following = asyncio.gather(come_back(clients))
        for at_least in KILLS:
            await seen_blocks(clients, at_least)
            server.kill()
            await server.start()
        await following
        check(connections_of([*clients, *await read_again(server, clients)]), references)
