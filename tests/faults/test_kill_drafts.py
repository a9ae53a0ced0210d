"""kill -9 while a draft model drafts: the answers are those of a server that has none, byte for byte."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.engine.conftest import DEMO
from tests.engine.cut_models import save_slow_demo
from tests.faults.checker import Reference, check, final_text
from tests.faults.forms import short_or_long
from tests.faults.history import Client, connections_of
from tests.faults.mortal_server import MortalServer, SharedServer
from tests.faults.test_kill import come_back, read_again, seen_blocks
from tests.faults.test_kill_grammar import PEOPLE
from tests.openai_api.test_chat import said

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.anyio]

_SCHEMA = {"type": "json_schema", "json_schema": {"name": "people", "schema": PEOPLE}}
KINDS: list[dict[str, Any]] = [
    {"temperature": 1.0, "ignore_eos": True},
    {"temperature": 0, "ignore_eos": True},
    {"temperature": 1.0, "response_format": _SCHEMA, "reasoning_effort": "none"},
    {"temperature": 0.8, "top_p": 0.9, "presence_penalty": 0.5, "ignore_eos": True, "stop": ["zzz"]},
]
LENGTH = 200
KILLS = tuple(range(30, 400, short_or_long(150, 40)))  # after so many blocks


@pytest.fixture
def slow_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServer]:
    """The demo model drafts for one that says the same and is eleven times as deep."""
    folder: Path = save_slow_demo(tmp_path_factory.mktemp("slow") / "model")
    shared = SharedServer(
        lambda: tmp_path_factory.mktemp("drafts"),
        MODEL_REPO_ID=str(folder),
        TORCH_DTYPE="float32",
        EAGER_LOAD_MODEL="1",
        LOAD_WAIT_SECONDS="120",
        PROMPT_LOOKUP="off",
    )
    yield shared
    shared.close()


def _clients(server: MortalServer, session: str) -> list[Client]:
    return [
        Client(
            server.url,
            said(
                f"Halo {number}!",
                session_id=f"{session}-{number}",
                stream=True,
                **{"seed": number, "max_tokens": 900 if "response_format" in kind else LENGTH} | kind,
            ),
        )
        for number, kind in enumerate(KINDS)
    ]


def _num_accepted(server: MortalServer) -> float:
    lines = httpx2.get(f"{server.url}/metrics").text.splitlines()
    [line] = [one for one in lines if one.startswith('tis_spec_decode_num_accepted_tokens_total{source="draft_model"}')]
    return float(line.split()[1])


async def test_drafted_answers_survive_kills(slow_demo: SharedServer) -> None:
    async with slow_demo.running() as server:
        uncut = _clients(server, "without")
        await come_back(uncut, ["POST"])
        references = {
            (f"/{session}-{number}", 0): Reference(
                [str(final_text(client.blocks, 0))],
                finish_reason="stop" if "response_format" in KINDS[number] else "length",
            )
            for number, client in enumerate(uncut)
            for session in ("with", "cut")
        }
        server.kill()
        await server.start(DRAFT_MODEL=DEMO)
        drafted = _clients(server, "with")
        await come_back(drafted, ["POST"])
        assert _num_accepted(server) > 20  # how many depends on the load of the machine
        cut = _clients(server, "cut")
        following = asyncio.gather(come_back(cut))
        for at_least in KILLS:
            await seen_blocks(cut, at_least)
            server.kill()
            await server.start()
        await following
        check(connections_of([*drafted, *cut, *await read_again(server, cut)]), references)
