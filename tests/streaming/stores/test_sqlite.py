"""Real faults: files that are locked, full, deleted, broken; processes that die."""

import asyncio
import logging
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from server.errors import ReplayGap, StoreUnavailable
from server.streaming.stores.lease import Lease
from server.streaming.stores.sqlite import SqliteStore
from server.streaming.stores.store import StoreRefused
from tests.serving import REPOSITORY
from tests.streaming.stores.desk import HASTE, KEY, OTHER, Desk, counted, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made on the way" / "sessions.db"


@pytest.fixture
async def desk(path: Path) -> AsyncIterator[Desk]:
    desk = Desk(SqliteStore(path, patience=HASTE))
    await desk.open()
    desk.begin()
    yield desk
    await desk.store.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """A disk of a megabyte, mounted at `tmp_path`, and how to change it."""

    def change(option: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{option}", tmp_path], check=True)

    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may mount a small disk; `test_a_full_file...` fills a file without one")
    yield change
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


async def kept_by(path: Path) -> Desk:
    """Another process's look at the file, after this one's has ended."""
    desk = Desk(SqliteStore(path, patience=HASTE))
    desk.memory = {key: (session, []) for key, session in (await desk.open()).items()}
    return desk


def damage(path: Path, at: int, num_bytes: int = 64) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xa5" * num_bytes)


def size_of(path: Path) -> int:
    return path.stat().st_size


def shell(*command: str | Path) -> None:
    subprocess.run(command, check=True)


def process(program: str, path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, str(path)]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def set_aside(path: Path) -> list[Path]:
    return [one for one in path.parent.iterdir() if ".corrupt-" in one.name]


# One process per file.


async def test_a_second_store_is_refused_by_name(desk: Desk, path: Path) -> None:
    with pytest.raises(StoreRefused, match=rf"{path} is in use by process \d+ on \S+\. Only one"):
        await Desk(SqliteStore(path)).open()
    desk.append(b"undisturbed")
    await desk.caught_up()


async def test_so_is_a_second_process(desk: Desk, path: Path) -> None:
    program = """
import asyncio, sys
from pathlib import Path
from server.streaming.stores.sqlite import SqliteStore
asyncio.run(SqliteStore(Path(sys.argv[1])).open(lambda: [], lambda: None))
"""
    _, errors = process(program, path).communicate()
    assert f"{path} is in use by process" in errors


async def test_closing_hands_the_file_on(path: Path) -> None:
    for _ in range(2):
        desk = Desk(SqliteStore(path, patience=HASTE))
        await desk.open()
        await desk.store.close()


@pytest.mark.parametrize("rounds", [3, pytest.param(25, marks=pytest.mark.slow)])
async def test_a_killed_process_loses_nothing_it_has_told(path: Path, rounds: int) -> None:
    program = """
import asyncio, sys
from pathlib import Path
from server.streaming.stores.sqlite import SqliteStore
from tests.streaming.stores.desk import KEY, Desk

async def main():
    desk = Desk(SqliteStore(Path(sys.argv[1])))
    desk.memory = {key: (session, []) for key, session in (await desk.open()).items()}
    desk.begin()
    desk.told[KEY] = type("Out", (list,), {"append": lambda self, index: print(index, flush=True)})()
    while True:
        first = desk.memory[KEY][0].next_index
        desk.append(*(b"event %d" % index for index in range(first, first + 5)))
        await asyncio.sleep(0.0005)

asyncio.run(main())
"""
    told = -1
    for number in range(rounds):
        child = process(program, path)
        assert child.stdout
        with child:
            for _ in range(3 + 7 * number):
                told = int(child.stdout.readline())
            child.kill()
            told = max([told, *map(int, child.stdout.read().split("\n")[:-1])])
        desk = await kept_by(path)
        events = await desk.read_all()
        assert len(events) > told
        assert len(events) % 5 == 0  # an append is kept as a whole or not at all
        assert [event.data for event in events] == [b"event %d" % index for index in range(len(events))]
        assert desk.memory[KEY][0].next_index == len(events)
        await desk.store.close()


# Files that cannot be used.


async def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreRefused, match="cannot be written: .*file"):
        await Desk(SqliteStore(tmp_path / "file" / "sessions.db")).open()


