"""How long sessions live, and which one is evicted for a new one."""

from dataclasses import replace

import pytest

from tests.serving import MovedClock
from tests.streaming.manual_store import BrokenStore, ManualStore
from tests.streaming.scripted_source import REQUEST, ScriptedSource, data_of, settle, start_turn
from tis.errors import QueueFull
from tis.streaming.errors import SessionExpired, SessionNotFound
from tis.streaming.retention import SessionLimits
from tis.streaming.session_request import SessionRequest
from tis.streaming.sessions import Sessions
from tis.streaming.stores.memory import MemoryStore
from tis.streaming.stores.store import SessionKey

pytestmark = pytest.mark.anyio


async def test_a_finished_session_is_evicted_after_its_ttl() -> None:
    clock = MovedClock()
    sessions = Sessions(SessionLimits(ttl_seconds=10), MemoryStore(clock))
    script, *_ = start_turn(sessions)
    script.go.set()
    await settle()
    sessions.sweep()
    sessions.find("me", "s")
    clock.move(11)
    sessions.sweep()
    with pytest.raises(SessionExpired):
        sessions.find("me", "s")
    start_turn(sessions)
    assert sessions.find("me", "s").is_running


async def test_the_ttl_counts_from_the_end_of_the_answer() -> None:
    clock = MovedClock()
    sessions = Sessions(SessionLimits(ttl_seconds=10), MemoryStore(clock))
    script, session, turn = start_turn(sessions)
    clock.move(100)
    script.go.set()
    await settle()
    clock.move(5)
    sessions.sweep()
    assert list(sessions) == [session]
    clock.move(6)
    sessions.sweep()
    assert list(sessions) == []


async def test_a_non_resumable_session_is_evicted_at_its_end() -> None:
    sessions = Sessions(SessionLimits())
    script, session, turn = start_turn(sessions, SessionRequest("me", None, "f", resumable=False))
    script.go.set()
    await data_of(session, turn)
    sessions.sweep()
    with pytest.raises(SessionNotFound):
        sessions.find("me", session.id)


async def test_the_bytes_of_all_recordings_together_are_bounded() -> None:
    sessions = Sessions(SessionLimits(max_bytes=2500))
    for number in range(4):
        script, *_ = start_turn(sessions, replace(REQUEST, session_id=f"s{number}"), b"x" * 1000)
        script.go.set()
        await settle()
    sessions.sweep()
    kept = [number for number in range(4) if await sessions.cancel("me", f"s{number}") != "unknown"]
    assert kept == [2, 3]


async def test_an_owner_evicts_its_own_session_first() -> None:
    sessions = Sessions(SessionLimits(max_sessions=2))
    for owner in ("you", "me"):
        script, *_ = start_turn(sessions, replace(REQUEST, owner=owner))
        script.go.set()
        await settle()
    start_turn(sessions, replace(REQUEST, session_id="next"))
    assert await sessions.cancel("you", "s") == "finished" and await sessions.cancel("me", "s") == "unknown"


async def test_the_owner_with_the_most_sessions_loses_one() -> None:
    sessions = Sessions(SessionLimits(max_sessions=4))
    for name in ("small/0", "large/1", "large/2", "large/3", "new/4", "large/5"):
        await finished(sessions, name)
    assert [one.id for one in sessions] == ["small/0", "large/3", "new/4", "large/5"]


async def test_an_owner_with_as_many_sessions_evicts_its_own() -> None:
    sessions = Sessions(SessionLimits(max_sessions=3))
    for name in ("you/0", "you/1", "me/2", "me/3"):
        await finished(sessions, name)
    assert [one.id for one in sessions] == ["you/0", "you/1", "me/3"]


async def test_the_least_recently_used_session_is_evicted() -> None:
    sessions = Sessions(SessionLimits(max_sessions=2))
    for name in ("me/0", "me/1"):
        await finished(sessions, name)
    sessions.find("me", "me/0")
    await finished(sessions, "me/2")
    assert [one.id for one in sessions] == ["me/0", "me/2"]


async def finished(sessions: Sessions, name: str) -> None:
    script, *_ = start_turn(sessions, replace(REQUEST, owner=name.partition("/")[0], session_id=name))
    script.go.set()
    await settle()


async def test_a_running_session_is_never_evicted() -> None:
    clock = MovedClock()
    sessions = Sessions(SessionLimits(ttl_seconds=10, named_grace_seconds=None), MemoryStore(clock))
    start_turn(sessions)
    clock.move(1000)
    sessions.sweep()
    assert sessions.find("me", "s").is_running


async def test_the_oldest_finished_session_is_evicted_and_running_ones_are_not() -> None:
    sessions = Sessions(SessionLimits(max_sessions=2))
    script, *_ = start_turn(sessions, replace(REQUEST, session_id="first"))
    script.go.set()
    await settle()
    start_turn(sessions, replace(REQUEST, session_id="second"))
    start_turn(sessions, replace(REQUEST, session_id="third"))
    with pytest.raises(SessionExpired):
        sessions.find("me", "first")
    with pytest.raises(QueueFull):
        start_turn(sessions, replace(REQUEST, session_id="fourth"))


async def test_a_refused_request_evicts_nothing() -> None:
    sessions = Sessions(SessionLimits(max_sessions=1))
    script, *_ = start_turn(sessions)
    script.go.set()
    await settle()

    def refuse() -> ScriptedSource:
        raise QueueFull("no room")

    with pytest.raises(QueueFull):
        sessions.start(replace(REQUEST, session_id="other"), refuse)
    assert await sessions.cancel("me", "s") == "finished"


async def test_with_a_durable_store_memory_is_freed_and_nothing_is_lost() -> None:
    store = ManualStore()
    sessions = Sessions(SessionLimits(max_bytes=100), store)
    script, session, turn = start_turn(sessions, REQUEST, b"x" * 200)
    script.go.set()
    await settle()
    store.commit()
    sessions.sweep()
    assert session.recording.num_bytes == 0 and not store.forgotten
    assert await data_of(session, turn) == [b"x" * 200, b"end"]


async def test_an_error_in_the_store_does_not_stop_the_sweep(caplog: pytest.LogCaptureFixture) -> None:
    store = BrokenStore()
    sessions = Sessions(SessionLimits(ttl_seconds=10), store)
    script, *_ = start_turn(sessions)
    script.go.set()
    await settle()
    store.skew = 11
    sessions.sweep()
    assert store.forgotten == [SessionKey("me", "s")] and "could not be checked" in caplog.text
