"""A write that the file rejects costs only its own session."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.streaming.scripted_source import data_of, start_turn
from tests.streaming.stores.damaged_files import reopened, set_aside
from tests.streaming.stores.harness import FAST, KEY, OTHER, StoreHarness, error_count, until
from tis.streaming.errors import ReplayGap
from tis.streaming.retention import SessionLimits
from tis.streaming.session_request import SessionRequest
from tis.streaming.sessions import Sessions
from tis.streaming.stores.clock import UptimeClock
from tis.streaming.stores.sqlite import SqliteStore
from tis.streaming.stores.store import Event, SessionKey

pytestmark = pytest.mark.anyio

OLD = [b"%d" % number for number in range(10)]
UNWRITABLE = SessionKey("owner", "half a pair: \ud800")


async def with_old_history(path: Path, **timeouts: float) -> StoreHarness:
    """Makes a finished session of which memory has only the last event."""
    harness = StoreHarness(SqliteStore(path, timeouts=replace(FAST, **timeouts)))  # type: ignore[arg-type]
    await harness.open()
    turn = harness.begin_turn(OTHER)
    harness.append(*OLD, key=OTHER)
    harness.end_turn(turn, OTHER)
    await harness.caught_up(OTHER)
    _, events = harness.memory[OTHER]
    del events[:-1]
    harness.begin_turn()
    return harness


async def require_old_history(harness: StoreHarness, path: Path) -> None:
    """Checks it now and after a restart."""
    assert [event.data for event in await harness.read_all(OTHER)] == OLD
    await harness.store.close()
    again = await reopened(path)
    assert [event.data for event in await again.read_all(OTHER)] == OLD
    assert set_aside(path) == []
    await again.store.close()


async def test_an_overflow_loses_nothing_of_other_sessions(path: Path) -> None:
    harness = await with_old_history(path, max_queue_bytes=10_000)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for _ in range(20):
            harness.append(b"z" * 1000)
        assert harness.times_degraded == 1
        other.execute("ROLLBACK")
    await harness.caught_up()
    assert await harness.read_all() == harness.memory[KEY][1]
    await require_old_history(harness, path)


async def test_an_operation_larger_than_the_queue_loses_nothing_of_others(path: Path) -> None:
    harness = await with_old_history(path, max_queue_bytes=10_000)
    harness.append(b"z" * 20_000)
    await until(lambda: harness.times_degraded)
    await harness.caught_up()
    assert await harness.read_all() == harness.memory[KEY][1]
    await require_old_history(harness, path)


async def test_sessions_deleted_during_an_overflow_stay_deleted(path: Path) -> None:
    harness = await with_old_history(path, max_queue_bytes=10_000)
    gone, brief = SessionKey("owner", "gone"), SessionKey("owner", "brief")
    harness.begin_turn(gone)
    harness.append(b"private", key=gone)
    await harness.caught_up(gone)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        harness.append(b"z" * 20_000)
        harness.forget(gone)
        harness.begin_turn(brief)
        harness.forget(brief)
        harness.begin_turn(gone)  # the same name once more
        harness.append(b"new", key=gone)
        harness.acks.pop(gone)
        other.execute("ROLLBACK")
    await harness.caught_up()
    assert [event.data for event in await harness.read_all(gone)] == [b"new"]
    assert brief not in (await after_a_restart(harness, path)).memory


async def after_a_restart(harness: StoreHarness, path: Path) -> StoreHarness:
    await harness.store.close()
    again = await reopened(path)
    await again.store.close()
    return again


def note_too_large(harness: StoreHarness) -> None:
    harness.store.save_progress(KEY, 2**63, None)


def event_too_large(harness: StoreHarness) -> None:
    harness.store.append(KEY, [Event(2**63, b"far away")], lambda index: None)


def the_same_event_again(harness: StoreHarness) -> None:
    harness.store.append(KEY, harness.memory[KEY][1], lambda index: None)


@pytest.mark.parametrize("go_wrong", [note_too_large, event_too_large, the_same_event_again])
async def test_a_rejected_write_is_restored_from_memory(path: Path, go_wrong: Callable[[StoreHarness], None]) -> None:
    before = error_count("other")
    harness = await with_old_history(path)
    harness.append(b"a")
    await harness.store.flush()
    go_wrong(harness)
    harness.append(b"b")
    await until(lambda: error_count("other") > before)
    harness.append(b"c")
    await harness.caught_up()
    assert [event.data for event in await harness.read_all()] == [b"a", b"b", b"c"]
    await require_old_history(harness, path)


async def test_a_session_that_the_file_rejects_is_abandoned_alone(path: Path) -> None:
    harness = await with_old_history(path)
    harness.begin_turn(UNWRITABLE)
    harness.append(b"x", key=UNWRITABLE)
    harness.append(b"a")
    await until(lambda: harness.abandoned)
    await harness.caught_up()
    assert harness.abandoned == [UNWRITABLE]
    harness.append(b"y", key=UNWRITABLE)
    harness.append(b"b")
    await harness.caught_up()
    assert harness.times_degraded >= 1
    assert [event.data for event in await harness.read_all()] == [b"a", b"b"]
    harness.forget(UNWRITABLE)
    await require_old_history(harness, path)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM events WHERE data IN (x'78', x'79')").fetchone() == (0,)


async def test_the_next_process_does_not_resume_an_abandoned_turn(path: Path) -> None:
    """It would resume from the middle and repeat tool calls."""
    harness = await with_old_history(path)
    harness.append(b"a")
    await harness.caught_up()
    turn = harness.memory[KEY][0].turns[0]
    turn.fingerprint = "\ud800"
    the_same_event_again(harness)
    await until(lambda: harness.abandoned)
    again = await after_a_restart(harness, path)
    [kept] = again.memory[KEY][0].turns
    assert (kept.status, kept.last_index) == ("failed", 0)


async def test_what_was_committed_before_a_session_was_abandoned_stays(path: Path) -> None:
    """After a restart a cursor behind it is a 410: the server knows that there was more."""
    store = SqliteStore(path, timeouts=FAST)
    sessions = Sessions(SessionLimits(), store)
    await sessions.open()
    script, session, turn = start_turn(sessions, SessionRequest("me", "s", fingerprint="f"), b"a", b"b")
    await until(lambda: session.recording.last_durable == 1)
    turn.record.fingerprint = "\ud800"
    store.append(session.recording.key, session.recording.window, lambda index: None)
    await until(lambda: session.is_volatile)
    session.recording.drop_window()
    script.go.set()
    assert await data_of(session, turn) == [b"a", b"b", b"end"]
    await sessions.close()

    again = Sessions(SessionLimits(), SqliteStore(path, timeouts=FAST))
    await again.open()
    session = again.find("me", "s")
    seen: list[bytes] = []
    with session.listening(session.latest, -1) as reader, pytest.raises(ReplayGap, match="not stored to its end"):
        async for events in reader.batches():
            seen += [event.data for event in events]
    assert seen == [b"a", b"b"]
    with pytest.raises(ReplayGap):
        start_turn(again, SessionRequest("me", "s", fingerprint="another"))
    await again.close()


async def test_an_error_right_at_the_start_deletes_nothing(path: Path) -> None:
    """The error comes before memory has the sessions of the file."""
    before = error_count("other")
    await (await with_old_history(path)).store.close()
    second = StoreHarness(SqliteStore(path, timeouts=FAST, clock=UptimeClock(boot_id=lambda: "\ud800")))
    second.memory = {key: (session, []) for key, session in (await second.open()).items()}
    await until(lambda: error_count("other") > before and second.store.durability == "durable")
    await require_old_history(second, path)


@pytest.mark.parametrize("part", ["-wal", "-shm"])
async def test_a_deleted_log_file_loses_no_history(path: Path, part: str) -> None:
    harness = await with_old_history(path)
    await harness.store.flush()
    path.with_name(path.name + part).unlink()
    await until(lambda: harness.times_degraded)
    harness.append(b"a")
    await harness.caught_up()
    await require_old_history(harness, path)


async def test_readers_still_read_an_answer_that_the_file_rejects(path: Path) -> None:
    sessions = Sessions(SessionLimits(), SqliteStore(path, timeouts=FAST))
    await sessions.open()
    script, session, turn = start_turn(sessions, SessionRequest("me", "s", fingerprint="\ud800"), b"a", b"b")
    await until(lambda: session.recording.last_visible == 1)
    await until(lambda: not turn.is_durable and sessions.durability == "durable")
    script.go.set()
    assert await data_of(session, turn) == [b"a", b"b", b"end"]
    assert turn.status == "finished"
    another, kept, well = start_turn(sessions, SessionRequest("me", "well", fingerprint="f"), b"c")
    another.go.set()
    assert await data_of(kept, well) == [b"c", b"end"]
    assert well.is_durable
    await sessions.close()
