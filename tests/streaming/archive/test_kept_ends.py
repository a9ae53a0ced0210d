"""The end of a response: clients see it when the database has it, or it says that it is not stored."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tests.marketplace.postgres import Postgres
from tests.redis_server import RedisServer
from tests.streaming.archive.conftest import FAST_ARCHIVE, FORM
from tests.streaming.archive.test_retained_sessions import REQUEST, archiving, begun, found, require_gone
from tests.streaming.scripted_source import ScriptedSource, data_of
from tests.streaming.stores.harness import FAST_REDIS, until
from tis.errors import Draining
from tis.streaming.archive.archiving_store import ArchivingStore
from tis.streaming.archive.sql_archive import SqlArchive
from tis.streaming.errors import StoreUnavailable
from tis.streaming.retention import SessionLimits
from tis.streaming.sessions import Sessions
from tis.streaming.source import Block, ReadAttachments, ResumeSource
from tis.streaming.stores.memory import MemoryStore
from tis.streaming.stores.redis import RedisStore
from tis.streaming.stores.store import Store

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.long]
LIMITS = SessionLimits(sweep_seconds=0.02)


def sessions_on(
    url: str, streams: Store | None = None, resume_source: ResumeSource | None = None, store_seconds: float = 20
) -> Sessions:
    archive = SqlArchive(url, replace(FAST_ARCHIVE, store_seconds=store_seconds))
    store = ArchivingStore(streams or MemoryStore(), archive)
    return Sessions(LIMITS, store, resume_source, retained_form=FORM)


async def test_clients_see_the_end_once_the_database_has_it(postgres: Postgres) -> None:
    url = postgres.new_database("away_for_a_while")
    sessions = sessions_on(url)
    await sessions.open()
    script, turn = begun(sessions, b"1")
    session = sessions.find("me", "letter-1", "letter")
    reading = asyncio.create_task(data_of(session, turn))
    postgres.kill()
    try:
        script.go.set()
        await until(lambda: not archiving(sessions).archive.is_available)
        with pytest.raises(StoreUnavailable):
            sessions.require_archive()
        assert session.recording.next_index == 1 and turn.is_running  # the last event is held back
    finally:
        postgres.start()
    assert await reading == [b"1", b"end"]
    await sessions.close()
    again = sessions_on(url)
    await again.open()
    session = await found(again)
    assert await data_of(session, session.latest) == [b"1", b"end"]
    await again.close()


async def test_a_response_says_that_a_database_which_stays_away_has_not_stored_it(postgres: Postgres) -> None:
    sessions = sessions_on(postgres.new_database("away"), store_seconds=0.05)
    await sessions.open()
    script, turn = begun(sessions, b"1")
    session = sessions.find("me", "letter-1", "letter")
    postgres.kill()
    try:
        script.go.set()
        assert await data_of(session, turn) == [b"1", b"end (not stored)"]
        assert turn.status == "finished"
    finally:
        postgres.start()
    await until(lambda: archiving(sessions).archive.is_available)
    still = await found(sessions)  # as long as a stream is kept
    assert await data_of(still, still.latest) == [b"1", b"end (not stored)"]
    await sessions.delete(still)
    await require_gone(sessions)
    await sessions.close()


async def test_a_conversation_is_refused_while_the_database_is_away(postgres: Postgres) -> None:
    sessions = sessions_on(postgres.new_database("away_for_all"))
    await sessions.open()
    assert REQUEST.retention
    kept = await sessions.save_document("me", "kept", REQUEST.retention, {"photo": b"first"})
    postgres.kill()
    try:
        for name in ("one", "two"):
            with pytest.raises(StoreUnavailable) as refused:
                await sessions.save_document("me", name, REQUEST.retention, {"photo": b"first"})
            assert refused.value.retry_after
        with pytest.raises(StoreUnavailable):
            await found(sessions, "kept")
        with pytest.raises(StoreUnavailable):
            await kept.save_document(b"more", {}, frozenset(), replaced_version=0)
        with pytest.raises(StoreUnavailable):
            await sessions.delete(kept)
    finally:
        postgres.start()
    await until(lambda: archiving(sessions).archive.is_available)
    await require_gone(sessions, "one")
    assert await (await found(sessions, "kept")).document() == b"photo"
    await sessions.close()


async def test_what_another_process_had_begun_is_stored_with_its_attachments(
    postgres: Postgres, redis_server: RedisServer
) -> None:
    url, resumed = postgres.new_database("taken_over"), ScriptedSource()

    class WithPhoto(ScriptedSource):
        attachments: Mapping[str, bytes] = {"photo": b"of me", "other": b"of you"}

    def resume(request: bytes, states: Sequence[bytes], read: ReadAttachments) -> ScriptedSource:
        return resumed

    def streams() -> Store:
        return RedisStore(redis_server.url, timeouts=FAST_REDIS)

    a, b = sessions_on(url, streams(), resume), sessions_on(url, streams(), resume)
    await a.open()
    a.start(REQUEST, lambda: WithPhoto(b"1", b"2"))
    await until(lambda: a.find("me", "letter-1", "letter").recording.next_index == 2)
    assert await a.commit()
    await a.close()
    await b.open()
    await until(lambda: b.num_running)
    resumed.go.set()
    session = await found(b)
    assert await data_of(session, session.latest) == [b"1", b"2", b"end"]
    await until(lambda: not session.is_running)
    redis_server.ask("FLUSHALL")
    for sessions in (b, sessions_on(url, streams())):
        if sessions is not b:
            await sessions.open()
        session = await found(sessions)
        assert await data_of(session, session.latest) == [b"1", b"2", b"end"]
        assert (await session.document(), await session.attachments(["photo", "other"])) == (
            b"photo",
            {"photo": b"of me"},
        )
        await sessions.close()


async def test_a_response_in_memory_that_the_end_of_the_process_cuts_is_stored_as_failed(postgres: Postgres) -> None:
    url = postgres.new_database("drained")
    sessions = sessions_on(url)
    await sessions.open()
    begun(sessions, b"1")
    await until(lambda: sessions.find("me", "letter-1", "letter").recording.next_index)
    await sessions.close()
    again = sessions_on(url)
    await again.open()
    session = await found(again)
    assert session.latest.status == "failed"
    assert await data_of(session, session.latest) == [b"1", Draining.__name__.encode()]
    await again.close()


async def test_the_last_event_is_stored_once_more_if_only_the_note_that_it_is_the_last_was_missing(
    postgres: Postgres, redis_server: RedisServer
) -> None:
    class Over(ScriptedSource):
        """A run that finds that another process had got to its end."""

        async def events(self):  # type: ignore[no-untyped-def]
            return
            yield [Block(b"")]

    url = postgres.new_database("noted")
    a = sessions_on(url, RedisStore(redis_server.url, timeouts=FAST_REDIS))
    await a.open()
    a.start(REQUEST, lambda: ScriptedSource(b"1", b"end"))
    await until(lambda: a.find("me", "letter-1", "letter").recording.next_index == 2)
    assert await a.commit()
    await a.close()
    b = sessions_on(url, RedisStore(redis_server.url, timeouts=FAST_REDIS), lambda *given: Over())
    await b.open()
    session = await found(b)
    await until(lambda: not session.is_running)
    redis_server.ask("FLUSHALL")
    session = await found(b)
    assert await data_of(session, session.latest) == [b"1", b"end"]
    assert archiving(b).keeps(session.recording.key)
    await b.close()
