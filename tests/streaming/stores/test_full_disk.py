"""A full disk, at the start or later."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.streaming.stores.damaged_files import reopened
from tests.streaming.stores.harness import FAST, KEY, OTHER, StoreHarness, error_count, until
from tis.streaming.errors import StoreUnavailable
from tis.streaming.stores.sqlite import SqliteStore

pytestmark = pytest.mark.anyio


async def test_the_store_catches_up_after_a_full_disk(small_disk: Callable[[str], None], path: Path) -> None:
    before = error_count("SQLITE_FULL")
    harness = StoreHarness(SqliteStore(path, timeouts=FAST))
    await harness.open()
    harness.begin_turn()
    while harness.store.durability == "durable":
        harness.append(b"x" * 2000)
        await harness.store.flush()
    acknowledged = harness.acks[KEY][-1]
    assert error_count("SQLITE_FULL") > before
    assert len(await harness.store.read(KEY, -1)) > 0
    with pytest.raises(StoreUnavailable):
        await harness.store.read(KEY, acknowledged)
    harness.append(b"y" * 2000)
    small_disk("size=16m")
    await harness.caught_up()
    assert await harness.read_all() == harness.memory[KEY][1]
    await harness.store.close()


async def test_the_store_opens_on_a_full_disk(small_disk: Callable[[str], None], path: Path) -> None:
    first = await reopened(path)
    first.begin_turn()
    first.append(b"a", b"b")
    await first.store.close()
    fill = path.with_name("fill")
    with pytest.raises(OSError, match="No space"):
        fill.write_bytes(bytes(2**21))
    second = await reopened(path)
    assert second.memory[KEY][0].next_index == 2
    assert (second.store.durability, second.times_degraded) == ("degraded", 1)
    second.append(b"c")
    fill.unlink()
    await second.caught_up()
    assert [event.data for event in await second.read_all()] == [b"a", b"b", b"c"]
    await second.store.close()


async def test_the_store_opens_on_a_full_disk_without_a_file(small_disk: Callable[[str], None], path: Path) -> None:
    path.parent.mkdir()
    fill = path.with_name("fill")
    with pytest.raises(OSError, match="No space"):
        fill.write_bytes(bytes(2**21))
    harness = await reopened(path)
    assert harness.store.durability == "degraded"
    harness.begin_turn()
    harness.append(b"a")
    fill.unlink()
    await harness.caught_up()
    assert [event.data for event in await harness.read_all()] == [b"a"]
    await harness.store.close()


async def test_a_full_file_has_space_again_after_a_delete(path: Path) -> None:
    before = error_count("SQLITE_FULL")
    harness = StoreHarness(SqliteStore(path, timeouts=FAST, max_file_bytes=2**20))
    await harness.open()
    harness.begin_turn(OTHER)
    harness.append(*[b"x" * 300] * 2000, key=OTHER)
    harness.begin_turn()
    await harness.caught_up(OTHER)
    harness.append(*[b"y" * 300] * 2000)
    await until(lambda: harness.store.durability == "degraded")
    assert error_count("SQLITE_FULL") > before
    harness.forget(OTHER)
    await harness.caught_up()
    assert await harness.read_all() == harness.memory[KEY][1]
    await harness.store.close()
