"""The contract of what makes the events of one turn."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tis.streaming.stores.store import Status


@dataclass(slots=True)  # not frozen: there is one per token, and a frozen one takes three times as long to make
class Block:
    """One block of a stream as its source makes it, before the recording numbers it."""

    data: bytes
    # What a source in another process needs in order to resume behind this block. Readers never see it.
    resume_state: bytes = b""
    is_last: bool = False  # of its turn: what is stored for good is stored before it is shown


class Source(Protocol):
    def events(self) -> AsyncGenerator[Sequence[Block], None]: ...

    @property
    def is_waiting_to_resume(self) -> bool:
        """The turn was interrupted and has not resumed yet: after an `Unavailable`, `events` may be called again."""
        ...

    @property
    def may_be_repeated(self) -> bool:
        """If the turn fails, running it again does nothing twice (no tool was called)."""
        ...

    def cancel(self) -> None:
        """Ends the events soon; the last one says that the turn was cancelled."""
        ...

    def failure(self, error: Exception) -> Block:
        """Returns the event that tells readers why there are no more."""
        ...

    @property
    def traceparent(self) -> str:
        """Of the span of what makes the events; empty without traces."""
        ...

    @property
    def outcome(self) -> Status:
        """The status of the turn, valid once there are no more events."""
        ...

    @property
    def summary(self) -> bytes:
        """Data of the turn that belongs to none of its events."""
        ...

    @property
    def request(self) -> bytes:
        """What another process needs in order to resume the turn, besides the resume states of its events."""
        ...

    @property
    def attachments(self) -> Mapping[str, bytes]:
        """Media of the request, by content hash. The store keeps them with the turn."""
        ...


# Reads attachments by name; names that are not stored are absent. Raises `StoreUnavailable` if the store cannot tell.
ReadAttachments = Callable[[Collection[str]], Awaitable[Mapping[str, bytes]]]
# Makes a source that resumes a turn, from its request and the resume states of the events it has made.
# Never raises: the source itself reports an error.
ResumeSource = Callable[[bytes, Sequence[bytes], ReadAttachments], Source]
