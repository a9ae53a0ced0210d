"""Turns without readers are cancelled after the grace period."""

import asyncio
import time
from dataclasses import replace

import pytest

from tests.serving import MovedClock
from tests.streaming.scripted_source import REQUEST, settle, start_turn
from tests.streaming.stores.harness import until
from tis.streaming.retention import SessionLimits
from tis.streaming.session_request import SessionRequest
from tis.streaming.sessions import Sessions
from tis.streaming.stores.memory import MemoryStore

pytestmark = pytest.mark.anyio

YEAR = 365 * 86400.0


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


def sessions_with(clock: MovedClock, **rules: float | None) -> Sessions:
    return Sessions(SessionLimits(**rules), MemoryStore(clock))  # type: ignore[arg-type]


async def test_a_reader_that_leaves_stops_nothing_by_leaving() -> None:
    script, session, turn = start_turn(Sessions(SessionLimits()))
    with session.listening(turn, -1):
        pass
    assert not script.was_cancelled


async def test_a_turn_without_readers_is_cancelled_after_the_grace_period(clock: MovedClock) -> None:
    sessions = sessions_with(clock, named_grace_seconds=100)
    script, session, turn = start_turn(sessions)
    with session.listening(turn, -1):
        clock.move(1000)
    clock.move(90)
    sessions.sweep()
    assert not script.was_cancelled
    clock.move(20)
    sessions.sweep()
    assert script.was_cancelled


async def test_an_anonymous_session_has_its_own_grace_period(clock: MovedClock) -> None:
    sessions = sessions_with(clock, named_grace_seconds=1000, anonymous_grace_seconds=10)
    named, *_ = start_turn(sessions)
    nameless, *_ = start_turn(sessions, replace(REQUEST, session_id=None))
    clock.move(100)
    sessions.sweep()
    assert nameless.was_cancelled and not named.was_cancelled


async def test_a_turn_waits_for_its_first_reader(clock: MovedClock) -> None:
    sessions = sessions_with(clock)
    script, *_ = start_turn(sessions, SessionRequest("me", None, "f", resumable=False))
    sessions.sweep()
    assert not script.was_cancelled
    clock.move(2)
    sessions.sweep()
    assert script.was_cancelled


async def test_while_the_process_pauses_no_reader_can_connect() -> None:
    sessions = Sessions(SessionLimits(sweep_seconds=0.1))
    await sessions.open()
    try:
        script, *_ = start_turn(sessions, SessionRequest("me", None, "f", resumable=False))
        await asyncio.to_thread(int)  # the sweeper waits
        asyncio.get_running_loop().call_soon(time.sleep, 1.8)
        await asyncio.sleep(0.02)
        await asyncio.sleep(0.02)
        assert not script.was_cancelled
        await until(lambda: script.was_cancelled)
    finally:
        await sessions.close()


async def test_a_connected_reader_prevents_the_cancellation(clock: MovedClock) -> None:
    sessions = sessions_with(clock, named_grace_seconds=0)
    script, session, turn = start_turn(sessions)
    with session.listening(turn, -1):
        with session.listening(turn, -1):
            pass  # another leaves
        clock.move(YEAR)
        sessions.sweep()
        assert not script.was_cancelled


async def test_without_a_grace_period_a_turn_runs_forever(clock: MovedClock) -> None:
    sessions = sessions_with(clock, named_grace_seconds=None)
    script, session, turn = start_turn(sessions)
    with session.listening(turn, -1):
        pass
    clock.move(YEAR)
    sessions.sweep()
    assert not script.was_cancelled


async def test_a_non_resumable_answer_is_cancelled_at_once() -> None:
    asked = SessionRequest("me", None, "f", resumable=False)
    script, session, turn = start_turn(Sessions(SessionLimits()), asked)
    with session.listening(turn, -1):
        pass
    assert script.was_cancelled


async def test_the_second_turn_has_its_own_grace_period(clock: MovedClock) -> None:
    sessions = sessions_with(clock, named_grace_seconds=100)
    script, session, turn = start_turn(sessions)
    with session.listening(turn, -1):
        pass
    script.go.set()
    await settle()
    clock.move(1000)
    script, *_ = start_turn(sessions, replace(REQUEST, fingerprint="other"))
    clock.move(90)
    sessions.sweep()
    assert not script.was_cancelled
    clock.move(20)
    sessions.sweep()
    assert script.was_cancelled
