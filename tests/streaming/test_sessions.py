import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace

import pytest

from server.errors import (
    Draining,
    ModelLoading,
    QueueFull,
    SessionConflict,
    SessionExpired,
    SessionNotFound,
    Unavailable,
)
from server.streaming.event import Block, Event
from server.streaming.rules import SessionRules
from server.streaming.session import Session
from server.streaming.sessions import Asked, Sessions
from server.streaming.source import Digest, ReadAttachments
from server.streaming.stores.store import KeptSession, KeptTurn, SessionKey, Status
from server.streaming.turn import Turn
from tests.streaming.held_store import HeldStore

pytestmark = pytest.mark.anyio
ASKED = Asked(owner="me", session_id="s", fingerprint="f")


class Script:
    """A source that says its lines and then waits to be let go."""

    summary = b"{}"
    request = b"what was asked"
    attachments: Mapping[str, bytes] = {}
    digest: Digest | None = None
    waits_to_go_on = False

    def __init__(self, *lines: bytes, fails: Exception | None = None) -> None:
        self._lines = lines
        self._fails = fails
        self.go = asyncio.Event()
        self.was_cancelled = False

    async def events(self) -> AsyncIterator[Sequence[Block]]:
        for line in self._lines:
            yield [Block(line, b"mark " + line)]
        await self.go.wait()
        if self._fails:
            raise self._fails
        yield [Block(b"end", b"mark end")]

    @property
    def outcome(self) -> Status:
        return "cancelled" if self.was_cancelled else "finished"

    def cancel(self) -> None:
        self.was_cancelled = True
        self.go.set()

    def failure(self, error: Exception) -> Block:
        return Block(type(error).__name__.encode())


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def data_of(session: Session, turn: Turn) -> list[bytes]:
    with session.listening(turn, turn.first_index - 1) as reader:
        return [event.data async for events in reader.batches() for event in events]


def begun(
    sessions: Sessions, asked: Asked = ASKED, *lines: bytes, fails: Exception | None = None
) -> tuple[Script, Session, Turn]:
    script = Script(*lines, fails=fails)
    session, turn = sessions.start(asked, lambda: script)
    return script, session, turn


async def test_a_turn_is_recorded_to_its_end_with_nobody_listening() -> None:
    script, session, turn = begun(Sessions(SessionRules()), ASKED, b"a", b"b")
    script.go.set()
    await settle()
    assert (turn.status, turn.is_running) == ("finished", False)
    assert await data_of(session, turn) == [b"a", b"b", b"end"]


async def test_the_same_request_never_begins_twice() -> None:
    sessions = Sessions(SessionRules())
    _, session, turn = begun(sessions)
    again = sessions.start(ASKED, lambda: pytest.fail("a second generation"))
    assert again == (session, turn)


async def test_a_running_session_takes_no_other_request() -> None:
    sessions = Sessions(SessionRules())
    begun(sessions)
    with pytest.raises(SessionConflict):
        sessions.start(replace(ASKED, fingerprint="other"), lambda: pytest.fail("must not begin"))


async def test_the_next_turn_goes_on_counting() -> None:
    sessions = Sessions(SessionRules())
    script, session, first = begun(sessions, ASKED, b"a")
    script.go.set()
    await settle()
    script, same, second = begun(sessions, replace(ASKED, fingerprint="other"), b"b")
    script.go.set()
    assert same is session and second.first_index == 2
    assert await data_of(session, second) == [b"b", b"end"]
    assert await data_of(session, first) == [b"a", b"end"]


async def test_another_owner_has_a_session_of_his_own() -> None:
    sessions = Sessions(SessionRules())
    _, mine, _ = begun(sessions)
    _, theirs, _ = begun(sessions, replace(ASKED, owner="you", fingerprint="other"))
    assert mine is not theirs and sessions.find("you", "s") is theirs
    with pytest.raises(SessionNotFound):
        sessions.find("nobody", "s")


async def test_a_source_that_fails_ends_the_turn_with_its_reason() -> None:
    script, session, turn = begun(Sessions(SessionRules()), ASKED, b"a", fails=KeyError())
    script.go.set()
    assert await data_of(session, turn) == [b"a", b"KeyError"]
    assert turn.status == "failed"


async def test_cancel_is_idempotent_and_says_what_it_found() -> None:
    sessions = Sessions(SessionRules())
    _, session, turn = begun(sessions)
    assert await sessions.cancel("me", "s") == "cancelled"
    await settle()
    assert (await sessions.cancel("me", "s"), turn.status) == ("cancelled", "cancelled")
    assert await sessions.cancel("you", "s") == await sessions.cancel("me", "none") == "unknown"


