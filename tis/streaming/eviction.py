"""Chooses which session the server evicts when there is no room for a new one."""

import heapq
from collections.abc import Iterable

from tis.streaming.session import Session
from tis.streaming.stores.store import SessionKey

LruSessions = dict[SessionKey, Session]  # least recently used first


class EvictionQueue:
    """Sessions that share one limit, by owner, in LRU order. No method walks all sessions: there may be thousands."""

    def __init__(self) -> None:
        self._by_owner: dict[str, tuple[LruSessions, LruSessions]] = {}  # anonymous sessions, named sessions
        self._num = 0

    def __len__(self) -> int:
        return self._num

    def add(self, session: Session) -> None:
        self._by_owner.setdefault(session.owner, ({}, {}))[session.is_named][session.recording.key] = session
        self._num += 1

    def remove(self, session: Session) -> None:
        own = self._by_owner[session.owner]
        del own[session.is_named][session.recording.key]
        self._num -= 1
        if not any(own):
            del self._by_owner[session.owner]

    def use(self, session: Session) -> None:
        sessions = self._by_owner.get(session.owner, ({}, {}))[session.is_named]
        if sessions.get(session.recording.key) is session:
            sessions[session.recording.key] = sessions.pop(session.recording.key)

    def pick_victim(self, new_owner: str) -> Session | None:
        """Takes from the owner with the most sessions: anonymous before named, least recently used first.

        The new session counts for its owner, so an owner with as many sessions as the others evicts its own.
        """
        owners = [
            (-sum(map(len, own)) - (owner == new_owner), owner != new_owner, owner)
            for owner, own in self._by_owner.items()
        ]
        heapq.heapify(owners)
        while owners:
            _, _, owner = heapq.heappop(owners)
            for sessions in self._by_owner[owner]:
                if victim := _first_evictable(sessions.values()):
                    return victim
        return None

    def oldest_of(self, owner: str) -> Session | None:
        """The durable session of this owner that was used least recently, of those that can be evicted."""
        in_lru_order = (sessions.values() for sessions in self._by_owner.get(owner, ()))
        heads = [next((one for one in own if one.is_durable and one.is_evictable), None) for own in in_lru_order]
        return min((head for head in heads if head), key=lambda one: one.last_used_at, default=None)


def _first_evictable(sessions: Iterable[Session]) -> Session | None:
    return next((session for session in sessions if session.is_evictable), None)
