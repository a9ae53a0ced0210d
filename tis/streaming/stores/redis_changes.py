"""What waits to be written of one session: changes in the order of the calls, each written as a whole."""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tis.streaming.stores.redis_records import Fields, session_fields, turn_field, turn_value
from tis.streaming.stores.store import Committed, Event, SessionKey, SessionRecord, TurnRecord

Mode = Literal["begin", "write", "restore", "forget", "replace"]
Argument = str | bytes | int | float
Acks = dict[Committed, int]  # the index to acknowledge
_CHANGE_BYTES = 1000
_EVENT_BYTES = 60
_MAX_EVENTS = 512  # of one change: Redis serves nobody else meanwhile


@dataclass(slots=True)
class SessionChange:
    key: SessionKey
    claim: str
    mode: Mode = "write"
    expected: str = ""  # to begin: the claim of the holder before; to replace a document: its version
    first_index: int = 0  # of the events; without some, the index that Redis must have reached
    events: list[Event] = field(default_factory=list)
    fields: Fields = field(default_factory=dict)
    dropped_fields: Collection[str] = ()
    request: bytes | None = None  # empty: delete it
    documents: dict[int, bytes] = field(default_factory=dict)
    dropped_documents: Collection[int] = ()
    attachments: dict[str, tuple[int, bytes]] = field(default_factory=dict)  # with the number of their turn
    max_attached_bytes: int = -1
    attachment_names: Collection[str] | None = None
    oldest: TurnRecord | None = None  # everything before it is deleted
    ttl_ms: int = -1  # 0: it lives as long as it runs
    is_news: bool = False  # what those who follow the session do not see in its events
    starts: bool | None = None  # whether a turn runs afterwards; None: as before
    acks: Acks = field(default_factory=dict)
    number: int = 0  # in the order of the calls
    is_sent: bool = False  # perhaps Redis has it
    queued_at: float = field(default_factory=time.monotonic)

    @property
    def num_bytes(self) -> int:
        texts = [*self.fields.values(), *self.documents.values(), *(data for _, data in self.attachments.values())]
        return _CHANGE_BYTES + sum(map(len, texts)) + len(self.request or b"") + bytes_of(self.events)

    @property
    def takes_events(self) -> bool:
        is_open = self.mode in ("begin", "write") and self.starts is not False
        return is_open and not self.is_sent and len(self.events) < _MAX_EVENTS

    def take(self, events: Sequence[Event], committed: Committed) -> None:
        if not self.events:
            self.first_index = events[0].index
        self.events += events
        self.acks[committed] = events[-1].index

    def arguments(self) -> list[Argument]:
        """As the script `WRITE` takes them."""
        end = self.first_index + len(self.events)
        out: list[Argument] = [self.mode, self.claim, self.expected, self.first_index, end]
        for event in self.events:
            out += (event.data, event.resume_state)
        out.append(len(self.fields))
        for name, value in self.fields.items():
            out += (name, value)
        out += (len(self.dropped_fields), *self.dropped_fields)
        out += ("",) if self.request is None else ("set", self.request) if self.request else ("drop",)
        out.append(len(self.documents))
        for number, document in self.documents.items():
            out += (number, document)
        out += (len(self.dropped_documents), *self.dropped_documents, len(self.attachments))
        for name, (number, data) in self.attachments.items():
            out += (name, number, data)
        names, oldest = self.attachment_names, self.oldest
        out += (self.max_attached_bytes, -1 if names is None else len(names))
        out += (oldest.number, oldest.first_index) if oldest else (-1, -1)
        out += (*(names or ()), self.ttl_ms, "news" if self.is_news else "")
        return out


def bytes_of(events: Iterable[Event]) -> int:
    return sum(_EVENT_BYTES + len(event.data) + len(event.resume_state) for event in events)


def begin(
    session: SessionRecord, turn: TurnRecord, claim: str, expected: str, max_attached_bytes: int, ttl_seconds: float
) -> SessionChange:
    change = SessionChange(session.key, claim, "begin", expected, turn.first_index)
    change.fields = session_fields(session, ttl_seconds)
    if session.epoch and not expected:  # it had holders in a Redis that has lost it
        change.fields["epoch"] = b"%d" % session.epoch
    change.dropped_fields = ("cancel",)
    _set_turn(change, turn)
    change.request = turn.request
    if turn.document:
        change.documents[turn.number] = turn.document
    change.attachments = {name: (turn.number, data) for name, data in turn.attachments.items()}
    change.max_attached_bytes = max_attached_bytes
    change.ttl_ms = 0 if change.starts else int(change.fields["ttl"])
    return change


def end(key: SessionKey, claim: str, turn: TurnRecord, next_index: int, ttl_ms: int) -> SessionChange:
    change = SessionChange(key, claim, first_index=next_index)
    _set_turn(change, turn)
    change.request, change.attachment_names, change.ttl_ms = b"", turn.attachment_names, ttl_ms
    return change


def document(
    key: SessionKey, mark: str, turn: TurnRecord, max_attached_bytes: int, replaced_version: int
) -> SessionChange:
    """Whoever has the session: the version decides. `mark`: of this change, by which Redis knows it again."""
    change = SessionChange(key, mark, "replace", str(replaced_version))
    change.attachment_names, change.max_attached_bytes = turn.attachment_names, max_attached_bytes
    change.fields = {"doc": b"%d" % (replaced_version + 1), "docby": mark.encode()}
    change.documents[turn.number] = turn.document
    change.attachments = {name: (turn.number, data) for name, data in turn.attachments.items()}
    return change


def forget_before(key: SessionKey, claim: str, numbers: Collection[int], first: TurnRecord) -> SessionChange:
    change = SessionChange(key, claim, dropped_documents=numbers, oldest=first)
    change.dropped_fields = [turn_field(number) for number in numbers]
    return change


def restore(session: SessionRecord, events: Iterable[Event], claim: str, ttl_seconds: float) -> SessionChange:
    """Everything that memory has of it, for a Redis that has lost it, or a part."""
    found = list(events)
    change = SessionChange(session.key, claim, "restore", "", session.next_index - len(found), found)
    change.fields = session_fields(session, ttl_seconds) | {"doc": b"%d" % session.document_version}
    if session.epoch:
        change.fields["epoch"] = b"%d" % session.epoch
    for turn in session.turns:
        _set_turn(change, turn)
        change.attachments |= {name: (turn.number, data) for name, data in turn.attachments.items()}
        if turn.document:
            change.documents[turn.number] = turn.document
    if session.turns:
        change.request = session.turns[-1].request
    change.ttl_ms = 0 if change.starts else int(change.fields["ttl"])
    return change


def _set_turn(change: SessionChange, turn: TurnRecord) -> None:
    change.starts, change.is_news = turn.last_index is None, True
    change.fields[turn_field(turn.number)] = turn_value(turn)
    change.fields["run"] = b"1" if change.starts else b"0"
