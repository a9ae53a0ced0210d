"""Attachments in the store: once per session, bounded, deleted with their session."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.streaming.stores.damaged_files import process, reopened, shell
from tests.streaming.stores.harness import FAST, KEY, OTHER, StoreHarness, until
from tis.streaming.errors import StoreUnavailable
from tis.streaming.stores.memory import MemoryStore
from tis.streaming.stores.sqlite import SqliteStore
from tis.streaming.stores.sqlite_rows import Operation
from tis.streaming.stores.store import Event
from tis.streaming.stores.write_queue import WriteQueue

pytestmark = pytest.mark.anyio
PICTURE, VIDEO = b"a picture" * 1000, bytes(range(256)) * 10_000


@pytest.fixture
async def harness(path: Path) -> AsyncIterator[StoreHarness]:
    harness = StoreHarness(SqliteStore(path, timeouts=FAST))
    await harness.open()
    yield harness
    await harness.store.close()


async def attached(harness: StoreHarness, *names: str) -> dict[str, bytes]:
    await harness.store.flush()
    return dict(await harness.store.read_attachments(KEY, names))


def rows(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as other:
        [number] = other.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(number)


def found_in(path: Path, data: bytes) -> bool:
    return any(data in part.read_bytes() for part in path.parent.glob(f"{path.name}*"))


async def test_the_memory_store_has_no_attachments() -> None:
    harness = StoreHarness(MemoryStore())
    harness.begin_turn(attachments={"picture": PICTURE})
    assert await attached(harness, "picture") == {}


async def test_attachments_are_read_by_name_and_missing_ones_are_absent(harness: StoreHarness) -> None:
    harness.begin_turn(attachments={"picture": PICTURE, "video": VIDEO, "empty": b""})
    assert await attached(harness, "video", "nothing") == {"video": VIDEO}
    assert await attached(harness, "picture", "empty") == {"picture": PICTURE, "empty": b""}
    assert await attached(harness) == {}


async def test_another_session_has_its_own_attachments(harness: StoreHarness) -> None:
    harness.begin_turn(OTHER, {"picture": PICTURE})
    assert await attached(harness, "picture") == {}
    harness.begin_turn()
    assert await attached(harness, "picture") == {}


async def test_the_same_attachment_in_many_turns_is_stored_once(harness: StoreHarness, path: Path) -> None:
    for _ in range(10):
        harness.end_turn(harness.begin_turn(attachments={"picture": PICTURE, "video": VIDEO}))
    await harness.store.flush()
    assert (rows(path, "attachments"), rows(path, "attachment_parts")) == (2, 4)
    assert await attached(harness, "picture", "video") == {"picture": PICTURE, "video": VIDEO}


async def test_attachments_of_the_oldest_turns_are_deleted_first(harness: StoreHarness, path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        both = {"again": b"." * 100, name: name.encode() * 100}
        harness.end_turn(harness.begin_turn(attachments=both, max_attached_bytes=300))
    assert await attached(harness, "again", "a", "b", "c", "d") == {
        "again": b"." * 100,
        "c": b"c" * 100,
        "d": b"d" * 100,
    }
    assert rows(path, "attachment_parts") == 3


async def test_the_next_process_reads_the_attachments_after_a_kill(path: Path) -> None:
    program = """
import asyncio, sys
from pathlib import Path
from tis.streaming.stores.sqlite import SqliteStore
from tests.streaming.stores.harness import KEY, StoreHarness

async def main():
    harness = StoreHarness(SqliteStore(Path(sys.argv[1])))
    await harness.open()
    harness.begin_turn(attachments={"picture": b"a picture" * 1000, "video": bytes(range(256)) * 10_000})
    harness.acks[KEY] = type("Out", (list,), {"append": lambda self, index: print(index, flush=True)})()
    harness.append(b"a")
    await asyncio.sleep(3600)

asyncio.run(main())
"""
    child = process(program, path)
    assert child.stdout
    with child:
        assert child.stdout.readline() == "0\n"
        child.kill()
    harness = await reopened(path)
    assert [turn.status for turn in harness.memory[KEY][0].turns] == ["running"]
    assert await attached(harness, "picture", "video") == {"picture": PICTURE, "video": VIDEO}
    await harness.store.close()


async def test_deleting_a_session_deletes_its_attachments_from_the_file(harness: StoreHarness, path: Path) -> None:
    harness.begin_turn(attachments={"picture": PICTURE, "large": VIDEO * 10})
    assert await attached(harness, "picture")
    assert found_in(path, b"a picture")
    harness.forget()
    assert await attached(harness, "picture") == {}
    await until(lambda: rows(path, "forgotten") == rows(path, "attachment_parts") == rows(path, "attachments") == 0)
    await harness.store.close()
    assert not found_in(path, b"a picture")


async def test_a_new_session_of_the_same_name_does_not_find_them(harness: StoreHarness) -> None:
    harness.begin_turn(attachments={"picture": PICTURE})
    harness.forget()
    harness.begin_turn()
    assert await attached(harness, "picture") == {}


async def test_a_new_file_gets_the_attachments_of_running_turns(harness: StoreHarness, path: Path) -> None:
    harness.end_turn(harness.begin_turn(attachments={"old": b"old"}))
    harness.begin_turn(attachments={"picture": PICTURE})
    harness.append(b"a")
    await harness.caught_up()
    shell("rm", path)
    await until(lambda: harness.times_degraded)
    await harness.caught_up()
    assert await attached(harness, "old", "picture") == {"picture": PICTURE}


async def test_a_degraded_store_cannot_say_which_attachments_exist(harness: StoreHarness, path: Path) -> None:
    harness.begin_turn(OTHER)
    await harness.store.flush()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        harness.begin_turn(attachments={"picture": PICTURE})
        harness.append(b"a")
        await until(lambda: harness.store.durability == "degraded")
        with pytest.raises(StoreUnavailable):
            await harness.store.read_attachments(KEY, ["picture"])
        other.execute("ROLLBACK")
    await harness.caught_up()
    assert await attached(harness, "picture") == {"picture": PICTURE}


async def test_without_space_for_attachments_the_answer_is_stored_alone(path: Path) -> None:
    harness = StoreHarness(SqliteStore(path, timeouts=FAST, max_file_bytes=2**20))
    await harness.open()
    harness.begin_turn(OTHER, {"picture": PICTURE})
    harness.begin_turn(attachments={"video": VIDEO})
    harness.append(b"a")
    await harness.caught_up()
    assert [event.data for event in await harness.read_all()] == [b"a"]
    assert await attached(harness, "video") == {}
    shell("rm", path)  # and memory has them still
    await until(lambda: harness.times_degraded == 2)
    await harness.caught_up()
    assert [event.data for event in await harness.read_all()] == [b"a"]
    await harness.store.close()


def test_a_batch_takes_only_a_few_large_operations() -> None:
    queue = WriteQueue(2**30)
    for _ in range(5):
        queue.put(Operation(attached_bytes=2**23))
    sizes = []
    while batch := queue.take(idle_seconds=0):
        sizes.append(len(batch.operations))
        queue.finish_batch()
    assert sizes == [2, 2, 1]


def test_a_full_queue_drops_attachments_before_answers() -> None:
    queue = WriteQueue(max_bytes=1000)
    answer = Operation(session=1, events=[Event(0, b"a" * 100)])
    assert queue.put(answer)
    large = Operation(session=2, attached=[("INSERT", (b"",))], attached_bytes=5000)
    assert queue.put(large) and not large.attached
    assert not queue.needs_snapshot
    assert not queue.put(Operation(session=3, events=[Event(0, b"a" * 1000)]))
