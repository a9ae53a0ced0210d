"""How full a store is, and which owner holds how much of it. Runs on the event loop."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tis.streaming.stores.store import SessionRecord, TurnRecord

_TURN_BYTES = 1000  # rows of a turn and its session, with their indexes


@dataclass(slots=True)
class SessionSize:
    """What a session takes, about: it says who holds most. How full the file is, the file says."""

    owner: str
    num_bytes: int = 0
    request_bytes: int = 0  # of the running turn, which drops them at its end
    attached_bytes: int = 0  # in this process
    oldest_index: int = 0
    next_index: int = 0


class StoreRoom:
    def __init__(self, max_bytes: int | None) -> None:
        self._max_bytes = max_bytes
        self._used_bytes = 0  # of the file, as of its last commit
        self._sizes: dict[int, SessionSize] = {}
        self._by_owner: Counter[str] = Counter()
        self._forgotten: dict[int, int] = {}  # the writer deletes them in small batches

    def load(self, sessions: Mapping[int, SessionRecord], num_bytes: Mapping[int, int]) -> None:
        for number, session in sessions.items():
            oldest = session.turns[0].first_index if session.turns else 0
            size = SessionSize(session.key.owner, oldest_index=oldest, next_index=session.next_index)
            self._sizes[number] = size
            self._add(size, num_bytes[number])

    def is_full(self, num_queued_bytes: int) -> bool:
        if self._max_bytes is None:
            return False
        return self._used_bytes + num_queued_bytes - sum(self._forgotten.values()) > self._max_bytes

    def owners(self) -> list[str]:
        """The one that holds most first."""
        return sorted(self._by_owner, key=lambda owner: -self._by_owner[owner])

    def num_bytes(self, number: int) -> int:
        return self._sizes[number].num_bytes

    def begin_turn(self, number: int, owner: str, turn: TurnRecord, max_attached_bytes: int) -> None:
        size = self._sizes.setdefault(number, SessionSize(owner, oldest_index=turn.first_index))
        size.request_bytes = len(turn.request)
        self._add(size, _TURN_BYTES + size.request_bytes)
        self._attach(size, min(size.attached_bytes + turn.attached_bytes, max_attached_bytes + len(turn.document)))

    def append(self, number: int, num_bytes: int, next_index: int) -> None:
        size = self._sizes[number]
        size.next_index = next_index
        self._add(size, num_bytes)

    def end_turn(self, number: int, turn: TurnRecord) -> None:
        size = self._sizes[number]
        self._add(size, len(turn.summary) - size.request_bytes)
        size.request_bytes = 0

    def save_document(self, number: int, turn: TurnRecord) -> None:
        size = self._sizes[number]
        self._attach(size, max(size.attached_bytes, turn.attached_bytes))

    def forget(self, number: int) -> None:
        size = self._sizes.pop(number)
        self._forgotten[number] = size.num_bytes
        self._add(size, -size.num_bytes)

    def forget_before(self, number: int, index: int) -> None:
        size = self._sizes[number]
        num_events = size.next_index - size.oldest_index
        if num_events > 0:
            self._add(size, -(size.num_bytes * (index - size.oldest_index) // num_events))
        size.oldest_index = index

    def measured(self, used_bytes: int, deleted: Collection[int], *, is_all_deleted: bool) -> None:
        """The writer says how much of the file is in use, and which sessions it has deleted since."""
        self._used_bytes = used_bytes
        if is_all_deleted:
            self._forgotten.clear()
        for number in deleted:
            self._forgotten.pop(number, None)

    def _attach(self, size: SessionSize, attached_bytes: int) -> None:
        self._add(size, attached_bytes - size.attached_bytes)
        size.attached_bytes = attached_bytes

    def _add(self, size: SessionSize, num_bytes: int) -> None:
        size.num_bytes += num_bytes
        self._by_owner[size.owner] += num_bytes
        if self._by_owner[size.owner] <= 0:
            del self._by_owner[size.owner]
