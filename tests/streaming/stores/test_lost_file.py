"""A file that is deleted, replaced or damaged while the server runs."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.streaming.stores.damaged_files import damage, process, reopened, set_aside, shell, size_of
from tests.streaming.stores.harness import KEY, OTHER, StoreHarness, error_count, until
from tis.streaming.errors import ReplayGap, StoreUnavailable
from tis.streaming.stores.sqlite import SqliteStore
from tis.streaming.stores.store import StoreRefused

pytestmark = [pytest.mark.anyio, pytest.mark.long]


@pytest.mark.parametrize("parts", ["*", "sessions.db", "sessions.db-wal", "sessions.db-shm"])
async def test_a_deleted_file_is_written_again(harness: StoreHarness, path: Path, parts: str) -> None:
    before = error_count("deleted")
    turn = harness.begin_turn(OTHER)
    harness.append(b"a", b"b")
    await harness.caught_up()
    for part in path.parent.glob(parts):
        part.unlink()
    await until(lambda: harness.times_degraded)
    harness.append(b"c")
    harness.end_turn(turn, OTHER)
    harness.begin_turn()
    harness.append(b"d")
    await harness.caught_up()
    assert error_count("deleted") == before + 1
    assert await harness.read_all() == harness.memory[KEY][1]
    with pytest.raises(StoreRefused, match="in use"):  # also if the lock was deleted
        await StoreHarness(SqliteStore(path)).open()
    await harness.store.close()
    again = await reopened(path)
    assert {key: session for key, (session, _) in again.memory.items()} == {
        key: session for key, (session, _) in harness.memory.items()
    }
    await again.store.close()


async def test_closing_writes_a_just_deleted_file_again(harness: StoreHarness, path: Path) -> None:
    harness.append(b"a")
    await harness.caught_up()
    shell("rm", path)
    await until(lambda: harness.times_degraded)
    await harness.store.close()
    again = await reopened(path)
    assert [event.data for event in await again.read_all()] == [b"a"]
    await again.store.close()


async def test_events_dropped_from_memory_are_a_gap_in_the_new_file(harness: StoreHarness, path: Path) -> None:
    harness.append(*[b"a"] * 10)
    await harness.caught_up()
    _, events = harness.memory[KEY]
    del events[:6]
    shell("rm", path)
    await until(lambda: harness.times_degraded)
    harness.append(b"b")
    await harness.caught_up()
    with pytest.raises(ReplayGap):
        await harness.store.read(KEY, 4)
    assert await harness.read_all(after=5) == events
    await harness.store.close()
    again = await reopened(path)
    found, _ = again.memory[KEY]
    assert found.next_index == 11
    await again.store.close()


async def test_a_folder_that_went_away_comes_back(harness: StoreHarness, path: Path) -> None:
    harness.append(b"a")
    await harness.caught_up()
    gone = path.parent.rename(path.parent.with_name("gone"))
    path.parent.touch()  # and cannot be made again for now
    await until(lambda: harness.times_degraded)
    harness.append(b"b")
    with pytest.raises(StoreUnavailable):
        await harness.store.read(KEY, -1)
    path.parent.unlink()
    await harness.caught_up()
    assert [event.data for event in await harness.read_all()] == [b"a", b"b"]
    assert (gone / path.name).exists()


async def test_a_foreign_file_in_its_place_is_renamed(harness: StoreHarness, path: Path) -> None:
    harness.append(b"a")
    await harness.caught_up()
    (other := path.with_name("other")).write_bytes(b"something else")
    other.replace(path)
    await until(lambda: harness.times_degraded)
    await harness.caught_up()
    assert [event.data for event in await harness.read_all()] == [b"a"]
    assert b"something else" in [one.read_bytes() for one in set_aside(path)]


async def test_a_damaged_file_is_replaced_by_a_new_one(harness: StoreHarness, path: Path) -> None:
    before = error_count("corrupt")
    harness.append(*(b"%04d" % number * 50 for number in range(500)))
    await harness.caught_up()
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    damage(path, 0, size_of(path))
    with pytest.raises(StoreUnavailable):
        await harness.store.read(KEY, -1)
    await until(lambda: harness.times_degraded)
    await harness.caught_up()
    assert await harness.read_all() == harness.memory[KEY][1]
    assert error_count("corrupt") == before + 1
    assert set_aside(path)


CUT_SHORT = """
import asyncio, sqlite3, sys
from contextlib import closing
from pathlib import Path
from tis.streaming.errors import StoreUnavailable
from tis.streaming.stores.sqlite import SqliteStore
from tests.streaming.stores.harness import FAST, KEY, StoreHarness, until
from tests.streaming.stores.damaged_files import shell, size_of

async def main(path, share):
    harness = StoreHarness(SqliteStore(path, timeouts=FAST))
    await harness.open()
    harness.begin_turn()
    harness.append(*[b"x" * 500] * 500)
    await harness.caught_up()
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shell("truncate", "-s", str(int(size_of(path) * share)), path)
    try:
        await harness.read_all()
    except StoreUnavailable as error:
        print(error)
    harness.append(b"y")
    await until(lambda: harness.times_degraded)
    await harness.caught_up()
    print(await harness.read_all() == harness.memory[KEY][1])
    await harness.store.close()

asyncio.run(main(Path(sys.argv[1]), SHARE))
"""


@pytest.mark.parametrize("share", [0, 0.5])
async def test_a_truncated_file_is_replaced_by_a_new_one(path: Path, share: float) -> None:
    child = process(CUT_SHORT.replace("SHARE", str(share)), path)
    output, errors = child.communicate()
    assert child.returncode == 0, errors
    assert output.splitlines() == ["The store cannot be read now. Retry later.", "True"]
    assert set_aside(path)
