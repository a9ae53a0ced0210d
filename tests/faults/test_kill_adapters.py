"""kill -9 while a model and its LoRA adapters write: each answer goes on with its own adapter, byte for byte."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import transformers

from tests.engine.adapters import save_adapter
from tests.engine.conftest import DEMO
from tests.faults.checker import Reference, check, final_text
from tests.faults.forms import short_or_long
from tests.faults.history import Client, connections_of
from tests.faults.mortal_server import SharedServer
from tests.faults.test_kill import come_back, read_again, seen_blocks
from tests.openai_api.test_chat import said

pytestmark = [
    pytest.mark.slow,
    pytest.mark.model,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning"),  # of PEFT itself
]

MODELS = ("demo", "formal", "terse", "formal")
KILLS = tuple(range(10, 130, short_or_long(60, 20)))  # after so many blocks


@pytest.fixture
def shared_adapters(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[SharedServer]:
    model = transformers.AutoModelForImageTextToText.from_pretrained(DEMO).eval()
    targets = r".*language_model.*\.(q_proj|v_proj|up_proj)"
    for seed, name in enumerate(("formal", "terse")):
        save_adapter(model, tmp_path / name, seed, r=4, lora_alpha=8, target_modules=targets)
    shared = SharedServer(
        lambda: tmp_path_factory.mktemp("adapters"),
        MODEL_REPO_ID="models/demo",
        ADAPTERS=f"formal={tmp_path / 'formal'},terse={tmp_path / 'terse'}",
        EAGER_LOAD_MODEL="1",
        LOAD_WAIT_SECONDS="120",
    )
    yield shared
    shared.close()


def _asked(session: str, number: int) -> dict[str, Any]:
    how = {"max_tokens": 300, "ignore_eos": True, "seed": number, "temperature": 1.0, "model": MODELS[number]}
    return said(f"Halo {number}!", session_id=f"{session}-{number}", stream=True, **how)


async def test_answers_of_adapters_survive_kills(shared_adapters: SharedServer) -> None:
    async with shared_adapters.running() as server:
        uncut = [await Client(server.url, _asked("uncut", number)).follow() for number in range(len(MODELS))]
        references = {
            (f"/cut-{number}", 0): Reference([str(final_text(client.blocks, 0))], finish_reason="length")
            for number, client in enumerate(uncut)
        }
        clients = [Client(server.url, _asked("cut", number)) for number in range(len(MODELS))]
        following = asyncio.gather(come_back(clients))
        for at_least in KILLS:
            await seen_blocks(clients, at_least)
            server.kill()
            await server.start()
        await following
        check(connections_of([*clients, *await read_again(server, clients)]), references)
