import asyncio

import pytest

from server.errors import ReplayGap
from server.streaming.recording import Event, Reader, Recording

pytestmark = pytest.mark.anyio


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
    recording = Recording()
    recording.append([b"a", b"b"])
    reading = asyncio.create_task(read(joined(recording)))
    await asyncio.sleep(0)
    recording.append([b"c"])
    end(recording)
    assert await reading == [Event(0, b"a"), Event(1, b"b"), Event(2, b"c")]


async def test_a_cursor_skips_what_was_seen() -> None:
    recording = Recording()
    recording.append([b"a", b"b", b"c"])
    reader = joined(recording, after=1)
    end(recording)
    assert await read(reader) == [Event(2, b"c")]


async def test_readers_have_cursors_of_their_own_and_a_sleeping_one_holds_up_nobody() -> None:
    recording = Recording()
    sleeping = joined(recording).batches()
    recording.append([b"a"])
    assert [event.data for event in await anext(sleeping)] == [b"a"]
    awake = asyncio.create_task(read(joined(recording)))
    recording.append([b"b"] * 100)
    end(recording)
    assert len(await awake) == 101
    assert len(await anext(sleeping)) == 100


async def test_a_later_turn_is_not_for_the_readers_of_an_earlier_one() -> None:
    recording = Recording()
    recording.append([b"first"])
    reader = joined(recording)
    end(recording)
    recording.append([b"second"])
    end(recording)
    assert await read(reader) == [Event(0, b"first")]


async def test_the_number_of_events_is_bounded_and_a_gap_is_said() -> None:
    recording = Recording(events_kept=100)
    for _ in range(1000):
        recording.append([b"x"])
    assert 100 <= recording.next_index - recording.oldest_index <= 126
    with pytest.raises(ReplayGap):
        recording.after(10)
    assert recording.after(recording.oldest_index - 1)[0].index == recording.oldest_index


async def test_the_bytes_are_bounded_whatever_the_number() -> None:
    recording = Recording(bytes_kept=1000)
    for _ in range(100):
        recording.append([b"x" * 300])
    kept = recording.after(recording.oldest_index - 1)
    assert sum(len(event.data) for event in kept) <= 1000 and kept[-1].index == 99


async def test_one_event_over_the_bound_is_still_told() -> None:
    recording = Recording(bytes_kept=10)
    recording.append([b"x" * 300])
    assert recording.after(-1) == [Event(0, b"x" * 300)]


async def test_a_live_reader_that_fell_behind_is_told_instead_of_skipping() -> None:
    recording = Recording(events_kept=10)
    slow = joined(recording).batches()
    recording.append([b"x"])
    await anext(slow)
    recording.append([b"x"] * 50)
    with pytest.raises(ReplayGap):
        await anext(slow)


async def test_an_idle_reader_gets_a_sign_of_life() -> None:
    recording = Recording()
    reader = joined(recording)
    waiting = asyncio.ensure_future(anext(reader.batches()))
    await asyncio.sleep(0)
    reader.wake_if_idle(3600)
    await asyncio.sleep(0)
    assert not waiting.done()
    reader.wake_if_idle(0)
    assert await waiting == []
