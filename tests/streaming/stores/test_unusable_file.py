"""Files that are unusable or damaged when the server starts."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tests.streaming.stores.damaged_files import damage, reopened, set_aside, shell, size_of
from tests.streaming.stores.harness import OTHER, StoreHarness, error_count, until
from tis.streaming.stores.sqlite import SqliteStore
from tis.streaming.stores.sqlite_file import SqliteFile
from tis.streaming.stores.store import SessionKey, StoreRefused

pytestmark = pytest.mark.anyio


async def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreRefused, match="cannot be written: .*file"):
        await StoreHarness(SqliteStore(tmp_path / "file" / "sessions.db")).open()


async def test_a_folder_in_the_place_of_the_file_is_refused(path: Path) -> None:
    shell("mkdir", "-p", path)
    with pytest.raises(StoreRefused, match="unable to open database file"):
        await StoreHarness(SqliteStore(path)).open()


async def test_a_read_only_disk_is_refused(small_disk: Callable[[str], None], path: Path) -> None:
    path.parent.mkdir()
    small_disk("ro")
    with pytest.raises(StoreRefused, match="cannot be written: Read-only file system"):
        await StoreHarness(SqliteStore(path)).open()


async def test_a_read_only_file_is_refused(
    small_disk: Callable[[str], None], harness: StoreHarness, path: Path
) -> None:
    await harness.store.close()
    shell("mount", "--bind", path, path)
    try:
        shell("mount", "-o", "remount,ro,bind", path)
        with pytest.raises(StoreRefused, match="readonly"):
            await reopened(path)
    finally:
        shell("umount", path)


async def test_a_file_of_a_newer_server_is_refused(path: Path) -> None:
    await (await reopened(path)).store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreRefused, match="newer server"):
        await StoreHarness(SqliteStore(path)).open()
    assert not set_aside(path)


async def test_a_file_of_another_program_is_refused(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE sessions (theirs)")
    with pytest.raises(StoreRefused, match="already exists"):
        await StoreHarness(SqliteStore(path)).open()


async def test_an_empty_file_becomes_a_database(path: Path) -> None:
    shell("mkdir", path.parent)
    shell("touch", path)
    await (await reopened(path)).store.close()
    shell("grep", "-q", "SQLite format 3", path)


async def test_a_file_that_is_locked_at_the_start_is_refused(path: Path) -> None:
    await (await reopened(path)).store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreRefused, match="SQLITE_BUSY"):
            await reopened(path)
    await (await reopened(path)).store.close()  # the lock was given back


async def broken(harness: StoreHarness, path: Path) -> None:
    harness.append(*(b"%04d" % number * 50 for number in range(500)))
    await harness.store.close()


async def test_a_file_with_a_damaged_header_is_renamed(
    harness: StoreHarness, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await broken(harness, path)
    damage(path, 0)
    before = error_count("corrupt")
    again = await reopened(path)
    assert again.memory == {}
    assert again.store.durability == "durable"
    assert [one.name.startswith("sessions.db.corrupt-2") for one in set_aside(path)] == [True]
    assert error_count("corrupt") == before + 1
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    await again.store.close()


async def test_a_file_with_damaged_pages_is_renamed(harness: StoreHarness, path: Path) -> None:
    await broken(harness, path)
    for page in range(8, size_of(path) // 4096):
        damage(path, page * 4096)
    again = await reopened(path)  # the sessions are in an earlier page: only the check in the background finds it
    await until(lambda: set_aside(path) and again.store.durability == "durable")
    await again.store.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE turns SET status = CAST(x'ff6e' AS TEXT)",
        "UPDATE turns SET status = 'runnjng'",
        "UPDATE turns SET request = CAST(x'ff6e' AS TEXT)",
        "UPDATE turns SET first_index = 'many'",
        "UPDATE sessions SET owner = CAST(x'ff6e' AS TEXT)",
        "UPDATE sessions SET id = x'00'",
        "UPDATE sessions SET number = 9223372036854775807",
        "UPDATE clock SET house = 'now'",
        "INSERT INTO forgotten (session) VALUES (9223372036854775807)",
    ],
)
async def test_a_file_with_a_value_that_nobody_writes_is_renamed(
    harness: StoreHarness, path: Path, change: str
) -> None:
    """Damage may leave the pages whole, and no check of SQLite finds it then."""
    await broken(harness, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(change)
    again = await reopened(path)
    assert again.memory == {}
    assert len(set_aside(path)) == 1
    await again.store.close()


async def test_no_damage_hinders_a_start(harness: StoreHarness, path: Path, tmp_path: Path) -> None:
    for number in range(12):
        key = SessionKey(f"owner {number}", f"session {number}")
        turn = harness.begin_turn(key)
        harness.append(*(b"%04d" % event for event in range(40)), key=key)
        if number % 3:
            harness.end_turn(turn, key)
    await broken(harness, path)
    num_loaded, num_set_aside = await asyncio.to_thread(_load_damaged_copies, path, tmp_path)
    assert num_loaded > 10 and num_set_aside > 10  # both happen, and nothing else


def _load_damaged_copies(path: Path, folder: Path) -> tuple[int, int]:
    whole, num_loaded, num_set_aside = path.read_bytes(), 0, 0
    for seed in range(100):
        chance = Random(seed)
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 40)):
            at, num_bytes = chance.randrange(4096, len(damaged) - 500), chance.choice([1, 8, 500])
            damaged[at : at + num_bytes] = chance.randbytes(num_bytes)
        copy = folder / f"damaged-{seed}" / "sessions.db"
        copy.parent.mkdir()
        copy.write_bytes(damaged)
        try:
            SqliteFile(copy, "normal", 0.05, None).load()
        except StoreRefused as refused:  # a damaged name in the schema: the file could be another program's
            assert "no such" in str(refused)
            continue
        num_set_aside += len(set_aside(copy))
        num_loaded += not set_aside(copy)
    return num_loaded, num_set_aside


async def test_half_a_file_is_renamed(harness: StoreHarness, path: Path) -> None:
    await broken(harness, path)
    with path.open("r+b") as file:
        file.truncate(size_of(path) // 2)
    again = await reopened(path)
    assert again.memory == {}
    assert set_aside(path)
    await again.store.close()


@pytest.mark.parametrize("damaged", ["all", "end", "half"])
async def test_a_damaged_log_loses_at_most_its_end(
    harness: StoreHarness, path: Path, tmp_path: Path, damaged: str
) -> None:
    harness.append(*(b"%04d" % number * 50 for number in range(500)))
    await harness.caught_up()
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
    again = await reopened(killed)
    assert again.store.durability == "durable"
    again.begin_turn(OTHER)
    again.append(b"new", key=OTHER)
    await again.caught_up(OTHER)
    await again.store.close()
