"""kill -9 while raw prompts are continued: lists of them, echoes and log probabilities go on, byte for byte."""

import asyncio
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest

from tests.engine.batching.grammars import make_folder
from tests.faults.checker import Reference, check, final_text
from tests.faults.forms import short_or_long
from tests.faults.history import Client, Seen, connections_of
from tests.faults.mortal_server import MortalServer, SharedServer
from tests.faults.test_kill import PACED, come_back, read_again, seen_blocks, story

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

COMPLETIONS = "/v1/completions"
ROUNDS, KILLS_PER_ROUND = short_or_long(2, 10), 3
PROMPTS = [story(number, 60) for number in range(3)]
MANY = [f"{number:03}" for number in range(40)]  # more than are computed at once


def _completion(server: MortalServer, session: str, prompt: Any, **more: Any) -> Client:
    body = {"prompt": prompt, "max_tokens": 400, "session_id": session, **more}
    return Client(server.url, body, path=COMPLETIONS)


def _clients(server: MortalServer, prefix: str) -> tuple[list[Client], dict[tuple[str, int], Reference]]:
    """The echo repeats a prompt. With `echo`, it stands before the answer."""
    usage = {"include_usage": True}
    asked: list[tuple[Any, Sequence[str], dict[str, Any]]] = [
        (PROMPTS[0], [PROMPTS[0]], {}),
        (PROMPTS[1], [PROMPTS[1]] * 2, {"n": 2, "logprobs": 2, "stream_options": usage}),
        (PROMPTS, [2 * one for one in PROMPTS for _ in range(2)], {"n": 2, "echo": True, "logprobs": 1}),
        (PROMPTS, [2 * one for one in PROMPTS], {"echo": True}),
        (MANY, MANY, {"stream_options": usage}),
    ]
    clients = [
        _completion(server, f"{prefix}-{number}", prompt, **more) for number, (prompt, _, more) in enumerate(asked)
    ]
    references = {
        (client.session, 0): Reference(texts, finish_reason="stop")
        for client, (_, texts, _) in zip(clients, asked, strict=True)
    }
    return clients, references


async def test_completions_survive_kills(shared: SharedServer) -> None:
    chance = Random(11)
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        for number in range(ROUNDS):
            clients, references = _clients(server, f"completions-{number}")
            following = asyncio.gather(come_back(clients))
            seen = 0
            for _ in range(KILLS_PER_ROUND):
                seen += chance.randrange(1, 250)
                await seen_blocks(clients, seen)
                server.kill()
                await server.start()
            await following
            check(connections_of([*clients, *await read_again(server, clients)]), references)


@pytest.fixture
def shared_tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServer]:
    folder = make_folder(tmp_path_factory.mktemp("tiny") / "model", "Qwen3")
    shared = SharedServer(
        lambda: tmp_path_factory.mktemp("tiny"),
        MODEL_REPO_ID=str(folder),
        TORCH_DTYPE="float32",
        EAGER_LOAD_MODEL="1",
        LOAD_WAIT_SECONDS="120",
    )
    yield shared
    shared.close()


def _scored(server: MortalServer, session: str) -> list[Client]:
    how: dict[str, Any] = {"echo": True, "logprobs": 2, "max_tokens": 60, "temperature": 1.0, "ignore_eos": True}
    long = " ".join(PROMPTS) * 8
    return [
        _completion(server, f"{session}-0", [long, PROMPTS[0]], seed=1, **how),
        _completion(server, f"{session}-1", long, n=2, seed=2, **how),
    ]


def _logprobs(blocks: Sequence[Seen], name: str) -> list[Any]:
    parts = [part for block in blocks if not block.is_terminal for part in block.chunk["choices"]]
    by_choice = sorted(
        ((part["index"], number, part["logprobs"]) for number, part in enumerate(parts) if part["logprobs"]),
        key=lambda one: one[:2],
    )
    return [entry for _, _, logprobs in by_choice for entry in logprobs[name]]


@pytest.mark.model
async def test_scores_of_a_model_go_on_behind_those_that_clients_have(shared_tiny: SharedServer) -> None:
    async with shared_tiny.running() as server:
        uncut = _scored(server, "uncut")
        await come_back(uncut, ["POST"])
        clients = _scored(server, "cut")
        # Each start of the server loads the model.
        following = asyncio.gather(*(client.follow("POST", patience=600) for client in clients))
        for at_least in range(2, 100, short_or_long(40, 10)):
            await seen_blocks(clients, at_least)
            server.kill()
            await server.start()
        await following
        references = {
            (client.session, 0): Reference([final_text(before.blocks, choice) for choice in range(2)], num_tokens=120)
            for client, before in zip(clients, uncut, strict=True)
        }
        check(connections_of([*clients, *await read_again(server, clients)]), references)
        for before, client in zip(uncut, clients, strict=True):
            for name in ("tokens", "text_offset"):
                assert _logprobs(client.blocks, name) == _logprobs(before.blocks, name)
            assert len(client.blocks) == len(before.blocks)
