"""The contract of every store of sessions, and the records that it stores.

All methods run on the event loop; those that are not awaited return at once. The store keeps things in the order of
the calls. A store never rejects an append: if it cannot write, its `durability` is "degraded", answers continue in
memory, and the store catches up as soon as it can.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

Status = Literal["running", "finished", "cancelled", "failed"]
Durability = Literal["memory", "durable", "degraded", "full"]
Committed = Callable[[int], None]  # called on the event loop: the store has every event up to this index


class SessionKey(NamedTuple):
    owner: str
    id: str


@dataclass(slots=True)
class Event:
    """A block with its number in the session."""

    index: int
    data: bytes
    resume_state: bytes = b""  # see `Block.resume_state`; opaque here


@dataclass(slots=True)
class TurnRecord:
    number: int  # 0, 1, ... within its session
    fingerprint: str
    request: bytes  # what a source needs to resume the turn in another process; opaque here
    first_index: int
    last_index: int | None = None
    status: Status = "running"
    summary: bytes = b""
    ended_at: float = 0.0  # by `Store.now`, like all times here
    is_worth_repeating: bool = False  # it failed, and the same request starts a new turn
    # Only while the turn runs, and only what is in memory: `Store.open` does not load attachments.
    attachments: Mapping[str, bytes] = field(default_factory=dict)
    # Data of the turn besides its events; opaque here. In memory only until a durable store has it.
    document: bytes = b""
    # The attachments that the document names. When the turn ends, the store deletes the others; None: it keeps all.
    attachment_names: frozenset[str] | None = None

    @property
    def attached_bytes(self) -> int:
        return sum(map(len, self.attachments.values())) + len(self.document)


@dataclass(slots=True)
class SessionRecord:
    key: SessionKey
    is_named: bool  # by the client
    used_at: float
    no_reader_since: float | None = None  # None: a reader is connected, or was until the process died
    turns: list[TurnRecord] = field(default_factory=list)
    next_index: int = 0
    is_resumable: bool = True  # a session that is not stays in memory
    kind: str = ""  # see `Retention.kind`
    ttl_seconds: float | None = None  # None: as `SessionLimits` says
    grace_seconds: float | None = None  # None: as `SessionLimits` says; inf: it needs no listener
    is_cut: bool = False  # an earlier process showed events behind `next_index` that were never stored
    # How often a shared store has replaced the document of the latest turn.
    document_version: int = field(default=0, compare=False)
    born: str = field(default="", compare=False)  # in a shared store: tells it from an earlier one of the same name
    epoch: int = field(default=0, compare=False)  # in a shared store: how often its holder has changed

    @property
    def last_used_at(self) -> float:
        return max(self.used_at, self.turns[-1].ended_at if self.turns else 0.0)


class StoreRefused(Exception):
    """The store cannot be used at all: the server must not start. The message tells the operator why."""


# All sessions in memory, for a store that has missed writes or lost its file.
Snapshot = Callable[[], Iterable[tuple[SessionRecord, Sequence[Event]]]]
# Called on the event loop for a session that the store rejects although it takes others: it stays in memory only.
OnAbandoned = Callable[[SessionKey], None]


class Store(Protocol):
    @property
    def durability(self) -> Durability:
        """`memory` promises nothing beyond this process; `degraded` should be durable and is not right now."""
        ...

    @property
    def is_full(self) -> bool:
        """It holds as many bytes as it may: forget finished sessions, and begin no new one in it."""
        ...

    @property
    def lag_seconds(self) -> float:
        """How long the oldest thing that is not stored yet has waited."""
        ...

    def owners(self) -> Sequence[str]:
        """The owners of its sessions, the one with the most bytes first."""
        ...

    def now(self) -> float:
        """Seconds on a clock that never jumps and, in a durable store, continues across restarts."""
        ...

    async def open(
        self, snapshot: Snapshot, on_degraded: Callable[[], None], on_abandoned: OnAbandoned
    ) -> Sequence[SessionRecord]:
        """Returns the stored sessions. May raise `StoreRefused`. Calls `on_degraded` on the loop, each time."""
        ...

    async def close(self) -> None:
        """Stores what is queued, within a few seconds."""
        ...

    def begin_turn(self, session: SessionRecord, turn: TurnRecord, max_attached_bytes: int) -> None:
        """Stores a new turn, and its session if that is new.

        Keeps at most `max_attached_bytes` of attachments for the session, and deletes those of the oldest turns first.
        """
        ...

    def append(self, key: SessionKey, events: Sequence[Event], committed: Committed) -> None:
        """Stores all of these events or none. Calls `committed` once they survive a crash, never before."""
        ...

    def end_turn(self, key: SessionKey, turn: TurnRecord) -> None:
        """Stores how the turn ended, and deletes the attachments that its document does not name."""
        ...

    def save_progress(self, key: SessionKey, used_at: float, no_reader_since: float | None) -> None: ...

    def forget(self, key: SessionKey) -> None: ...

    def forget_before(self, key: SessionKey, first: TurnRecord) -> None:
        """Deletes everything before this turn, in a session that continues."""
        ...

    async def read(self, key: SessionKey, after: int, limit: int = 256) -> Sequence[Event]:
        """Returns up to `limit` events behind the index `after`, without holes, oldest first.

        Raises `ReplayGap` if event `after + 1` is gone although later ones exist (or did), and `StoreUnavailable`
        if the store cannot be read now.
        """
        ...

    async def save_document(
        self, key: SessionKey, turn: TurnRecord, max_attached_bytes: int, replaced_version: int = 0
    ) -> bool:
        """Replaces the turn's document and its attachments; deletes attachments that the document does not name.

        Only a shared store looks at `replaced_version`: it returns False, and has changed nothing, if it has another
        version or none. It returns when it has the new one, or raises `StoreUnavailable`. Others return at once.
        """
        ...

    async def read_document(self, key: SessionKey, number: int) -> bytes | None:
        """Returns the document of a turn; None if there is none. Raises `StoreUnavailable` if it cannot be read now."""
        ...

    async def read_attachments(self, key: SessionKey, names: Collection[str]) -> Mapping[str, bytes]:
        """Returns those that exist. Only durable stores have any: they are for another process.

        Raises `StoreUnavailable` if they cannot be read now.
        """
        ...

    async def flush(self) -> None:
        """Returns when everything so far is stored, or the store is degraded."""
        ...

    def tick(self) -> None:
        """The sweeper calls it every second."""
        ...
