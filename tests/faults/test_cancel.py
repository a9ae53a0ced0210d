"""Cancelled at any moment: it ends soon, says so, and stays so. With the demo model: it has a queue and a prefill."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from tests.faults.checker import Reference, check, check_cancelled, final_text
from tests.faults.history import Client, connections_of
from tests.faults.mortal_server import MortalServer, durable, post, running
from tests.openai_api.test_chat import CHAT, said

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.anyio]

# Special tokens have no text, and an answer of these alone makes no events.
NO_END = {str(token_id): -100 for token_id in range(2028, 2048)}
GROUP = 32  # events that the store keeps at once: so many may be on their way


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """For a server that all these tests share: it loads a model."""
    return "asyncio"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MortalServer]:
    folder = tmp_path_factory.mktemp("cancel")
    # Sixteen tokens a step: the prefill of a long prompt takes many.
    one_at_a_time = {"MAX_BATCH_SIZE": "1", "MAX_BATCH_TOKENS": "16", "LOAD_WAIT_SECONDS": "120"}
    async with running(folder, **durable(folder, MODEL_REPO_ID="models/demo", **one_at_a_time)) as server:
        await post(server.url, CHAT, said("Halo", max_tokens=1))
        yield server


async def begin(server: MortalServer, name: str, prompt: str = "Halo", blocks: int = 3) -> Client:
    body = said(prompt, session_id=name, ignore_eos=True, max_tokens=4000, temperature=0, logit_bias=NO_END)
    client = Client(server.url, body)
    await client.connect()
    await client.read(blocks=blocks)
    assert not client.is_over
    return client


async def cancel(server: MortalServer, client: Client) -> str:
    answer = await post(server.url, f"/v1/cancel/{client.session_id}")
    told = answer.json()
    assert (answer.status_code, told["ok"], told["session_id"]) == (200, True, client.session_id)
    return str(told["status"])


async def ends_by_a_cancel(server: MortalServer, client: Client) -> None:
    """For this reader soon, for one who comes later as well."""
    reading = asyncio.create_task(client.read())
    assert await cancel(server, client) == "cancelled"
    told_at = time.monotonic()
    async with asyncio.timeout(30):
        connection = await reading
    assert connection.end == "whole"
    check_cancelled(connection, told_at, max_late_blocks=GROUP)
    await is_cancelled_for_everybody(client)


async def is_cancelled_for_everybody(client: Client) -> None:
    again = Client(client.url, client.body)
    await again.follow()
    reference = Reference(final_text(client.blocks), ("cancelled",))
    check(connections_of([client, again]), {(client.session, 0): reference})


async def test_while_it_is_queued(server: MortalServer) -> None:
    first = await begin(server, "first")
    queued = await begin(server, "queued", blocks=1)
    await ends_by_a_cancel(server, queued)
    assert final_text(queued.blocks) == ""
    await first.read(blocks=20)  # goes on
    assert first.last.end == "open"
    await ends_by_a_cancel(server, first)


async def test_in_prefill(server: MortalServer) -> None:
    client = await begin(server, "prefill", prompt="Tell me a story. " * 1500, blocks=1)
    await ends_by_a_cancel(server, client)
    assert final_text(client.blocks) == ""


async def test_in_decode_and_twice(server: MortalServer) -> None:
    client = await begin(server, "decode", blocks=10)
    await ends_by_a_cancel(server, client)
    assert await cancel(server, client) == "cancelled"
    await is_cancelled_for_everybody(client)
    assert final_text(client.blocks)


async def test_after_the_end(server: MortalServer) -> None:
    client = Client(server.url, said("Halo", session_id="over", max_tokens=5))
    await client.follow()
    assert [await cancel(server, client) for _ in range(2)] == ["finished"] * 2
    again = Client(server.url, client.body)
    await again.follow()
    check(connections_of([client, again]), {("/over", 0): Reference(final_text(client.blocks), num_tokens=5)})
