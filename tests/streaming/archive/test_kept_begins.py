"""Responses in the background: what was acknowledged as queued comes to its end, whatever is lost."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.faults.mortal_server import until as until_told
from tests.marketplace.postgres import Postgres
from tests.redis_server import RedisServer
from tests.streaming.archive.conftest import MakeSessions, SharedClock
from tests.streaming.archive.test_kept_ends import sessions_on
from tests.streaming.archive.test_retained_sessions import (
    KIND,
    LETTER,
    REQUEST,
    SourceWithPhoto,
    archiving,
    begun,
    found,
    require_gone,
)
from tests.streaming.scripted_source import ScriptedSource, data_of
from tests.streaming.stores.harness import FAST_REDIS, until
from tis.streaming.errors import StoreUnavailable
from tis.streaming.sessions import Sessions
from tis.streaming.source import ReadAttachments
from tis.streaming.stores.redis import RedisStore

pytestmark = [pytest.mark.anyio, pytest.mark.long]
IN_BACKGROUND = replace(REQUEST, retention=replace(LETTER, grace_seconds=math.inf))


class SecondMaking:
    """The sources of what is begun anew, with what they were made of."""

    def __init__(self, *lines: bytes) -> None:
        self.script = SourceWithPhoto(*lines)
        self.given: list[tuple[bytes, Sequence[bytes]]] = []
        self.photos: list[asyncio.Task[object]] = []

    def __call__(self, request: bytes, states: Sequence[bytes], read: ReadAttachments) -> ScriptedSource:
        self.given.append((request, states))
        self.photos.append(asyncio.ensure_future(read(["photo", "other"])))
        # A model reads them before it says anything: of what has ended only those are kept that its document names.
        self.photos[-1].add_done_callback(lambda _: self.script.go.set())
        return self.script


async def vanish(sessions: Sessions) -> None:
    """As a kill that takes the streams with it: what it runs ends without a word, and nobody says that it goes on."""
    assert sessions._kept_begins
    await sessions._kept_begins.close()
    for recorder, turn in list(sessions._recorders.running.items()):
        turn.suspend()
        recorder.cancel()
        await asyncio.wait([recorder])
    streams = archiving(sessions).streams
    await streams.flush()
    if isinstance(streams, RedisStore):
        await streams._clients.commands.flushall()


async def test_a_response_whose_process_and_stream_are_lost_is_begun_anew_elsewhere(
    make_sessions: MakeSessions, clock: SharedClock
) -> None:
    making = SecondMaking(b"1", b"2")
    a, b = make_sessions(making), make_sessions(making)
    await a.open()
    begun(a, b"1", request=IN_BACKGROUND)
    await a.keep_begin(a.find("me", "letter-1", KIND), may_begin_again=True)
    await vanish(a)
    await b.open()
    with pytest.raises(StoreUnavailable):  # it is not gone, and nobody has it yet
        await found(b)
    clock.time += 60
    await until(lambda: making.given)
    session = await found(b)
    assert await data_of(session, session.latest) == [b"1", b"2", b"end"]
    assert making.given == [(b"what was asked", [])]
    assert await making.photos[0] == {"photo": b"of me", "other": b"of you"}
    await until(lambda: archiving(b).keeps(session.recording.key))
    assert await session.document() == b"photo"
    assert await session.attachments(["photo", "other"]) == {"photo": b"of me"}
    await b.close()
    await a.close()


async def test_what_must_not_be_made_twice_is_stored_without_what_it_would_be_made_of(
    make_sessions: MakeSessions, clock: SharedClock
) -> None:
    making = SecondMaking()
    a = make_sessions(making)
    await a.open()
    begun(a, b"1", request=IN_BACKGROUND)
    await a.keep_begin(a.find("me", "letter-1", KIND), may_begin_again=False)
    row = await archiving(a).archive.find_begun(a.find("me", "letter-1", KIND).recording.key, a.now())
    assert row and row.turn.request == b""
    await a.close()


async def test_nobody_takes_a_response_whose_process_says_that_it_goes_on(
    make_sessions: MakeSessions, clock: SharedClock
) -> None:
    making = SecondMaking()
    a, b = make_sessions(making), make_sessions(making)
    for sessions in (a, b):
        await sessions.open()
    script, turn = begun(a, b"1", request=IN_BACKGROUND)
    session = a.find("me", "letter-1", KIND)
    await a.keep_begin(session, may_begin_again=True)
    key, archive = session.recording.key, archiving(b).archive
    await until(lambda: archive.is_sure)
    for _ in range(3):
        clock.time += archive.limits.lease_seconds * 0.9
        before = await archive.find_begun(key, b.now())
        assert before

        async def is_renewed(seen: float | None = before.held_until) -> bool:
            row = await archive.find_begun(key, b.now())
            return row is not None and row.held_until != seen

        await until_told(is_renewed)
    script.go.set()
    assert await data_of(session, turn) == [b"1", b"end"]
    assert making.given == []
    for sessions in (a, b):
        await until(lambda: not session.is_running)
        read = await found(sessions)
        assert await data_of(read, read.latest) == [b"1", b"end"]
        await sessions.close()


async def test_the_end_of_a_process_that_had_lost_its_response_is_not_written_over_that_of_the_later_one(
    make_sessions: MakeSessions, clock: SharedClock
) -> None:
    making = SecondMaking(b"second")
    a, b = make_sessions(making), make_sessions(making)
    await a.open()
    script, turn = begun(a, b"first", request=IN_BACKGROUND)
    session = a.find("me", "letter-1", KIND)
    await a.keep_begin(session, may_begin_again=True)
    assert a._kept_begins
    await a._kept_begins.close()  # it is paused
    if archiving(a).is_remote:
        await a.close()
        return  # there Redis fences it: see `tests/streaming/stores`
    clock.time += 60
    await b.open()
    await until(lambda: making.given)
    later = await found(b)
    assert await data_of(later, later.latest) == [b"second", b"end"]
    await until(lambda: archiving(b).keeps(session.recording.key))
    script.go.set()
    await data_of(session, turn)
    await until(lambda: not session.is_running)
    events = await archiving(b).archive.find_events(session.recording.key, -1, 10)
    assert [event.data for event in events] == [b"second", b"end"]
    await a.close()
    await b.close()


async def test_a_response_that_is_deleted_while_nobody_has_it_is_not_begun_anew(
    make_sessions: MakeSessions, clock: SharedClock
) -> None:
    making = SecondMaking()
    a, b = make_sessions(making), make_sessions(making)
    await a.open()
    begun(a, request=IN_BACKGROUND)
    session = a.find("me", "letter-1", KIND)
    await a.keep_begin(session, may_begin_again=True)
    await vanish(a)
    await archiving(a).archive.delete(session.to_record())
    clock.time += 60
    await b.open()
    await until(lambda: archiving(b).archive.is_sure)
    assert await archiving(b).archive.find_unheld(10) == []
    await require_gone(b)
    await b.close()
    await a.close()


@pytest.mark.slow
@pytest.mark.server
async def test_a_begin_that_the_database_does_not_take_is_not_acknowledged(postgres: Postgres) -> None:
    sessions = sessions_on(postgres.new_database("no_begin"))
    await sessions.open()
    begun(sessions, b"1", request=IN_BACKGROUND)
    postgres.kill()
    try:
        with pytest.raises(StoreUnavailable):
            await sessions.keep_begin(sessions.find("me", "letter-1", KIND), may_begin_again=True)
    finally:
        postgres.start()
    await sessions.close()


@pytest.mark.slow
@pytest.mark.server
async def test_a_response_that_could_not_be_stored_is_not_made_a_second_time(
    postgres: Postgres, redis_server: RedisServer
) -> None:
    making = SecondMaking()
    streams = RedisStore(redis_server.url, timeouts=FAST_REDIS)
    sessions = sessions_on(postgres.new_database("not_stored"), streams, making, store_seconds=0.05)
    await sessions.open()
    script, turn = begun(sessions, b"1", request=IN_BACKGROUND)
    session = sessions.find("me", "letter-1", KIND)
    await sessions.keep_begin(session, may_begin_again=True)
    postgres.kill()
    try:
        script.go.set()
        assert await data_of(session, turn) == [b"1", b"end (not stored)"]
    finally:
        postgres.start()
    archive = archiving(sessions).archive

    async def is_discarded() -> bool:
        try:
            return await archive.find_begun(session.recording.key, 0.0) is None
        except StoreUnavailable:
            return False

    await until_told(is_discarded)
    assert making.given == []
    still = await found(sessions)  # as long as a stream is kept
    assert await data_of(still, still.latest) == [b"1", b"end (not stored)"]
    await sessions.close()
