"""Stores nothing: recordings hold the events anyway, and sessions end with the process."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence

from tis.streaming.errors import ReplayGap
from tis.streaming.stores.store import (
    Committed,
    Durability,
    Event,
    OnAbandoned,
    SessionKey,
    SessionRecord,
    Snapshot,
    TurnRecord,
)


class MemoryStore:
    durability: Durability = "memory"
    lag_seconds = 0.0
    is_full = False  # `SessionLimits` bounds it

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock

    def owners(self) -> Sequence[str]:
        return []

    def now(self) -> float:
        return self._clock()

    async def open(
        self, snapshot: Snapshot, on_degraded: Callable[[], None], on_abandoned: OnAbandoned
    ) -> Sequence[SessionRecord]:
        return []

    async def close(self) -> None:
        pass

    def begin_turn(self, session: SessionRecord, turn: TurnRecord, max_attached_bytes: int) -> None:
        pass

    def append(self, key: SessionKey, events: Sequence[Event], committed: Committed) -> None:
        if events:
            committed(events[-1].index)

    def end_turn(self, key: SessionKey, turn: TurnRecord) -> None:
        pass

    def save_progress(self, key: SessionKey, used_at: float, no_reader_since: float | None) -> None:
        pass

    def forget(self, key: SessionKey) -> None:
        pass

    def forget_before(self, key: SessionKey, first: TurnRecord) -> None:
        pass

    async def read(self, key: SessionKey, after: int, limit: int = 256) -> Sequence[Event]:
        raise ReplayGap(f"Event {after + 1} is no longer kept.", param="last_event_id")

    async def save_document(
        self, key: SessionKey, turn: TurnRecord, max_attached_bytes: int, replaced_version: int = 0
    ) -> bool:
        return True

    async def read_document(self, key: SessionKey, number: int) -> bytes | None:
        return None

    async def read_attachments(self, key: SessionKey, names: Collection[str]) -> Mapping[str, bytes]:
        return {}

    async def flush(self) -> None:
        pass

    def tick(self) -> None:
        pass
