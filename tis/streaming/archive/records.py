"""Sessions as the archive takes them and gives them back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tis.streaming.stores.store import SessionRecord, TurnRecord

RECORD_VERSION = 2  # of a turn that runs
_ENDED_VERSION = 1  # of one that is over, which servers of that version read


@dataclass(slots=True)
class ArchivedSession:
    """`record` is None for one that was deleted, or whose time is over."""

    record: SessionRecord | None


@dataclass(slots=True)
class SessionRow:
    """A session with its one turn as it is written."""

    session: SessionRecord
    turn: TurnRecord
    document: bytes = b""
    attachments: Mapping[str, bytes] = field(default_factory=dict)
    packs: Sequence[tuple[int, bytes]] = ()  # with the index of the first event
    held_until: float | None = None  # of a turn that runs

    def values(self, now: float, ttl_seconds: float) -> dict[str, Any]:
        session, turn = self.session, self.turn
        runs = turn.last_index is None
        return {
            "owner": session.key.owner,
            "id": session.key.id,
            "record_version": RECORD_VERSION if runs else _ENDED_VERSION,
            "kind": session.kind,
            "is_named": session.is_named,
            "born": session.born,
            "epoch": session.epoch,
            "fingerprint": turn.fingerprint,
            "status": turn.status,
            "last_index": -1 if turn.last_index is None else turn.last_index,
            "document": self.document,
            "document_version": session.document_version,
            "ended_at": now,
            "used_at": now,
            "expires_at": now + ttl_seconds,
            "is_deleted": False,
            "request": turn.request if runs else None,
            "summary": turn.summary if runs else None,
            "held_until": self.held_until,
        }
