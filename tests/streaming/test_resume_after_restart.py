"""Turns that another process began and this one resumes."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

import pytest

from tests.streaming.manual_store import ManualStore
from tests.streaming.scripted_source import REQUEST, ScriptedSource, data_of, start_turn
from tis.engine.errors import ModelLoading
from tis.streaming.errors import SessionConflict
from tis.streaming.retention import SessionLimits
from tis.streaming.session import Session
from tis.streaming.sessions import Sessions
from tis.streaming.source import Block, ReadAttachments
from tis.streaming.stores.store import Event, SessionKey, SessionRecord, TurnRecord

pytestmark = pytest.mark.anyio


class ResumedSource(ScriptedSource):
    """Resumes with "b" as soon as its model is loaded."""

    def __init__(self, request: bytes, resume_states: Sequence[bytes], read_attachments: ReadAttachments) -> None:
        super().__init__(b"b")
        self.request = request
        self.resume_states = resume_states
        self.read_attachments = read_attachments
        self.is_waiting_to_resume = True
        self.model_is_there = asyncio.Event()

    async def events(self) -> AsyncGenerator[Sequence[Block], None]:
        if not (self.model_is_there.is_set() or self.was_cancelled):
            raise ModelLoading("soon", retry_after=0.01)
        self.is_waiting_to_resume = False
        async for blocks in super().events():
            yield blocks


class TestAfterARestart:
    def interrupted(
        self, store: ManualStore, *, no_reader_since: float | None = None, is_named: bool = True
    ) -> ManualStore:
        key = SessionKey("me", "s")
        done = TurnRecord(0, "before", b"", 0, 0, "finished", b"{}", store.now())
        running = TurnRecord(1, "f", b"what was asked", 1)
        store.records = [SessionRecord(key, is_named, store.now(), no_reader_since, [done, running], next_index=2)]
        store.events[key] = [Event(0, b"earlier", b"state earlier"), Event(1, b"a", b"state a")]
        return store

    async def opened(
        self, store: ManualStore, limits: SessionLimits | None = None
    ) -> tuple[Sessions, ResumedSource, Session]:
        sources: list[ResumedSource] = []

        def resume_source(
            request: bytes, resume_states: Sequence[bytes], read_attachments: ReadAttachments
        ) -> ResumedSource:
            sources.append(ResumedSource(request, resume_states, read_attachments))
            return sources[-1]

        sessions = Sessions(limits or SessionLimits(), store, resume_source)
        await sessions.open()
        return sessions, sources[0], sessions.find("me", "s")

    async def test_a_turn_resumes_behind_its_visible_events(self) -> None:
        store = self.interrupted(ManualStore())
        sessions, source, session = await self.opened(store)
        assert (source.request, source.resume_states) == (b"what was asked", [b"state a"])
        source.model_is_there.set()
        source.go.set()
        reading = asyncio.ensure_future(data_of(session, session.latest))
        await asyncio.sleep(0.05)
        store.commit()
        assert await reading == [b"a", b"b", b"end"]
        assert [turn.last_index for turn in store.ends] == [3]
        assert await data_of(session, session.turns[0]) == [b"earlier"]
        await sessions.close()

    async def test_a_waiting_reader_gets_the_error_and_a_later_one_the_answer(self) -> None:
        sessions, source, session = await self.opened(self.interrupted(ManualStore()))
        with pytest.raises(ModelLoading):
            await data_of(session, session.latest)
        assert session.is_running
        source.model_is_there.set()
        await asyncio.sleep(0.05)
        assert session.recording.next_index == 3
        await sessions.close()

    async def test_a_turn_that_waits_to_resume_can_be_cancelled(self) -> None:
        sessions, source, session = await self.opened(self.interrupted(ManualStore()))
        assert await sessions.cancel("me", "s") == "cancelled"
        await asyncio.sleep(0.02)
        assert session.latest.status == "cancelled"
        await sessions.close()

    async def test_time_without_readers_before_the_restart_counts(self) -> None:
        store = ManualStore()
        self.interrupted(store, no_reader_since=store.now() - 50)
        _, patient, _ = await self.opened(store, SessionLimits(named_grace_seconds=100))
        assert not patient.was_cancelled
        _, impatient, _ = await self.opened(store, SessionLimits(named_grace_seconds=40))
        assert impatient.was_cancelled

    async def test_the_same_request_attaches_and_another_is_refused(self) -> None:
        sessions, _, session = await self.opened(self.interrupted(ManualStore()))
        assert sessions.find_turn(REQUEST) == (session, session.latest)
        with pytest.raises(SessionConflict):
            sessions.find_turn(replace(REQUEST, fingerprint="other"))
        await sessions.close()


async def test_a_request_that_failed_may_be_repeated() -> None:
    store = ManualStore()
    failed = TurnRecord(0, "f", b"", 0, 0, "failed", b"{}", store.now(), is_worth_repeating=True)
    store.records = [SessionRecord(SessionKey("me", "s"), True, store.now(), None, [failed], next_index=1)]
    sessions = Sessions(SessionLimits(), store)
    await sessions.open()
    _, session, turn = start_turn(sessions)
    assert turn is not session.turns[0] and turn.first_index == 1
    await sessions.close()
