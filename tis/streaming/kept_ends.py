"""Stores a response for good before clients see its end; if the database stays away, its last event says so."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from tis.observability.logs import log_exception
from tis.observability.metrics import STORE_ERRORS
from tis.streaming.archive.archiving_store import ArchivingStore
from tis.streaming.archive.packed_events import in_packs, pack
from tis.streaming.archive.records import SessionRow
from tis.streaming.errors import StoreUnavailable
from tis.streaming.session import Session
from tis.streaming.source import Block
from tis.streaming.stores.store import Event, Status

_RETRY_SECONDS = 0.5
_HURRIED_SECONDS = 1.0  # when the process ends


@dataclass(frozen=True, slots=True)
class RetainedForm:
    """What only the API knows of what it stores."""

    attachment_names: Callable[[bytes], Collection[str]]  # that a document names
    not_stored: Callable[[bytes], bytes]  # the last event of an answer, saying that it is not stored


class KeptEnds:
    def __init__(self, store: ArchivingStore, form: RetainedForm) -> None:
        self._store = store
        self._form = form
        self.is_hurried = False

    async def keep(self, session: Session, blocks: Sequence[Block], status: Status) -> Sequence[Block]:
        """Gets the last blocks of the turn that runs, and returns what clients are to get."""
        seconds = _HURRIED_SECONDS if self.is_hurried else self._store.archive.limits.store_seconds
        ends_at = time.monotonic() + seconds
        row: SessionRow | None = None
        while True:
            try:
                row = row or await self._row(session, blocks, status)
                await self._store.put_end(row, is_volatile=session.is_volatile)
                return blocks
            except StoreUnavailable:
                left = ends_at - time.monotonic()
            except Exception as fault:  # the answer is there, and its readers wait
                log_exception("a response could not be stored", fault, session.id)
                left = 0.0
            if left <= 0:
                STORE_ERRORS.labels("archive", "not_stored").inc()
                return await self._not_stored(blocks)
            await asyncio.sleep(min(_RETRY_SECONDS, left))
            await self._store.archive.wait_until_available(max(0.0, ends_at - time.monotonic()))

    async def _row(self, session: Session, blocks: Sequence[Block], status: Status) -> SessionRow:
        recording, record = session.recording, session.latest.record
        document = await session.document() or b""
        if record.attachment_names is None:  # another process began it
            record.attachment_names = frozenset(self._form.attachment_names(document))
        attachments = await session.attachments(record.attachment_names)
        events = [event async for some in recording.events_from(record.first_index) for event in some]
        events += [Event(index, block.data) for index, block in enumerate(blocks, recording.next_index)]
        packs = await asyncio.to_thread(lambda: [(some[0].index, pack(some)) for some in in_packs(events)])
        turn = replace(record, status=status, last_index=recording.next_index + len(blocks) - 1)
        return SessionRow(replace(session.to_record()), turn, document, attachments, packs)

    async def _not_stored(self, blocks: Sequence[Block]) -> Sequence[Block]:
        if not blocks:
            return blocks
        data = await asyncio.to_thread(self._form.not_stored, blocks[-1].data)
        return [*blocks[:-1], replace(blocks[-1], data=data)]