class TestNobodyListens:
    async def test_a_reader_that_leaves_stops_nothing_by_leaving(self) -> None:
        script, session, turn = begun(Sessions(SessionRules()))
        with session.listening(turn, -1):
            pass
        assert not script.was_cancelled

    async def test_after_the_grace_it_is_cancelled(self) -> None:
        sessions = Sessions(SessionRules(named_grace_seconds=0.02))
        script, session, turn = begun(sessions)
        sessions.sweep()
        assert not script.was_cancelled
        with session.listening(turn, -1):
            pass
        await asyncio.sleep(0.03)
        sessions.sweep()
        assert script.was_cancelled

    async def test_a_turn_whose_first_reader_is_on_its_way_is_not_taken_for_left(self) -> None:
        sessions = Sessions(SessionRules())
        script, *_ = begun(sessions, Asked("me", None, "f", resumable=False))
        sessions.sweep()
        assert not script.was_cancelled

    async def test_somebody_who_listens_keeps_it_going(self) -> None:
        sessions = Sessions(SessionRules(named_grace_seconds=0))
        script, session, turn = begun(sessions)
        with session.listening(turn, -1):
            sessions.sweep()
            assert not script.was_cancelled

    async def test_without_a_grace_it_goes_on_for_ever(self) -> None:
        sessions = Sessions(SessionRules(named_grace_seconds=None))
        script, *_ = begun(sessions)
        sessions.sweep()
        assert not script.was_cancelled

    async def test_an_answer_nobody_can_come_back_to_is_cancelled_at_once(self) -> None:
        asked = Asked("me", None, "f", resumable=False)
        script, session, turn = begun(Sessions(SessionRules()), asked)
        with session.listening(turn, -1):
            pass
        assert script.was_cancelled

    async def test_the_second_turn_has_a_grace_of_its_own(self) -> None:
        sessions = Sessions(SessionRules(named_grace_seconds=0.05))
        script, *_ = begun(sessions)
        script.go.set()
        await asyncio.sleep(0.06)
        script, *_ = begun(sessions, replace(ASKED, fingerprint="other"))
        sessions.sweep()
        assert not script.was_cancelled


class TestForgetting:
    async def test_a_finished_session_is_forgotten_after_its_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sessions = Sessions(SessionRules(ttl_seconds=10))
        script, *_ = begun(sessions)
        script.go.set()
        await settle()
        sessions.sweep()
        sessions.find("me", "s")
        now = time.monotonic()
        monkeypatch.setattr("server.streaming.stores.memory.time.monotonic", lambda: now + 11)
        sessions.sweep()
        with pytest.raises(SessionExpired):
            sessions.find("me", "s")
        begun(sessions)
        assert sessions.find("me", "s").is_running

    async def test_the_time_counts_from_the_end_of_the_answer(self) -> None:
        sessions = Sessions(SessionRules(ttl_seconds=0.2))
        script, session, turn = begun(sessions)
        await asyncio.sleep(0.3)
        script.go.set()
        await settle()
        sessions.sweep()
        assert sessions.find("me", "s") is session

    async def test_what_nobody_can_come_back_to_is_not_kept(self) -> None:
        sessions = Sessions(SessionRules())
        script, session, turn = begun(sessions, Asked("me", None, "f", resumable=False))
        script.go.set()
        await data_of(session, turn)
        sessions.sweep()
        with pytest.raises(SessionNotFound):
            sessions.find("me", session.id)

    async def test_the_bytes_of_all_recordings_together_are_bounded(self) -> None:
        sessions = Sessions(SessionRules(max_bytes=2500))
        for number in range(4):
            script, *_ = begun(sessions, replace(ASKED, session_id=f"s{number}"), b"x" * 1000)
            script.go.set()
            await settle()
        sessions.sweep()
        kept = [number for number in range(4) if await sessions.cancel("me", f"s{number}") != "unknown"]
        assert kept == [2, 3]

    async def test_an_owner_makes_room_among_his_own_first(self) -> None:
        sessions = Sessions(SessionRules(max_sessions=2))
        for owner in ("you", "me"):
            script, *_ = begun(sessions, replace(ASKED, owner=owner))
            script.go.set()
            await settle()
        begun(sessions, replace(ASKED, session_id="next"))
        assert await sessions.cancel("you", "s") == "finished" and await sessions.cancel("me", "s") == "unknown"

    async def test_a_running_one_never_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sessions = Sessions(SessionRules(ttl_seconds=10, named_grace_seconds=None))
        begun(sessions)
        now = time.monotonic()
        monkeypatch.setattr("server.streaming.stores.memory.time.monotonic", lambda: now + 1000)
        sessions.sweep()
        assert sessions.find("me", "s").is_running

    async def test_the_oldest_finished_one_makes_room_and_a_full_house_of_running_ones_refuses(self) -> None:
        sessions = Sessions(SessionRules(max_sessions=2))
        script, *_ = begun(sessions, replace(ASKED, session_id="first"))
        script.go.set()
        await settle()
        begun(sessions, replace(ASKED, session_id="second"))
        begun(sessions, replace(ASKED, session_id="third"))
        with pytest.raises(SessionExpired):
            sessions.find("me", "first")
        with pytest.raises(QueueFull):
            begun(sessions, replace(ASKED, session_id="fourth"))


