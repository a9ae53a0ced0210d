"""One process at a time uses a file; the next one finds every acknowledged event."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.forms import short_or_long
from tests.streaming.stores.damaged_files import process, reopened
from tests.streaming.stores.harness import FAST, KEY, StoreHarness, until
from tis.streaming.stores.file_lock import FileLock
from tis.streaming.stores.sqlite import SqliteStore
from tis.streaming.stores.store import StoreRefused

pytestmark = pytest.mark.anyio


async def test_a_second_store_is_refused_by_name(harness: StoreHarness, path: Path) -> None:
    with pytest.raises(StoreRefused, match=rf"{path} is in use by process \d+ on \S+\. Only one"):
        await StoreHarness(SqliteStore(path)).open()
    harness.append(b"undisturbed")
    await harness.caught_up()


async def test_a_second_process_is_refused_too(harness: StoreHarness, path: Path) -> None:
    program = """
import asyncio, sys
from pathlib import Path
from tis.streaming.stores.sqlite import SqliteStore
asyncio.run(SqliteStore(Path(sys.argv[1])).open(lambda: [], lambda: None, print))
"""
    _, errors = process(program, path).communicate()
    assert f"{path} is in use by process" in errors


async def test_closing_releases_the_file(path: Path) -> None:
    for _ in range(2):
        harness = StoreHarness(SqliteStore(path, timeouts=FAST))
        await harness.open()
        await harness.store.close()


async def test_closing_has_a_timeout(path: Path) -> None:
    harness = StoreHarness(SqliteStore(path, timeouts=replace(FAST, busy_seconds=1.0, close_seconds=0.02)))
    await harness.open()
    harness.begin_turn()
    await harness.store.flush()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        harness.append(b"a")
        await harness.store.close()
        with pytest.raises(StoreRefused, match="in use"):  # its thread may still write
            await reopened(path)
        other.execute("ROLLBACK")
    lock = FileLock(path)
    await until(lambda: is_free(lock))
    lock.release()
    await (await reopened(path)).store.close()


def is_free(lock: FileLock) -> bool:
    try:
        lock.acquire()
    except StoreRefused:
        return False
    return True


async def test_a_store_that_was_not_opened_can_be_closed(path: Path) -> None:
    await SqliteStore(path).close()


@pytest.mark.parametrize("rounds", [1, pytest.param(short_or_long(8, 50), marks=pytest.mark.slow)])
@pytest.mark.long
async def test_a_killed_process_loses_nothing_that_it_acknowledged(path: Path, rounds: int) -> None:
    program = """
import asyncio, sys
from pathlib import Path
from tis.streaming.stores.sqlite import SqliteStore
from tests.streaming.stores.harness import KEY, StoreHarness

async def main():
    harness = StoreHarness(SqliteStore(Path(sys.argv[1])))
    harness.memory = {key: (session, []) for key, session in (await harness.open()).items()}
    harness.begin_turn()
    harness.acks[KEY] = type("Out", (list,), {"append": lambda self, index: print(index, flush=True)})()
    while True:
        first = harness.memory[KEY][0].next_index
        harness.append(*(b"event %d" % index for index in range(first, first + 5)))
        await asyncio.sleep(0.0005)

asyncio.run(main())
"""
    acknowledged = -1
    for number in range(rounds):
        child = process(program, path)
        assert child.stdout
        with child:
            for _ in range(3 + 7 * number):
                acknowledged = int(child.stdout.readline())
            child.kill()
            acknowledged = max([acknowledged, *map(int, child.stdout.read().split("\n")[:-1])])
        harness = await reopened(path)
        events = await harness.read_all()
        assert len(events) > acknowledged
        assert len(events) % 5 == 0  # an append is kept as a whole or not at all
        assert [event.data for event in events] == [b"event %d" % index for index in range(len(events))]
        assert harness.memory[KEY][0].next_index == len(events)
        await harness.store.close()
