"""A chat that met an obstacle after a server was called: it goes on, or fails, and calls nothing a second time."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.openai_api.responses.mcp.mcp_requests import a_call
from tests.openai_api.responses.mcp.test_resume import Says, a_desk, blocks_of, nothing_attached, services_of
from tests.openai_api.test_chat_mcp_resume import source_of
from tests.streaming.scripted_source import REQUEST, data_of, start_turn
from tis.admission.ticket import Ticket
from tis.chat.resume import resume_with
from tis.engine.answer import Answer
from tis.engine.errors import WorkerDied
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.echo import load_echo
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt
from tis.errors import QueueFull, ServiceError
from tis.http.event_stream import failing_once
from tis.mcp_client.tool_types import McpServer, McpToolResult
from tis.media.loader import MediaLimits, MediaLoader
from tis.openai_api.routes import DIALECTS
from tis.openai_api.wire.chat_writer import fold
from tis.streaming.retention import SessionLimits
from tis.streaming.sessions import Sessions
from tis.streaming.stores.sqlite import SqliteStore

pytestmark = pytest.mark.anyio
ONE_CALL = a_call("say", text="one")


class MortalEngine(LocalEngine):
    """Its worker is dead when it is said to be."""

    is_dead = False

    def submit(self, prepared: PreparedRequest, *, is_resumed: bool = False, ticket: Ticket | None = None) -> Answer:
        if self.is_dead:
            raise WorkerDied("The worker is down.", retry_after=0.01)
        return super().submit(prepared, is_resumed=is_resumed, ticket=ticket)


class Meets(Says):
    """What happens to the desk while the server is called."""

    def __init__(self, happens: Any) -> None:
        super().__init__()
        self._happens = happens

    async def call(self, server: McpServer, name: str, arguments: Mapping[str, Any]) -> McpToolResult:
        result = await super().call(server, name, arguments)
        await self._happens()
        return result


@asynccontextmanager
async def mortal_desk(**rules: Any) -> AsyncIterator[MortalEngine]:
    desk = MortalEngine(
        [CatalogueEntry("m", "echo")], lambda entry, report: load_echo(entry.repo), EngineLimits(**rules)
    )
    await desk.open()
    try:
        yield desk
    finally:
        await desk.close()


@asynccontextmanager
async def kept_sessions(path: Path, desk: LocalEngine, mcp_client: Says) -> AsyncIterator[Sessions]:
    media = MediaLoader(MediaLimits())
    resume_source = resume_with(services_of(desk, mcp_client, media), DIALECTS, resume=True)
    sessions = Sessions(SessionLimits(), SqliteStore(path), resume_source)
    await sessions.open()
    try:
        yield sessions
    finally:
        await sessions.close()
        await media.close()


async def test_a_server_that_ends_lets_the_answer_end_that_called_one() -> None:
    async with a_desk() as desk:

        async def drain() -> None:
            desk.drain()

        mcp_client, sessions = Meets(drain), Sessions(SessionLimits())
        source = await source_of(desk, ONE_CALL, mcp_client)
        session, turn = sessions.start(REQUEST, lambda: source)
        answer = json.loads(fold((await data_of(session, turn))[:-2], turn.summary))
        assert (mcp_client.said, answer["choices"][0]["message"]["content"]) == (["one"], "one")
        assert turn.status == "finished"


async def test_what_is_stopped_between_rounds_goes_on_after_the_restart(tmp_path: Path) -> None:
    async with mortal_desk() as first, a_desk() as second:

        async def die() -> None:
            first.is_dead = True
            first.drain()

        before, after = Meets(die), Says()
        async with kept_sessions(tmp_path / "sessions.db", first, before) as sessions:
            source = await source_of(first, ONE_CALL, before)
            session, turn = sessions.start(REQUEST, lambda: source)
            with pytest.raises(WorkerDied) as told, failing_once(turn):
                await data_of(session, turn)
            assert told.value.headers["x-should-retry"] == "false"
        async with kept_sessions(tmp_path / "sessions.db", second, after) as sessions:
            attached = sessions.find_turn(REQUEST)
            assert attached
            answer = json.loads(fold((await data_of(*attached))[:-2], attached[1].summary))
        assert answer["choices"][0]["message"]["content"] == "one"
        assert (before.said, after.said) == (["one"], [])


async def test_a_worker_that_is_replaced_is_waited_for() -> None:
    async with mortal_desk() as desk:

        async def die() -> None:
            desk.is_dead = True

        mcp_client, sessions = Meets(die), Sessions(SessionLimits())
        source = await source_of(desk, ONE_CALL, mcp_client)
        session, turn = sessions.start(REQUEST, lambda: source)
        with pytest.raises(WorkerDied):
            await data_of(session, turn)
        desk.is_dead = False
        answer = json.loads(fold((await data_of(session, turn))[:-2], turn.summary))
        assert (mcp_client.said, answer["choices"][0]["message"]["content"]) == (["one"], "one")


async def test_its_later_rounds_find_no_queue_full() -> None:
    media, mcp_client = MediaLoader(MediaLimits()), Says()
    async with a_desk() as first, mortal_desk(queue_size=0) as full:
        with pytest.raises(QueueFull):
            full.submit(await full.prepare("m", ChatPrompt([{"role": "user", "content": "Halo"}]), {}))
        source = await source_of(first, ONE_CALL, mcp_client)
        whole = await blocks_of(source)
        [called] = [at for at, block in enumerate(whole) if b'"status"' in block.data]
        resume_source = resume_with(services_of(full, mcp_client, media), DIALECTS, resume=True)
        continued = resume_source(
            source.request, [block.resume_state for block in whole[: called + 1]], nothing_attached
        )
        rest = [block.data for block in await blocks_of(continued)]
        assert rest == [block.data for block in whole[called + 1 :]] and mcp_client.said == ["one"]
    await media.close()


async def test_an_answer_that_failed_after_a_call_is_not_begun_anew() -> None:
    """In memory nobody can go on with it."""
    async with mortal_desk() as desk:

        async def die() -> None:
            desk.is_dead = True

        mcp_client, sessions = Meets(die), Sessions(SessionLimits())
        await sessions.open()
        source = await source_of(desk, ONE_CALL, mcp_client)
        session, turn = sessions.start(REQUEST, lambda: source)
        with pytest.raises(WorkerDied):
            await data_of(session, turn)
        await sessions.close()
        assert turn.status == "failed" and start_turn(sessions)[2] is turn
        with pytest.raises(ServiceError) as told, failing_once(turn):
            fold(await data_of(session, turn), turn.summary)
        assert told.value.status == 503 and told.value.headers["x-should-retry"] == "false"
