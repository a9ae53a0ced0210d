import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from server.errors import QueueFull, SessionConflict, SessionNotFound
from server.streaming.session import Session, Turn
from server.streaming.sessions import Asked, SessionRules, Sessions

pytestmark = pytest.mark.anyio
ASKED = Asked(owner="me", session_id="s", fingerprint="f")


class Script:
    """A source that says its lines and then waits to be let go."""

    def __init__(self, *lines: bytes, fails: bool = False) -> None:
        self._lines = lines
        self._fails = fails
        self.go = asyncio.Event()
        self.was_cancelled = False
        self.summary = b"{}"

    async def events(self) -> AsyncIterator[Sequence[bytes]]:
        for line in self._lines:
            yield [line]
        await self.go.wait()
        if self._fails:
            raise KeyError
        yield [b"end"]

    def cancel(self) -> None:
        self.was_cancelled = True
        self.go.set()

    def failure(self, error: Exception) -> bytes:
        return type(error).__name__.encode()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def data_of(session: Session, turn: Turn) -> list[bytes]:
    with session.listening(turn, turn.first_index - 1) as reader:
        return [event.data async for events in reader.batches() for event in events]


def begun(sessions: Sessions, asked: Asked = ASKED, *lines: bytes, fails: bool = False) -> tuple[Script, Session, Turn]:
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
    script, session, turn = begun(Sessions(SessionRules()), ASKED, b"a", fails=True)
    script.go.set()
    assert await data_of(session, turn) == [b"a", b"KeyError"]
    assert turn.status == "failed"


async def test_cancel_is_idempotent_and_says_what_it_found() -> None:
    sessions = Sessions(SessionRules())
    _, session, turn = begun(sessions)
    assert sessions.cancel("me", "s") == "cancelled"
    await settle()
    assert (sessions.cancel("me", "s"), turn.status) == ("cancelled", "cancelled")
    assert sessions.cancel("you", "s") == sessions.cancel("me", "none") == "unknown"


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
        monkeypatch.setattr("server.streaming.sessions.time.monotonic", lambda: now + 11)
        sessions.sweep()
        with pytest.raises(SessionNotFound):
            sessions.find("me", "s")

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
        kept = [number for number in range(4) if sessions.cancel("me", f"s{number}") != "unknown"]
        assert kept == [2, 3]

    async def test_an_owner_makes_room_among_his_own_first(self) -> None:
        sessions = Sessions(SessionRules(max_sessions=2))
        for owner in ("you", "me"):
            script, *_ = begun(sessions, replace(ASKED, owner=owner))
            script.go.set()
            await settle()
        begun(sessions, replace(ASKED, session_id="next"))
        assert sessions.cancel("you", "s") == "finished" and sessions.cancel("me", "s") == "unknown"

    async def test_a_running_one_never_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sessions = Sessions(SessionRules(ttl_seconds=10, named_grace_seconds=None))
        begun(sessions)
        now = time.monotonic()
        monkeypatch.setattr("server.streaming.sessions.time.monotonic", lambda: now + 1000)
        sessions.sweep()
        assert sessions.find("me", "s").is_running

    async def test_the_oldest_finished_one_makes_room_and_a_full_house_of_running_ones_refuses(self) -> None:
        sessions = Sessions(SessionRules(max_sessions=2))
        script, *_ = begun(sessions, replace(ASKED, session_id="first"))
        script.go.set()
        await settle()
        begun(sessions, replace(ASKED, session_id="second"))
        begun(sessions, replace(ASKED, session_id="third"))
        with pytest.raises(SessionNotFound):
            sessions.find("me", "first")
        with pytest.raises(QueueFull):
            begun(sessions, replace(ASKED, session_id="fourth"))


async def test_a_turn_that_has_hardly_begun_is_ended_by_name_too() -> None:
    sessions = Sessions(SessionRules())
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
