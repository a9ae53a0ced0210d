"""How many bytes a store keeps, how many its queue holds, and how many a start reads."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.streaming.scripted_source import ScriptedSource, data_of, start_turn
from tests.streaming.stores.damaged_files import damage, reopened, set_aside, size_of
from tests.streaming.stores.harness import FAST, KEY, StoreHarness, error_count, until
from tis.streaming.errors import ReplayGap, SessionExpired
from tis.streaming.retention import SessionLimits
from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.sessions import Sessions
from tis.streaming.stores.sqlite import SqliteStore
from tis.streaming.stores.sqlite_file import SqliteFile
from tis.streaming.stores.sqlite_rows import Operation
from tis.streaming.stores.store import Event, SessionKey
from tis.streaming.stores.write_queue import WriteQueue
from tis.streaming.turn import Turn

pytestmark = pytest.mark.anyio

MB = 2**20
COUNTED: dict[str, list[str]] = {}  # by path: how often a test opens it


def count_connections(event: str, args: tuple[object, ...]) -> None:
    if event == "sqlite3.connect" and COUNTED:
        for path, opened in COUNTED.items():
            if path in str(args[0]):
                opened.append(path)


sys.addaudithook(count_connections)
HALF_A_MB = [b"x" * 250] * 1000


@asynccontextmanager
async def sessions_in(path: Path, max_bytes: int = 2 * MB) -> AsyncIterator[Sessions]:
    sessions = Sessions(SessionLimits(), SqliteStore(path, timeouts=FAST, max_bytes=max_bytes))
    await sessions.open()
    yield sessions
    await sessions.close()


def begin(sessions: Sessions, name: str) -> tuple[ScriptedSource, Session, Turn]:
    """Half a megabyte, and still running."""
    request = SessionRequest(name.partition("/")[0], name, fingerprint="f")
    return start_turn(sessions, request, *HALF_A_MB)


async def finish(sessions: Sessions, name: str) -> None:
    script, session, turn = begin(sessions, name)
    script.go.set()
    await data_of(session, turn)
    await sessions.flush()


def names(sessions: Sessions) -> list[str]:
    return [session.id for session in sessions]


async def test_a_full_store_evicts_the_oldest_finished_session_of_the_owner_who_holds_most(path: Path) -> None:
    async with sessions_in(path) as sessions:
        for name in ("small/0", "large/1", "large/2", "large/3"):
            await finish(sessions, name)
        script, *_ = begin(sessions, "new/4")
        assert names(sessions) == ["small/0", "large/2", "large/3", "new/4"]
        with pytest.raises(SessionExpired):
            sessions.find("large", "large/1")
        script.go.set()


async def test_a_store_in_which_all_sessions_run_takes_no_new_one(path: Path) -> None:
    async with sessions_in(path) as sessions:
        running = [begin(sessions, f"me/{number}") for number in range(5)]
        await until(lambda: all(session.recording.last_visible == 999 for _, session, _ in running))
        await sessions.flush()
        _, volatile, turn = begin(sessions, "me/volatile")
        assert sessions.durability == "full"
        assert (volatile.is_volatile, turn.is_durable) == (True, False)
        assert all(session.is_durable for _, session, _ in running)
        for script, *_ in running:
            script.go.set()
        await until(lambda: not any(session.is_running for _, session, _ in running))
        await sessions.flush()
        await until(lambda: sessions.sweep() or sessions.durability == "durable")  # type: ignore[func-returns-value]
        _, durable, _ = begin(sessions, "me/later")
        assert durable.is_durable and volatile in list(sessions)


async def test_the_file_stays_within_its_bound(path: Path) -> None:
    async with sessions_in(path, max_bytes=2 * MB) as sessions:
        for number in range(20):
            await finish(sessions, f"me/{number}")
        await until(lambda: sessions.sweep() or len(names(sessions)) == 3)  # type: ignore[func-returns-value]
    assert size_of(path) <= 4 * MB  # the newest session, and what waits to be deleted, come on top


async def test_what_sessions_hold_is_known_after_a_restart(path: Path) -> None:
    async with sessions_in(path, max_bytes=20 * MB) as sessions:
        for name in ("small/0", "large/1", "large/2", "large/3"):
            await finish(sessions, name)
    async with sessions_in(path, max_bytes=20 * MB) as sessions:
        assert len(names(sessions)) == 4
    async with sessions_in(path, max_bytes=MB * 3 // 2) as sessions:
        sessions.sweep()
        assert names(sessions) == ["small/0", "large/3"]


def num_bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
async def test_a_start_reads_few_pages_however_large_the_file_is(path: Path) -> None:
    read = {}
    for num_events in (10, 1000):
        file = path.with_name(f"{num_events}.db")
        first = await reopened(file)
        for number in range(20):
            key = SessionKey("owner", str(number))
            turn = first.begin_turn(key)
            first.append(*[b"x" * 900] * num_events, key=key)
            if number:
                first.end_turn(turn, key)
        await first.store.close()
        before = num_bytes_read()
        contents = SqliteFile(file, "normal", 1.0, None).load()
        read[num_events] = (num_bytes_read() - before) // 4096
        assert [session.next_index for session in contents.sessions.values()] == [num_events] * 20
    assert size_of(path.with_name("1000.db")) > 16 * MB
    # A running turn is counted: of it all pages are read, which its source needs anyway.
    assert read[10] < 40, read
    assert read[1000] < 300, read  # of 4,500 pages


async def test_the_events_of_all_resumed_sessions_are_read_with_one_connection(path: Path) -> None:
    first = await reopened(path)
    for number in range(20):
        key = SessionKey("owner", str(number))
        first.begin_turn(key)
        first.append(b"a", b"b", key=key)
    await first.store.close()
    again = StoreHarness(SqliteStore(path, timeouts=FAST))
    opened: list[str] = []
    COUNTED[str(path)] = opened
    found = await again.open()
    num_opened = len(opened)
    for key in found:
        assert len(await again.read_all(key)) == 2
    assert len(opened) == num_opened
    again.store.tick()
    COUNTED.clear()
    await again.store.close()


async def test_a_start_does_not_wait_for_the_check_of_the_file(path: Path) -> None:
    """Damage in the events of finished sessions is found later. Their cursors are a 410 then, not a silent gap."""
    before = error_count("corrupt")
    first = await reopened(path)
    turn = first.begin_turn()
    first.append(*[b"%04d" % number * 50 for number in range(2000)])
    first.end_turn(turn)
    await first.store.close()
    damage(path, size_of(path) // 2 // 4096 * 4096, 4096)
    async with sessions_in(path) as sessions:
        session = sessions.find(*KEY)
        await until(lambda: set_aside(path) and sessions.durability == "durable")
        assert error_count("corrupt") == before + 1
        with pytest.raises(ReplayGap):
            await session.recording.require(3)


def test_the_queue_counts_all_that_it_holds() -> None:
    queue = WriteQueue(max_bytes=50_000)
    large: Operation = Operation([("UPDATE turns SET request = ?", (b"x" * 20_000,))], 1)
    assert queue.put(large) and queue.num_bytes > 20_000
    assert queue.take(0)  # the writer has it now, and it is in memory all the same
    assert queue.put(Operation((), 1, [Event(0, b"x" * 20_000)]))
    assert not queue.put(Operation([("UPDATE turns SET summary = ?", ("x" * 20_000,))], 1))
