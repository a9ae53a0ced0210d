"""The contract of a store that several processes use at the same time, beside that of every store.

One process at a time *holds* a session: it makes the events of its turn, and nobody else can write them. The others
follow. When the holder dies, another process takes the session and resumes its turn.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol, runtime_checkable

from tis.streaming.stores.store import Event, SessionKey, SessionRecord, Store


class Watcher(Protocol):
    """What the store tells the sessions of this process, on the event loop."""

    def on_taken(self, session: SessionRecord, *, is_cancelled: bool) -> None:
        """This process holds the session now, whose holder has died: resume its turn."""
        ...

    def on_lost(self, key: SessionKey) -> None:
        """Another process holds the session: end what makes its events here. Nothing of it was stored since."""
        ...

    def on_cancel(self, key: SessionKey) -> None:
        """A client of another process cancels the running turn."""
        ...

    def on_heard(self, key: SessionKey) -> None:
        """Another process has readers of the running turn; it says so again every few seconds."""
        ...


@runtime_checkable
class SharedStore(Store, Protocol):
    @property
    def is_remote(self) -> bool:
        """What cannot be read now can be read later."""
        ...

    def watch(self, watcher: Watcher) -> None:
        """Call it before `open`."""
        ...

    def holds(self, key: SessionKey) -> bool: ...

    def is_behind(self, key: SessionKey) -> bool:
        """Something of the session is not stored yet."""
        ...

    async def find(self, key: SessionKey) -> SessionRecord | None:
        """Reads a session, whoever holds it. Raises `StoreUnavailable` if the store cannot be read now."""
        ...

    def follow(self, key: SessionKey, after: int) -> AsyncGenerator[Sequence[Event], None]:
        """Yields events behind the index as they are stored, without holes.

        An empty batch says that something else may have changed: `find` tells. Raises as `read` does.
        """
        ...

    async def order_cancel(self, key: SessionKey) -> None:
        """Lets the holder cancel the running turn. Raises `StoreUnavailable` if it cannot be told now."""
        ...

    @property
    def hears_others(self) -> bool:
        """False while this process cannot be told anything, as the store is out of its reach."""
        ...

    def tell_heard(self, key: SessionKey) -> None:
        """Tells the holder that the running turn has readers here."""
        ...

    def drop(self, key: SessionKey) -> None:
        """This process needs the session no longer: it stays stored until its time to live is over."""
        ...
