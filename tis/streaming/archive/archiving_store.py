"""Running streams in one store, and what lasts (stored responses, conversations) in a database beside it.

Any store of sessions may be the first. A response runs there, and is put into the archive before clients see its end;
from then on the archive has it, for all servers. A conversation has no running part: it is in the archive only. What
the first store had of them before there was an archive stays there, and a conversation moves when it is changed.

A response in the background is in the archive from its begin on: it is begun anew there where its process and the
first store have lost it.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tis.streaming.archive.records import SessionRow
from tis.streaming.errors import StoreUnavailable
from tis.streaming.stores.shared_store import SharedStore, Watcher
from tis.streaming.stores.store import (
    Committed,
    Durability,
    Event,
    OnAbandoned,
    SessionKey,
    SessionRecord,
    Snapshot,
    Store,
    TurnRecord,
)

if TYPE_CHECKING:
    from tis.streaming.archive.sql_archive import SqlArchive

_TOUCH_SECONDS = 3600.0  # between two times that the archive learns that a session is used
_MORE_THAN_ANY_EPOCH = 2**32  # a response that is begun anew counts more than all holders of what was lost


class ArchivingStore:
    def __init__(self, streams: Store, archive: "SqlArchive") -> None:
        self.streams = streams
        self.archive = archive
        self._shared = streams if isinstance(streams, SharedStore) else None
        # Without a shared store: what no other process knows.
        self._local: dict[SessionKey, SessionRecord] = {}
        # Sessions in memory that are read from the archive, and those whose end is about to be stored beside it.
        self._archived: set[SessionKey] = set()
        self._ending: set[SessionKey] = set()
        self._begun_anew: set[SessionKey] = set()
        self._touched_at: dict[SessionKey, float] = {}
        self._work: set[asyncio.Task[None]] = set()

    @property
    def is_remote(self) -> bool:
        return self._shared is not None

    @property
    def durability(self) -> Durability:
        return self.streams.durability

    @property
    def is_full(self) -> bool:
        return self.streams.is_full

    @property
    def lag_seconds(self) -> float:
        return self.streams.lag_seconds

    def owners(self) -> Sequence[str]:
        return self.streams.owners()

    def now(self) -> float:
        return self.streams.now()

    async def open(
        self, snapshot: Snapshot, on_degraded: Callable[[], None], on_abandoned: OnAbandoned
    ) -> Sequence[SessionRecord]:
        def as_streams() -> Iterable[tuple[SessionRecord, Sequence[Event]]]:
            return [(_as_stream(session), events) for session, events in snapshot()]

        found = await self.streams.open(as_streams, on_degraded, on_abandoned)
        self._local |= {session.key: session for session in found if self._shared is None}
        await self.archive.open()
        return found

    async def close(self) -> None:
        await self.streams.close()
        if self._work:
            await asyncio.wait(self._work, timeout=1)
        await self.archive.close()

    def begin_turn(self, session: SessionRecord, turn: TurnRecord, max_attached_bytes: int) -> None:
        stream = _as_stream(session)
        self.streams.begin_turn(stream, turn, max_attached_bytes)
        session.born = stream.born
        if self._shared is None:
            self._local[session.key] = session

    def append(self, key: SessionKey, events: Sequence[Event], committed: Committed) -> None:
        self.streams.append(key, events, committed)

    def end_turn(self, key: SessionKey, turn: TurnRecord) -> None:
        self.streams.end_turn(key, turn)
        self._begun_anew.discard(key)
        if key in self._ending:
            self._ending.discard(key)
            self._note_archived(key, self.now())
            if key in self._local:
                del self._local[key]
                self.streams.forget(key)

    def save_progress(self, key: SessionKey, used_at: float, no_reader_since: float | None) -> None:
        if key not in self._archived:
            self.streams.save_progress(key, used_at, no_reader_since)
        elif used_at - self._touched_at.get(key, used_at) > _TOUCH_SECONDS:
            self._touched_at[key] = used_at
            task = asyncio.create_task(self._touch(key))
            self._work.add(task)
            task.add_done_callback(self._work.discard)

    def forget(self, key: SessionKey) -> None:
        self._leave(key)
        self.streams.forget(key)

    def forget_before(self, key: SessionKey, first: TurnRecord) -> None:
        self.streams.forget_before(key, first)

    async def read(self, key: SessionKey, after: int, limit: int = 256) -> Sequence[Event]:
        if key in self._archived:
            return await self.archive.find_events(key, after, limit)
        return await self.streams.read(key, after, limit)

    async def save_document(
        self, key: SessionKey, turn: TurnRecord, max_attached_bytes: int, replaced_version: int = 0
    ) -> bool:
        if key not in self._archived:
            return await self._move_document(key, turn, replaced_version)
        return await self.archive.replace_document(key, turn, replaced_version, max_attached_bytes)

    async def read_document(self, key: SessionKey, number: int) -> bytes | None:
        if key in self._archived:
            return await self.archive.find_document(key)
        return await self.streams.read_document(key, number)

    async def read_attachments(self, key: SessionKey, names: Collection[str]) -> Mapping[str, bytes]:
        if key in self._archived:
            return await self.archive.find_attachments(key, names)
        found = await self.streams.read_attachments(key, names)
        if key in self._begun_anew:
            missing = [name for name in names if name not in found]
            found = {**await self.archive.find_attachments(key, missing), **found}
        return found

    async def flush(self) -> None:
        await self.streams.flush()

    def tick(self) -> None:
        self.streams.tick()

    # What a shared store does.

    def watch(self, watcher: Watcher) -> None:
        if self._shared:
            self._shared.watch(watcher)

    def holds(self, key: SessionKey) -> bool:
        return self._shared.holds(key) if self._shared else key in self._local

    def is_behind(self, key: SessionKey) -> bool:
        """What no other process knows, no other process has changed."""
        return self._shared.is_behind(key) if self._shared else key in self._local

    async def find(self, key: SessionKey) -> SessionRecord | None:
        found = await self._shared.find(key) if self._shared else None
        if found and found.turns and found.turns[-1].last_index is None:
            self._archived.discard(key)  # another process had not got to the end, and goes on
        return found

    def follow(self, key: SessionKey, after: int) -> AsyncGenerator[Sequence[Event], None]:
        assert self._shared
        return self._shared.follow(key, after)

    async def order_cancel(self, key: SessionKey) -> None:
        if self._shared:
            await self._shared.order_cancel(key)

    @property
    def hears_others(self) -> bool:
        return self._shared is None or self._shared.hears_others

    def tell_heard(self, key: SessionKey) -> None:
        if self._shared:
            self._shared.tell_heard(key)

    def drop(self, key: SessionKey) -> None:
        is_local = key in self._local
        self._leave(key)
        if self._shared:
            self._shared.drop(key)
        elif is_local:
            self.streams.forget(key)

    # What only a store with an archive does.

    def keeps(self, key: SessionKey) -> bool:
        """The archive has the session, as it is in memory."""
        return key in self._archived

    async def find_retained(self, key: SessionKey) -> SessionRecord | None:
        """A response that runs is where streams are; of all others the archive knows whether they are still there."""
        away: StoreUnavailable | None = None
        running: SessionRecord | None = None
        try:
            running = await self.find(key)
        except StoreUnavailable as error:
            away = error
        if running and running.turns and running.turns[-1].last_index is None:
            return running
        found = await self.archive.find(key, self.now())
        is_begun = bool(found and found.record and found.record.turns[-1].last_index is None)
        if found is None or is_begun:
            if away:
                raise away
            if is_begun and not running:
                raise StoreUnavailable(
                    "This response is not here: another server makes it, or is about to. Retry later.", retry_after=2
                )
            return running  # it ended, and the archive could not take it
        if found.record:
            self._note_archived(key, found.record.used_at)
        else:
            self._archived.discard(key)
        return found.record

    async def create(self, row: SessionRow) -> None:
        """Stores a new session that has only a document. Raises `StoreUnavailable`."""
        await self.archive.create(row)
        self._note_archived(row.session.key, self.now())

    async def put_end(self, row: SessionRow, *, is_volatile: bool) -> None:
        """Stores a session whose turn is about to end, unless another process goes on with it.

        `is_volatile`: it is in memory only, so no other process can. Raises `StoreUnavailable` if the database does
        not take it now.
        """
        key = row.session.key
        if self._shared and not is_volatile:
            try:
                found = await self._shared.find(key)
            except StoreUnavailable:
                found = None  # who cannot be reached may be a later holder: the archive compares the epochs
            if not self._shared.holds(key):
                return
            row.session.epoch = max(row.session.epoch, found.epoch if found else 0)
        await self.archive.put(row)
        self._ending.add(key)

    async def begin_anew(self, key: SessionKey, seen: float, max_attached_bytes: int) -> SessionRecord | None:
        """A response that neither a process nor the first store has any more; None if somebody goes on with it.

        The first store decides between processes that share it, the archive among all. `seen`: see `find_unheld`.
        """
        row = await self.archive.find_begun(key, self.now())
        if row is None:
            return None
        row.session.grace_seconds = math.inf
        row.session.epoch += _MORE_THAN_ANY_EPOCH
        self.begin_turn(row.session, row.turn, max_attached_bytes)
        self._begun_anew.add(key)
        is_mine = False
        try:
            await self.streams.flush()
            if not self.holds(key):  # another process was faster, and has it
                self.drop(key)
                return None
            is_mine = await self.archive.claim(key, seen, row.session.epoch)
        finally:
            if not is_mine and self.holds(key):
                self.forget(key)
        return row.session

    async def delete(self, session: SessionRecord) -> None:
        """Deletes it for all servers. Raises `StoreUnavailable`, and it is still there."""
        await self.archive.delete(session)

    async def _move_document(self, key: SessionKey, turn: TurnRecord, replaced_version: int) -> bool:
        """Of a conversation that is older than the archive. False if another process has moved or changed it."""
        session = await self._shared.find(key) if self._shared else self._local.get(key)
        if session is None or session.document_version != replaced_version:
            return False
        older = [name for name in turn.attachment_names or () if name not in turn.attachments]
        attachments = {**await self.streams.read_attachments(key, older), **turn.attachments}
        moved = replace(session, document_version=replaced_version + 1)
        if not await self.archive.create(SessionRow(moved, turn, turn.document, attachments)):
            return False
        self.forget(key)
        self._note_archived(key, self.now())
        return True

    def _note_archived(self, key: SessionKey, used_at: float) -> None:
        self._archived.add(key)
        self._touched_at[key] = used_at

    def _leave(self, key: SessionKey) -> None:
        self._local.pop(key, None)
        self._archived.discard(key)
        self._ending.discard(key)
        self._begun_anew.discard(key)
        self._touched_at.pop(key, None)

    async def _touch(self, key: SessionKey) -> None:
        try:
            await self.archive.mark_used(key)
        except StoreUnavailable:
            self._touched_at[key] = float("-inf")


def _as_stream(session: SessionRecord) -> SessionRecord:
    """It stays where streams are only as long as these do: the archive keeps it."""
    return replace(session, ttl_seconds=None) if session.kind else session
