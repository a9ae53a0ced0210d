"""Events of an answer that is over, packed: a stored response takes a tenth of what its events take."""

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence

from tis.streaming.stores.store import Event

_LENGTH = struct.Struct(">I")
_MAX_EVENTS = 512
_MAX_BYTES = 256 * 1024  # or one event


def pack(events: Iterable[Event]) -> bytes:
    """Without their resume states: nobody resumes what is over."""
    return zlib.compress(b"".join(_LENGTH.pack(len(event.data)) + event.data for event in events))


def unpack(first_index: int, packed: bytes) -> list[Event]:
    data, place = zlib.decompress(packed), 0
    events: list[Event] = []
    while place < len(data):
        start = place + _LENGTH.size
        place = start + _LENGTH.unpack_from(data, place)[0]
        events.append(Event(first_index + len(events), data[start:place]))
    return events


def in_packs(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """As many in a row as one pack takes."""
    start, num_bytes = 0, 0
    for place, event in enumerate(events):
        if place > start and (place - start >= _MAX_EVENTS or num_bytes + len(event.data) > _MAX_BYTES):
            yield events[start:place]
            start, num_bytes = place, 0
        num_bytes += len(event.data)
    if events:
        yield events[start:]