async def test_a_turn_that_has_hardly_begun_is_ended_by_name_too() -> None:
    sessions = Sessions(SessionRules())
    await sessions.open()
    _, session, turn = begun(sessions)
    await sessions.close()
    assert await data_of(session, turn) == [b"Draining"]


async def test_closing_ends_what_runs_and_tells_the_readers() -> None:
    sessions = Sessions(SessionRules())
    await sessions.open()
    script, session, turn = begun(sessions, ASKED, b"a")
    reading = asyncio.create_task(data_of(session, turn))
    await settle()
    await sessions.close()
    assert await reading == [b"a", b"Draining"]
    assert script.was_cancelled and turn.status == "failed"


async def test_a_request_that_met_a_503_may_be_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = Sessions(SessionRules())
    script, session, first = begun(sessions, fails=Unavailable("not now"))
    script.go.set()
    await settle()
    assert first.status == "failed"
    _, same, second = begun(sessions)
    assert same is session and second is not first and second.first_index == 1


async def test_also_after_a_restart() -> None:
    store = HeldStore()
    failed = KeptTurn(0, "f", b"", 0, 0, "failed", b"{}", store.now(), is_worth_repeating=True)
    store.kept = [KeptSession(SessionKey("me", "s"), True, store.now(), None, [failed], next_index=1)]
    sessions = Sessions(SessionRules(), store)
    await sessions.open()
    _, session, turn = begun(sessions)
    assert turn is not session.turns[0] and turn.first_index == 1
    await sessions.close()


async def test_nobody_goes_for_a_request_that_is_refused() -> None:
    sessions = Sessions(SessionRules(max_sessions=1))
    script, *_ = begun(sessions)
    script.go.set()
    await settle()

    def refuse() -> Script:
        raise QueueFull("no room")

    with pytest.raises(QueueFull):
        sessions.start(replace(ASKED, session_id="other"), refuse)
    assert await sessions.cancel("me", "s") == "finished"


class Continued(Script):
    """Goes on with "b" as soon as it is allowed to."""

    def __init__(self, request: bytes, marks: Sequence[bytes], read_attachments: ReadAttachments) -> None:
        super().__init__(b"b")
        self.request = request
        self.marks = marks
        self.read_attachments = read_attachments
        self.waits_to_go_on = True
        self.model_is_there = asyncio.Event()

    async def events(self) -> AsyncIterator[Sequence[Block]]:
        if not (self.model_is_there.is_set() or self.was_cancelled):
            raise ModelLoading("soon", retry_after=0.01)
        self.waits_to_go_on = False
        async for blocks in super().events():
            yield blocks