async def test_a_folder_in_the_place_of_the_file_is_refused(path: Path) -> None:
    shell("mkdir", "-p", path)
    with pytest.raises(StoreRefused, match="unable to open database file"):
        await Desk(SqliteStore(path)).open()


async def test_a_read_only_disk_is_refused(small_disk: Callable[[str], None], path: Path) -> None:
    path.parent.mkdir()
    small_disk("ro")
    with pytest.raises(StoreRefused, match="cannot be written: Read-only file system"):
        await Desk(SqliteStore(path)).open()


async def test_a_read_only_file_is_refused(small_disk: Callable[[str], None], desk: Desk, path: Path) -> None:
    await desk.store.close()
    shell("mount", "--bind", path, path)
    try:
        shell("mount", "-o", "remount,ro,bind", path)
        with pytest.raises(StoreRefused, match="readonly"):
            await kept_by(path)
    finally:
        shell("umount", path)


async def test_a_file_of_a_newer_server_is_refused(path: Path) -> None:
    await (await kept_by(path)).store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreRefused, match="newer server"):
        await Desk(SqliteStore(path)).open()
    assert not set_aside(path)


async def test_a_file_of_another_program_is_refused(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE sessions (theirs)")
    with pytest.raises(StoreRefused, match="already exists"):
        await Desk(SqliteStore(path)).open()


async def test_an_empty_file_is_a_new_one(path: Path) -> None:
    shell("mkdir", path.parent)
    shell("touch", path)
    await (await kept_by(path)).store.close()


async def test_a_file_that_is_locked_at_the_start_is_refused(path: Path) -> None:
    await (await kept_by(path)).store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreRefused, match="SQLITE_BUSY"):
            await kept_by(path)
    await (await kept_by(path)).store.close()  # the lease was given back


# Files that are broken at the start.


async def broken(desk: Desk, path: Path) -> None:
    desk.append(*(b"%04d" % number * 50 for number in range(500)))
    await desk.store.close()


