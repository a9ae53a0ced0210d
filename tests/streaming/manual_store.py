"""A store that commits when the test calls `commit`."""

import asyncio
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


class ManualStore:
    durability: Durability = "durable"
    lag_seconds = 0.0
    is_full = False

    def __init__(self, records: Sequence[SessionRecord] = ()) -> None:
        self.records = list(records)
        self.attached: dict[str, bytes] = {}
        self.documents: dict[SessionKey, bytes] = {}
        self.ends: list[TurnRecord] = []
        self.forgotten: list[SessionKey] = []
        self.notes: list[float | None] = []
        self.events: dict[SessionKey, list[Event]] = {}
        self._held: list[tuple[SessionKey, Sequence[Event], Committed]] = []
        self.skew = 0.0

    def owners(self) -> Sequence[str]:
        return list(dict.fromkeys(key.owner for key in self.events))

    def now(self) -> float:
        return time.monotonic() + self.skew

    async def open(
        self, snapshot: Snapshot, on_degraded: Callable[[], None], on_abandoned: OnAbandoned
    ) -> Sequence[SessionRecord]:
        return self.records

    async def close(self) -> None:
        pass

    def begin_turn(self, session: SessionRecord, turn: TurnRecord, max_attached_bytes: int) -> None:
        self.attached.update(turn.attachments)
        self.documents[session.key] = turn.document

    def append(self, key: SessionKey, events: Sequence[Event], committed: Committed) -> None:
        self._held.append((key, events, committed))

    def commit(self) -> None:
        held, self._held = self._held, []
        for key, events, committed in held:
            self.events.setdefault(key, []).extend(events)
            committed(events[-1].index)

    def end_turn(self, key: SessionKey, turn: TurnRecord) -> None:
        self.ends.append(turn)

    def save_progress(self, key: SessionKey, used_at: float, no_reader_since: float | None) -> None:
        self.notes.append(no_reader_since)

    def forget(self, key: SessionKey) -> None:
        self.forgotten.append(key)

    def forget_before(self, key: SessionKey, first: TurnRecord) -> None:
        self.events[key] = [event for event in self.events[key] if event.index >= first.first_index]

    async def read(self, key: SessionKey, after: int, limit: int = 256) -> Sequence[Event]:
        kept = [event for event in self.events.get(key, []) if event.index > after]
        if kept and kept[0].index != after + 1:
            raise ReplayGap("gone")
        return kept[:limit]

    async def save_document(
        self, key: SessionKey, turn: TurnRecord, max_attached_bytes: int, replaced_version: int = 0
    ) -> bool:
        self.attached.update(turn.attachments)
        self.documents[key] = turn.document
        return True

    async def read_document(self, key: SessionKey, number: int) -> bytes | None:
        return self.documents.get(key)

    async def read_attachments(self, key: SessionKey, names: Collection[str]) -> Mapping[str, bytes]:
        return {name: self.attached[name] for name in names if name in self.attached}

    async def flush(self) -> None:
        self.commit()

    def tick(self) -> None:
        pass


class BrokenStore(ManualStore):
    """A disk that hangs, and an unexpected error."""

    def tick(self) -> None:
        raise ValueError("no store can do this")

    async def flush(self) -> None:
        await asyncio.Event().wait()
