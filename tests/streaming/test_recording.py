import asyncio
import gc

import pytest

from tests.streaming.manual_store import ManualStore
from tis.streaming.errors import ReplayGap, StoreUnavailable
from tis.streaming.recording import Reader, Recording, WindowLimits
from tis.streaming.source import Block
from tis.streaming.stores.memory import MemoryStore
from tis.streaming.stores.store import Event, SessionKey

pytestmark = pytest.mark.anyio
KEY = SessionKey("me", "s")


def recording_of(size: WindowLimits | None = None) -> Recording:
    return Recording(KEY, MemoryStore(), size or WindowLimits())


def blocks(*data: bytes) -> list[Block]:
    return [Block(one) for one in data]


async def read(reader: Reader) -> list[Event]:
    return [event async for events in reader.batches() for event in events]


def joined(recording: Recording, after: int = -1) -> Reader:
    reader = Reader(recording, after)
    recording.readers.add(reader)
    return reader


def end(recording: Recording) -> None:
    for reader in recording.readers:
        reader.stop_at(recording.next_index - 1)


async def test_a_late_reader_sees_everything_from_the_beginning() -> None:
    recording = recording_of()
    recording.append(blocks(b"a", b"b"))
    reading = asyncio.create_task(read(joined(recording)))
    await asyncio.sleep(0)
    recording.append(blocks(b"c"))
    end(recording)
    assert await reading == [Event(0, b"a"), Event(1, b"b"), Event(2, b"c")]


async def test_a_reader_starts_behind_its_cursor() -> None:
    recording = recording_of()
    recording.append(blocks(b"a", b"b", b"c"))
    reader = joined(recording, after=1)
    end(recording)
    assert await read(reader) == [Event(2, b"c")]


async def test_events_that_are_kept_cost_the_garbage_collector_nothing() -> None:
    """A thousand sessions of two thousand events would stop the server for a second at each full collection."""

    def num_events() -> int:
        return sum(type(one) is Event for one in gc.get_objects())

    recording, before = recording_of(), num_events()
    recording.append(blocks(*[b"x" * 20] * 1000))
    assert len(recording.window) == 1000 and num_events() < before + 100


async def test_a_stalled_connection_holds_little_however_large_its_events_are() -> None:
    recording = recording_of()
    recording.append(blocks(*[b"x" * 5000] * 10, b"x" * 100_000))
    reader = joined(recording)
    end(recording)
    batches = [[len(event.data) for event in events] async for events in reader.batches()]
    assert batches == [[5000] * 3] * 3 + [[5000], [100_000]]


async def test_each_reader_has_its_own_cursor_and_a_stalled_one_blocks_no_other() -> None:
    recording = recording_of()
    sleeping = joined(recording).batches()
    recording.append(blocks(b"a"))
    assert [event.data for event in await anext(sleeping)] == [b"a"]
    awake = asyncio.create_task(read(joined(recording)))
    recording.append(blocks(b"b") * 100)
    end(recording)
    assert len(await awake) == 101
    assert len(await anext(sleeping)) == 100


async def test_a_later_turn_is_not_for_the_readers_of_an_earlier_one() -> None:
    recording = recording_of()
    recording.append(blocks(b"first"))
    reader = joined(recording)
    end(recording)
    recording.append(blocks(b"second"))
    end(recording)
    assert await read(reader) == [Event(0, b"first")]


async def test_the_number_of_events_is_bounded_and_a_gap_raises() -> None:
    recording = recording_of(WindowLimits(max_events=100))
    for _ in range(1000):
        recording.append(blocks(b"x"))
    assert 100 <= recording.next_index - recording.window_start <= 126
    assert recording.ready_after(10) is None
    with pytest.raises(ReplayGap):
        await recording.require(10)
    kept = recording.ready_after(recording.window_start - 1)
    assert kept and kept[0].index == recording.window_start


async def test_the_bytes_are_bounded_whatever_the_number() -> None:
    recording = recording_of(WindowLimits(max_bytes=1000))
    for _ in range(100):
        recording.append(blocks(b"x" * 300))
    kept = recording.ready_after(recording.window_start - 1)
    assert kept and sum(len(event.data) for event in kept) <= 1000 and kept[-1].index == 99