async def test_a_broken_header_is_set_aside(desk: Desk, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await broken(desk, path)
    damage(path, 0)
    before = counted("corrupt")
    again = await kept_by(path)
    assert again.memory == {}
    assert again.store.durability == "durable"
    assert [one.name.startswith("sessions.db.corrupt-2") for one in set_aside(path)] == [True]
    assert counted("corrupt") == before + 1
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    await again.store.close()


async def test_a_broken_page_is_set_aside(desk: Desk, path: Path) -> None:
    await broken(desk, path)
    for page in range(8, size_of(path) // 4096):
        damage(path, page * 4096)
    again = await kept_by(path)
    assert again.memory == {}
    assert set_aside(path)
    await again.store.close()


async def test_half_a_file_is_set_aside(desk: Desk, path: Path) -> None:
    await broken(desk, path)
    with path.open("r+b") as file:
        file.truncate(size_of(path) // 2)
    again = await kept_by(path)
    assert again.memory == {}
    assert set_aside(path)
    await again.store.close()


@pytest.mark.parametrize("damaged", ["all", "end", "half"])
async def test_a_broken_log_costs_its_end_at_most(desk: Desk, path: Path, tmp_path: Path, damaged: str) -> None:
    desk.append(*(b"%04d" % number * 50 for number in range(500)))
    await desk.caught_up()
    killed = tmp_path / "killed" / "sessions.db"
    killed.parent.mkdir()
    for part in ("", "-wal"):  # as after kill -9
        killed.with_name(killed.name + part).write_bytes(path.with_name(path.name + part).read_bytes())
    log = killed.with_name(killed.name + "-wal")
    size = log.stat().st_size
    if damaged == "half":
        with log.open("r+b") as file:
            file.truncate(size // 2 + 100)
    else:
        damage(log, 0 if damaged == "all" else size - 200, 200)
    again = await kept_by(killed)
    assert again.store.durability == "durable"
    again.begin(OTHER)
    again.append(b"new", key=OTHER)
    await again.caught_up(OTHER)
    await again.store.close()


# Faults while it runs.


async def test_a_short_lock_is_only_a_delay(path: Path) -> None:
    desk = Desk(SqliteStore(path, patience=replace(HASTE, busy_seconds=20.0)))
    await desk.open()
    desk.begin()
    await desk.store.flush()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        desk.append(b"a")
        await asyncio.sleep(0.05)
        assert desk.told[KEY] == []
        assert await desk.store.read(KEY, -1) == []
        other.execute("ROLLBACK")
    await desk.caught_up()
    assert desk.times_degraded == 0
    await desk.store.close()


async def test_a_long_lock_loses_nothing(desk: Desk, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = counted("SQLITE_BUSY")
    await desk.store.flush()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        desk.append(b"a")
        await until(lambda: counted("SQLITE_BUSY") >= before + 2)
        assert desk.store.durability == "degraded"
        desk.append(b"b")
        await desk.store.flush()  # does not wait for what may never come
        assert desk.told[KEY] == []
        with pytest.raises(StoreUnavailable):
            await desk.store.read(KEY, -1)
        other.execute("ROLLBACK")
    await desk.caught_up()
    assert [event.data for event in await desk.read_all()] == [b"a", b"b"]
    assert desk.times_degraded == 1
    assert len(caplog.records) == 2  # that it began, that it is over


async def test_a_slow_disk_is_noticed_without_waiting_for_it(path: Path) -> None:
    before = counted("slow")
    desk = Desk(SqliteStore(path, patience=replace(HASTE, busy_seconds=20.0, slow_seconds=0.02)))
    await desk.open()
    desk.begin()
    await desk.store.flush()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        desk.append(b"a")
        while desk.store.durability == "durable":
            desk.store.look_after()
            await asyncio.sleep(0.002)
        desk.store.look_after()
        other.execute("ROLLBACK")
    await desk.caught_up()
    assert (desk.times_degraded, counted("slow")) == (1, before + 1)
    await desk.store.close()


def is_free(lease: Lease) -> bool:
    try:
        lease.take()
    except StoreRefused:
        return False
    return True


async def test_closing_does_not_wait_for_ever(path: Path) -> None:
    desk = Desk(SqliteStore(path, patience=replace(HASTE, busy_seconds=1.0, close_seconds=0.02)))
    await desk.open()
    desk.begin()
    await desk.store.flush()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        desk.append(b"a")
        await desk.store.close()
        with pytest.raises(StoreRefused, match="in use"):  # its thread may still write
            await kept_by(path)
        other.execute("ROLLBACK")
    lease = Lease(path)
    await until(lambda: is_free(lease))
    lease.release()
    await (await kept_by(path)).store.close()


async def test_a_full_disk_is_caught_up_when_there_is_room(small_disk: Callable[[str], None], path: Path) -> None:
    before = counted("SQLITE_FULL")
    desk = Desk(SqliteStore(path, patience=HASTE))
    await desk.open()
    desk.begin()
    while desk.store.durability == "durable":
        desk.append(b"x" * 2000)
        await desk.store.flush()
    told = desk.told[KEY][-1]
    assert counted("SQLITE_FULL") > before
    assert len(await desk.store.read(KEY, -1)) > 0
    with pytest.raises(StoreUnavailable):
        await desk.store.read(KEY, told)
    desk.append(b"y" * 2000)
    small_disk("size=16m")
    await desk.caught_up()
    assert await desk.read_all() == desk.memory[KEY][1]
    await desk.store.close()


async def test_a_full_disk_at_the_start_is_no_reason_not_to_start(
    small_disk: Callable[[str], None], path: Path
) -> None:
    first = await kept_by(path)
    first.begin()
    first.append(b"a", b"b")
    await first.store.close()
    fill = path.with_name("fill")
    with pytest.raises(OSError, match="No space"):
        fill.write_bytes(bytes(2**21))
    second = await kept_by(path)
    assert second.memory[KEY][0].next_index == 2
    assert (second.store.durability, second.times_degraded) == ("degraded", 1)
    second.append(b"c")
    fill.unlink()
    await second.caught_up()
    assert [event.data for event in await second.read_all()] == [b"a", b"b", b"c"]
    await second.store.close()


async def test_nor_is_one_on_which_there_is_no_file_yet(small_disk: Callable[[str], None], path: Path) -> None:
    path.parent.mkdir()
    fill = path.with_name("fill")
    with pytest.raises(OSError, match="No space"):
        fill.write_bytes(bytes(2**21))
    desk = await kept_by(path)
    assert desk.store.durability == "degraded"
    desk.begin()
    desk.append(b"a")
    fill.unlink()
    await desk.caught_up()
    assert [event.data for event in await desk.read_all()] == [b"a"]
    await desk.store.close()


async def test_a_full_file_has_room_again_once_something_is_forgotten(path: Path) -> None:
    before = counted("SQLITE_FULL")
    desk = Desk(SqliteStore(path, patience=HASTE, max_bytes=2**20))
    await desk.open()
    desk.begin(OTHER)
    desk.append(*[b"x" * 300] * 2000, key=OTHER)
    desk.begin()
    await desk.caught_up(OTHER)
    desk.append(*[b"y" * 300] * 2000)
    await until(lambda: desk.store.durability == "degraded")
    assert counted("SQLITE_FULL") > before
    desk.forget(OTHER)
    await desk.caught_up()
    assert await desk.read_all() == desk.memory[KEY][1]
    await desk.store.close()


@pytest.mark.parametrize("parts", ["*", "sessions.db", "sessions.db-wal", "sessions.db-shm"])
async def test_a_deleted_file_is_begun_anew(desk: Desk, path: Path, parts: str) -> None:
    before = counted("deleted")
    turn = desk.begin(OTHER)
    desk.append(b"a", b"b")
    await desk.caught_up()
    for part in path.parent.glob(parts):
        part.unlink()
    await until(lambda: desk.times_degraded)
    desk.append(b"c")
    desk.end(turn, OTHER)
    desk.begin()
    desk.append(b"d")
    await desk.caught_up()
    assert counted("deleted") == before + 1
    assert await desk.read_all() == desk.memory[KEY][1]
    with pytest.raises(StoreRefused, match="in use"):  # also if the lease was deleted
        await Desk(SqliteStore(path)).open()
    await desk.store.close()
    again = await kept_by(path)
    assert {key: session for key, (session, _) in again.memory.items()} == {
        key: session for key, (session, _) in desk.memory.items()
    }
    await again.store.close()


async def test_closing_begins_anew_what_was_just_deleted(desk: Desk, path: Path) -> None:
    desk.append(b"a")
    await desk.caught_up()
    shell("rm", path)
    await until(lambda: desk.times_degraded)
    await desk.store.close()
    again = await kept_by(path)
    assert [event.data for event in await again.read_all()] == [b"a"]
    await again.store.close()


async def test_a_store_that_was_not_opened_can_be_closed(path: Path) -> None:
    await SqliteStore(path).close()


async def test_what_memory_has_dropped_is_a_gap_in_a_file_begun_anew(desk: Desk, path: Path) -> None:
    desk.append(*[b"a"] * 10)
    await desk.caught_up()
    session, events = desk.memory[KEY]
    del events[:6]
    session.first_kept = 6
    shell("rm", path)
    await until(lambda: desk.times_degraded)
    desk.append(b"b")
    await desk.caught_up()
    with pytest.raises(ReplayGap):
        await desk.store.read(KEY, 4)
    assert await desk.read_all(after=5) == events
    await desk.store.close()
    again = await kept_by(path)
    found, _ = again.memory[KEY]
    assert (found.first_kept, found.next_index) == (6, 11)
    await again.store.close()


async def test_a_folder_that_went_away_comes_back(desk: Desk, path: Path) -> None:
    desk.append(b"a")
    await desk.caught_up()
    gone = path.parent.rename(path.parent.with_name("gone"))
    path.parent.touch()  # and cannot be made again for now
    await until(lambda: desk.times_degraded)
    desk.append(b"b")
    with pytest.raises(StoreUnavailable):
        await desk.store.read(KEY, -1)
    path.parent.unlink()
    await desk.caught_up()
    assert [event.data for event in await desk.read_all()] == [b"a", b"b"]
    assert (gone / path.name).exists()


async def test_another_file_in_its_place_is_set_aside(desk: Desk, path: Path) -> None:
    desk.append(b"a")
    await desk.caught_up()
    (other := path.with_name("other")).write_bytes(b"something else")
    other.replace(path)
    await until(lambda: desk.times_degraded)
    await desk.caught_up()
    assert [event.data for event in await desk.read_all()] == [b"a"]
    assert b"something else" in [one.read_bytes() for one in set_aside(path)]


async def test_a_file_that_breaks_is_begun_anew(desk: Desk, path: Path) -> None:
    before = counted("corrupt")
    desk.append(*(b"%04d" % number * 50 for number in range(500)))
    await desk.caught_up()
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    damage(path, 0, size_of(path))
    with pytest.raises(StoreUnavailable):
        await desk.store.read(KEY, -1)
    await until(lambda: desk.times_degraded)
    await desk.caught_up()
    assert await desk.read_all() == desk.memory[KEY][1]
    assert counted("corrupt") == before + 1
    assert set_aside(path)


async def test_what_waits_is_bounded_and_memory_takes_its_place(path: Path) -> None:
    desk = Desk(SqliteStore(path, patience=replace(HASTE, waiting_bytes=10_000)))
    await desk.open()
    desk.begin()
    desk.append(*[b"kept"] * 10)
    await desk.caught_up()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for _ in range(100):
            desk.append(b"z" * 1000)
        desk.begin(OTHER)
        desk.append(b"also", key=OTHER)
        assert (desk.store.durability, desk.times_degraded) == ("degraded", 1)
        other.execute("ROLLBACK")
    await desk.caught_up()
    await desk.caught_up(OTHER)
    assert await desk.read_all() == desk.memory[KEY][1]
    assert [event.data for event in await desk.read_all(OTHER)] == [b"also"]
    desk.append(b"after")
    await desk.caught_up()
    assert len(await desk.read_all()) == 111
    await desk.store.close()


async def test_what_can_never_be_kept_does_not_stop_the_rest(desk: Desk) -> None:
    before = counted("other")
    desk.append(b"a")
    await desk.store.flush()
    desk.store.append(KEY, desk.memory[KEY][1], desk.told[KEY].append)  # a second time
    await until(lambda: counted("other") > before)
    desk.append(b"b")
    await desk.caught_up()
    assert [event.data for event in await desk.read_all()] == [b"a", b"b"]


async def test_a_listener_that_fails_does_not_keep_it_from_the_others(desk: Desk) -> None:
    def fail(index: int) -> None:
        raise ValueError(index)

    desk.begin(OTHER)
    desk.store.append(OTHER, [], fail)
    desk.append(b"a", key=OTHER)
    session, events = desk.memory[KEY]
    desk.append(b"b")
    desk.store.append(OTHER, [replace(events[0], index=1)], fail)
    desk.append(b"c")
    await desk.caught_up()


async def test_a_large_session_is_forgotten_little_by_little(desk: Desk, path: Path) -> None:
    desk.begin(OTHER)
    desk.append(*[b"x" * 300] * 5000, key=OTHER)
    await desk.caught_up(OTHER)
    desk.forget(OTHER)
    desk.append(b"meanwhile")
    await desk.caught_up()

    def num_left() -> int:
        with closing(sqlite3.connect(path)) as other:
            [left] = other.execute("SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM forgotten)").fetchone()
            return int(left)

    await until(lambda: num_left() == 1)
