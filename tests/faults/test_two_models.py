"""Two models in one server: what one of them is asked changes nothing for those who read the other."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.checker import Reference, check
from tests.faults.forms import short_or_long
from tests.faults.history import Client, connections_of
from tests.faults.hostile.grammar_rows import schemas
from tests.faults.hostile.measured_server import measuring
from tests.faults.mortal_server import MortalServer, get, post, running
from tests.loop_pauses import MAX_CROWDED_PAUSE_SECONDS
from tests.openai_api.test_chat import CHAT, said
from tests.serving import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

NUM_SESSIONS, READERS_EACH = 20, 55
SLOW = ["boom", "tree", "states", "30,000 words", "1,000 properties", "30 optional properties in 30", "all of all"]
NUM_ASKED = 12
_TOKENS = short_or_long(120, 600)
_CATALOGUE = """
models:
  one:
    repo: {demo}
    memory_mb: {memory_mb}
  two:
    repo: {demo}
    memory_mb: {memory_mb}
  paced:
    repo: echo?tokens_per_second=10
"""


@asynccontextmanager
async def two_models(folder: Path, **variables: str) -> AsyncIterator[MortalServer]:
    demo = REPOSITORY / "models" / "demo"
    weights_mb = -(-(demo / "model.safetensors").stat().st_size // 2**20)
    (folder / "models.yaml").write_text(_CATALOGUE.format(demo=demo, memory_mb=weights_mb + 5))
    defaults = {"TORCH_DTYPE": "float32", "EAGER_LOAD_MODEL": "1", "LOAD_WAIT_SECONDS": "120"}
    defaults |= {"MODEL_CONFIG": str(folder / "models.yaml"), "MODEL_REPO_ID": "one", "MODELS": "two,paced"}
    defaults |= {"MAX_CONTEXT_TOKENS": "1024", "MAX_QUEUE_SIZE": "200"}
    async with running(folder, program=measuring(folder), **{**defaults, **variables}) as server:
        yield server


async def metric(server: MortalServer, name: str) -> float:
    lines = (await get(server.url, "/metrics")).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name) and line[len(name)] in " {")


async def test_1100_streams_go_on_while_schemas_compile(tmp_path: Path) -> None:
    text = " ".join(f"word{number}" for number in range(30))
    async with two_models(tmp_path, MAX_CONNECTIONS_PER_ADDRESS="0") as server:
        await post(server.url, CHAT, said("Halo", model="two", max_tokens=1))
        bodies = [said(f"{number} {text}", model="paced", session_id=f"s{number}") for number in range(NUM_SESSIONS)]
        readers = [Client(server.url, body) for body in bodies for _ in range(READERS_EACH)]
        for reader in readers:
            await reader.connect()
        (tmp_path / "pauses").write_text("")
        streams = asyncio.gather(*(reader.follow() for reader in readers))
        forms = [{"type": "json_schema", "json_schema": {"name": "x", "schema": schemas()[name]}} for name in SLOW]
        answers = await asyncio.gather(
            *(post(server.url, CHAT, said("Halo", model="two", max_tokens=4, response_format=form)) for form in forms)
        )
        assert not streams.done(), "the streams were over before the schemas were compiled"
        await streams
        assert {answer.status_code for answer in answers} <= {200, 400}, [answer.text[:200] for answer in answers]
        references = {(f"/s{number}", 0): Reference(f"{number} {text}") for number in range(NUM_SESSIONS)}
        check(connections_of(readers), references)
        pauses = [json.loads(line) for line in (tmp_path / "pauses").read_text().splitlines()]
        longest = max(pauses, key=lambda one: one["seconds"] - one["gc"], default={"seconds": 0, "gc": 0})
        assert longest["seconds"] - longest["gc"] <= MAX_CROWDED_PAUSE_SECONDS, longest


async def test_a_model_without_room_in_its_cache_preempts_its_own_and_the_other_goes_on(tmp_path: Path) -> None:
    """Each has declared memory for few contexts; together they are asked for ten times as much."""

    def asked(model: str, number: int) -> dict[str, Any]:
        text = f"Cerita nomor {number}. " * 20
        return said(text, model=model, temperature=0.9, seed=number, max_tokens=_TOKENS, ignore_eos=True)

    async with two_models(tmp_path) as server:
        alone = [(await post(server.url, CHAT, asked("one", number))).json()["choices"] for number in range(NUM_ASKED)]
        before = await metric(server, "tis_num_preemptions_total")
        models = ["one", "two"]
        together = await asyncio.gather(
            *(post(server.url, CHAT, asked(model, number)) for number in range(NUM_ASKED) for model in models)
        )
        answers = [answer.json()["choices"] for answer in together]
        assert answers == [choices for choices in alone for _ in models]
        assert await metric(server, "tis_num_preemptions_total") > before, "there was no pressure"
        assert (await get(server.url, "/ready")).status_code == 200