class TestAfterARestart:
    def kept(self, store: HeldStore, *, unheard_since: float | None = None, is_named: bool = True) -> HeldStore:
        key = SessionKey("me", "s")
        done = KeptTurn(0, "before", b"", 0, 0, "finished", b"{}", store.now())
        running = KeptTurn(1, "f", b"what was asked", 1)
        store.kept = [
            KeptSession(key, is_named, store.now(), unheard_since, [done, running], first_kept=0, next_index=2)
        ]
        store.events[key] = [Event(0, b"earlier", b"mark earlier"), Event(1, b"a", b"mark a")]
        return store

    async def opened(self, store: HeldStore, rules: SessionRules | None = None) -> tuple[Sessions, Continued, Session]:
        sources: list[Continued] = []

        def carry_on(request: bytes, marks: Sequence[bytes], read_attachments: ReadAttachments) -> Continued:
            sources.append(Continued(request, marks, read_attachments))
            return sources[-1]

        sessions = Sessions(rules or SessionRules(), store, carry_on)
        await sessions.open()
        return sessions, sources[0], sessions.find("me", "s")

    async def test_an_answer_goes_on_behind_what_was_shown(self) -> None:
        store = self.kept(HeldStore())
        sessions, source, session = await self.opened(store)
        assert (source.request, source.marks) == (b"what was asked", [b"mark a"])
        source.model_is_there.set()
        source.go.set()
        reading = asyncio.ensure_future(data_of(session, session.latest))
        await asyncio.sleep(0.05)
        store.commit()
        assert await reading == [b"a", b"b", b"end"]
        assert [turn.last_index for turn in store.ends] == [3]
        assert await data_of(session, session.turns[0]) == [b"earlier"]
        await sessions.close()

    async def test_who_waits_for_it_is_told_and_who_comes_later_gets_it(self) -> None:
        sessions, source, session = await self.opened(self.kept(HeldStore()))
        with pytest.raises(ModelLoading):
            await data_of(session, session.latest)
        assert session.is_running
        source.model_is_there.set()
        await asyncio.sleep(0.05)
        assert session.recording.next_index == 3
        await sessions.close()

    async def test_it_can_be_cancelled_while_it_waits(self) -> None:
        sessions, source, session = await self.opened(self.kept(HeldStore()))
        assert await sessions.cancel("me", "s") == "cancelled"
        await asyncio.sleep(0.02)
        assert session.latest.status == "cancelled"
        await sessions.close()

    async def test_the_time_that_nobody_listened_before_still_counts(self) -> None:
        store = HeldStore()
        self.kept(store, unheard_since=store.now() - 50)
        _, patient, _ = await self.opened(store, SessionRules(named_grace_seconds=100))
        assert not patient.was_cancelled
        _, impatient, _ = await self.opened(store, SessionRules(named_grace_seconds=40))
        assert impatient.was_cancelled

    async def test_the_same_request_attaches_and_another_is_refused(self) -> None:
        sessions, _, session = await self.opened(self.kept(HeldStore()))
        assert sessions.attached(ASKED) == (session, session.latest)
        with pytest.raises(SessionConflict):
            sessions.attached(replace(ASKED, fingerprint="other"))
        await sessions.close()


class TestAtTheEnd:
    async def test_what_is_durable_is_left_for_the_next_process(self) -> None:
        store = HeldStore()
        sessions = Sessions(SessionRules(), store)
        script, session, turn = begun(sessions, ASKED, b"a")
        reading = asyncio.ensure_future(data_of(session, turn))
        await settle()
        await sessions.end_all()
        assert await reading == [b"a"] and script.was_cancelled
        assert turn.status == "running" and not store.ends

    async def test_what_is_not_ends_by_name(self) -> None:
        for store in (None, HeldStore()):
            if store:
                store.durability = "degraded"
            sessions = Sessions(SessionRules(), store)
            _, session, turn = begun(sessions, ASKED, b"a")
            await settle()
            await sessions.end_all()
            assert await data_of(session, turn) == [b"a", Draining.__name__.encode()]


class Broken(HeldStore):
    def look_after(self) -> None:
        raise ValueError("no store can do this")

    async def flush(self) -> None:
        await asyncio.Event().wait()


async def test_trouble_with_the_store_does_not_end_the_care_for_sessions(caplog: pytest.LogCaptureFixture) -> None:
    store = Broken()
    sessions = Sessions(SessionRules(ttl_seconds=10), store)
    script, *_ = begun(sessions)
    script.go.set()
    await settle()
    store.skew = 11
    sessions.sweep()
    assert store.forgotten == [SessionKey("me", "s")] and "looked after" in caplog.text


async def test_a_disk_that_hangs_does_not_hold_up_the_end() -> None:
    sessions = Sessions(SessionRules(goodbye_seconds=0.01), Broken())
    script, session, turn = begun(sessions, ASKED, b"a")
    async with asyncio.timeout(20):
        await sessions.end_all()
    assert session.recording.is_closed and script.was_cancelled


async def test_a_durable_store_lets_memory_go_without_forgetting() -> None:
    store = HeldStore()
    sessions = Sessions(SessionRules(max_bytes=100), store)
    script, session, turn = begun(sessions, ASKED, b"x" * 200)
    script.go.set()
    await settle()
    store.commit()
    sessions.sweep()
    assert session.recording.num_bytes == 0 and not store.forgotten
    assert await data_of(session, turn) == [b"x" * 200, b"end"]