async def test_one_event_over_the_limit_is_still_readable() -> None:
    recording = recording_of(WindowLimits(max_bytes=10))
    recording.append(blocks(b"x" * 300))
    assert recording.ready_after(-1) == [Event(0, b"x" * 300)]


async def test_a_reader_that_fell_behind_gets_a_gap() -> None:
    recording = recording_of(WindowLimits(max_events=10))
    slow = joined(recording).batches()
    recording.append(blocks(b"x"))
    await anext(slow)
    recording.append(blocks(b"x") * 50)
    with pytest.raises(ReplayGap):
        await anext(slow)


async def test_an_idle_reader_gets_a_heartbeat() -> None:
    recording = recording_of()
    reader = joined(recording)
    waiting = asyncio.ensure_future(anext(reader.batches()))
    await asyncio.sleep(0)
    reader.wake_if_idle(3600)
    await asyncio.sleep(0)
    assert not waiting.done()
    reader.wake_if_idle(0)
    assert await waiting == []


class TestWithAStore:
    async def test_no_event_is_visible_before_its_commit(self) -> None:
        store = ManualStore()
        recording = Recording(KEY, store, WindowLimits())
        reader = joined(recording).batches()
        recording.append(blocks(b"a", b"b"))
        waiting = asyncio.ensure_future(anext(reader))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        store.commit()
        assert [event.data for event in await waiting] == [b"a", b"b"]

    async def test_events_before_the_window_come_from_the_store(self) -> None:
        store = ManualStore()
        recording = Recording(KEY, store, WindowLimits(max_events=10))
        for number in range(50):
            recording.append(blocks(str(number).encode()))
            store.commit()
        reader = joined(recording)
        end(recording)
        assert recording.window_start > 0
        assert [event.data for event in await read(reader)] == [str(number).encode() for number in range(50)]

    async def test_the_window_never_drops_uncommitted_events(self) -> None:
        store = ManualStore()
        recording = Recording(KEY, store, WindowLimits(max_events=10))
        for _ in range(50):
            recording.append(blocks(b"x"))
        assert recording.window_start == 0
        store.commit()
        assert recording.window_start > 0

    async def test_a_degraded_store_blocks_no_reader_and_rejects_cursors(self) -> None:
        store = ManualStore()
        recording = Recording(KEY, store, WindowLimits())
        recording.append(blocks(b"a"))
        store.commit()
        store.durability = "degraded"
        recording.append(blocks(b"b"))
        assert recording.last_visible == 1
        recording.require_durable(0)
        with pytest.raises(StoreUnavailable):
            recording.require_durable(1)
        store.durability = "durable"
        store.commit()
        recording.require_durable(1)

    async def test_memory_can_be_freed_without_losing_anything(self) -> None:
        store = ManualStore()
        recording = Recording(KEY, store, WindowLimits())
        recording.append(blocks(b"a", b"b"))
        store.commit()
        recording.append(blocks(b"c"))
        recording.drop_window()
        assert [event.data for event in recording.window] == [b"c"] and recording.num_bytes == 1
        store.commit()
        reader = joined(recording)
        end(recording)
        assert [event.data for event in await read(reader)] == [b"a", b"b", b"c"]


async def test_connected_readers_get_the_error_and_later_ones_do_not() -> None:
    recording = recording_of()
    waiting = asyncio.ensure_future(anext(joined(recording).batches()))
    await asyncio.sleep(0)
    recording.fail_readers(StoreUnavailable("not now"))
    with pytest.raises(StoreUnavailable):
        await waiting
    recording.append(blocks(b"a"))
    assert await anext(joined(recording).batches()) == [Event(0, b"a")]


async def test_closing_a_recording_ends_its_readers() -> None:
    recording = recording_of()
    recording.append(blocks(b"a"))
    reading = asyncio.create_task(read(joined(recording)))
    await asyncio.sleep(0)
    recording.close()
    assert await reading == [Event(0, b"a")]


async def test_own_events_that_are_stored_nowhere_do_not_become_durable_by_what_another_process_has_stored() -> None:
    store = ManualStore()
    recording = Recording(KEY, store, WindowLimits())
    recording.append(blocks(b"own 0", b"own 1"))
    recording.take([Event(0, b"theirs")])
    recording.rewind()
    assert recording.next_index == 0
    recording.take([Event(0, b"theirs")])
    assert [event.data for event in recording.window] == [b"theirs"] and recording.last_durable == 0
