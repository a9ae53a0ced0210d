"""What is not yet an answer when the server drains is refused, wherever it waits."""

import asyncio

import pytest

from tis.cancellation import race_draining
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.echo import load_echo
from tis.errors import BadRequest, Draining

pytestmark = pytest.mark.anyio


def a_desk() -> LocalEngine:
    return LocalEngine([CatalogueEntry("m", "echo")], lambda entry, report: load_echo("echo"), EngineLimits())


async def test_a_waiting_request_gets_a_503_and_its_work_is_cancelled() -> None:
    desk, began, cancelled = a_desk(), asyncio.Event(), asyncio.Event()

    async def fetch_for_ever() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    waiting = asyncio.create_task(race_draining(desk.until_draining(), fetch_for_ever()))
    await began.wait()
    desk.drain()
    async with asyncio.timeout(20):
        with pytest.raises(Draining):
            await waiting
        await cancelled.wait()


async def test_work_that_is_done_is_not_cancelled() -> None:
    async def refuse() -> None:
        raise BadRequest("no")

    async def answer() -> str:
        return "an answer"

    desk = a_desk()
    assert await race_draining(desk.until_draining(), answer()) == "an answer"
    with pytest.raises(BadRequest):
        await race_draining(desk.until_draining(), refuse())
