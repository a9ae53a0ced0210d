"""Which session a request belongs to."""

from dataclasses import dataclass, replace

from tis.streaming.recording import MIN_WINDOW_EVENTS
from tis.streaming.retention import Retention


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """Which session a request belongs to, and how to retain it."""

    owner: str
    session_id: str | None
    fingerprint: str
    # An answer that is neither streamed nor named cannot be resumed: no client has its id.
    resumable: bool = True
    window_events: int = MIN_WINDOW_EVENTS
    retention: Retention | None = None

    def with_window(self, num_events: int) -> "SessionRequest":
        return replace(self, window_events=max(MIN_WINDOW_EVENTS, num_events))

    @property
    def kind(self) -> str:
        return self.retention.kind if self.retention else ""
