"""A session in constant use does not grow forever."""

from dataclasses import replace

import pytest

from tests.streaming.manual_store import ManualStore
from tests.streaming.scripted_source import REQUEST, ScriptedSource, data_of, settle
from tis.streaming.errors import ReplayGap
from tis.streaming.retention import SessionLimits
from tis.streaming.session import Session
from tis.streaming.sessions import Sessions

pytestmark = pytest.mark.anyio


async def spoken(sessions: Sessions, store: ManualStore, *lines: bytes) -> Session:
    """A turn from its first event to its last."""
    script = ScriptedSource(*lines)
    session, turn = sessions.start(replace(REQUEST, fingerprint=repr(lines)), lambda: script)
    script.go.set()
    await settle()
    store.commit()
    return session


async def test_the_oldest_turns_are_deleted_and_indexes_continue() -> None:
    store = ManualStore()
    sessions = Sessions(SessionLimits(max_turns=2, ttl_seconds=-1), store)
    for number in range(10):
        session = await spoken(sessions, store, b"%d" % number)
    assert [turn.first_index for turn in session.turns] == [14, 16, 18]
    assert [event.index for event in store.events[session.recording.key]] == list(range(14, 20))
    assert session.recording.window_start == 14 and session.recording.num_bytes == 3 * len(b"7end")
    assert await data_of(session, session.turns[0]) == [b"7", b"end"]


async def test_a_cursor_into_a_deleted_turn_is_a_gap() -> None:
    store = ManualStore()
    sessions = Sessions(SessionLimits(max_turns=2, ttl_seconds=-1), store)
    for number in range(5):
        session = await spoken(sessions, store, b"%d" % number)
    first, second, _ = session.turns
    for index in (0, first.first_index - 2):
        with pytest.raises(ReplayGap):
            session.turn_after(index)
    assert session.turn_after(first.first_index - 1) is first
    assert session.turn_after(second.first_index - 1) is second


async def test_turns_within_the_ttl_stay_however_many_they_are() -> None:
    store = ManualStore()
    sessions = Sessions(SessionLimits(max_turns=2, ttl_seconds=600), store)
    for number in range(10):
        session = await spoken(sessions, store, b"%d" % number)
    assert len(session.turns) == 10
    store.skew = 601
    session = await spoken(sessions, store, b"after a while")
    assert len(session.turns) == 3
