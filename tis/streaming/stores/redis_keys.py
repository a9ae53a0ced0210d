"""Where a session lies in Redis. All its keys have one hash tag, so that one script may change them together."""

import hashlib
from dataclasses import dataclass

from tis.streaming.stores.store import SessionKey

PREFIX = "tis"
REPLICAS = f"{PREFIX}:replicas"  # a sorted set: each process, by the time at which its lease ends


@dataclass(frozen=True, slots=True)
class SessionKeys:
    meta: str  # a hash: the session, its turns, and who holds it
    events: str  # a stream: entry `0-<index + 1>` is event `index`
    news: str  # a short stream that wakes those who wait for events, when something else has changed
    request: str  # of the running turn
    documents: str  # a hash, by turn
    attachments: str  # a hash, by name
    attached: str  # a hash: by name, the latest turn with this attachment, and its bytes

    def all(self) -> tuple[str, ...]:
        return self.meta, self.events, self.news, self.request, self.documents, self.attachments, self.attached


def digest_of(key: SessionKey) -> str:
    return hashlib.blake2b(f"{key.owner}\0{key.id}".encode(), digest_size=16).hexdigest()


def keys_of(digest: str) -> SessionKeys:
    parts = ("meta", "events", "news", "request", "documents", "attachments", "attached")
    return SessionKeys(*(f"{PREFIX}:{{{digest}}}:{part}" for part in parts))


def held_by(replica: str) -> str:
    """A set: the digests of the running sessions of a process."""
    return f"{PREFIX}:{{{replica}}}:held"


def orders_of(replica: str) -> str:
    """A stream: what other processes want of it."""
    return f"{PREFIX}:{{{replica}}}:orders"
