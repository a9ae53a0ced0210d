"""The limits on media, and the counter that applies them to all media of one request together."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tis.admission.ticket import Ticket
from tis.media.errors import media_too_large
from tis.media.media_types import MediaKind

MIB = 2**20


@dataclass(frozen=True, slots=True)
class MediaLimits:
    # Where media may come from
    allow_remote: bool = True
    allowed_hosts: Sequence[str] = ()  # exact names and *.example.com; empty = any public host
    local_roots: Sequence[Path] = ()  # empty = no file of this machine
    fetch_seconds: float = 10
    max_redirects: int = 3
    max_fetches: int = 64  # at once, over all requests
    max_fetches_of_request: int = 4  # a request with many slow URLs must not block the fetches of others

    # Before decoding
    max_items: int = 32
    max_item_bytes: int = 32 * MIB
    max_request_bytes: int = 64 * MIB

    # After decoding
    max_decoded_bytes: int = 512 * MIB  # of one request
    max_image_pixels: int = 25_000_000
    max_frame_pixels: int = 8_912_896  # DCI 4K with its padding
    max_video_seconds: float = 600
    max_video_frames: int = 16  # that the model gets
    max_frames_decoded: int = 20_000  # to reach those

    # Cost of decoding
    decode_seconds: float = 30
    decoder_memory_bytes: int = 2048 * MIB  # address space of one sandbox
    max_decoders: int = 2  # sandboxes at once, and image threads

    # Sound
    max_sound_seconds: float = 14_400
    max_heard_seconds: float = 600  # of all sounds in the messages of one request
    sound_rate: int = 16_000  # of sounds in messages
    max_sound_decoders: int = 4  # that decode at the same moment; others wait for the model


class MediaBudget:
    """Counts the bytes of one request's media. The event loop and the decoding threads share it."""

    def __init__(self, limits: MediaLimits, ticket: Ticket | None = None) -> None:
        self._limits = limits
        self._ticket = ticket
        self._lock = threading.Lock()
        self._num_bytes = 0
        self._num_decoded_bytes = 0
        self._num_sound_seconds = 0.0

    def take_bytes(self, kind: MediaKind, num_bytes: int) -> None:
        """On the event loop only. Raises QueueFull if they are more than the ticket has, and there is no room."""
        with self._lock:
            self._num_bytes += num_bytes
            if self._num_bytes > self._limits.max_request_bytes:
                limit = in_mib(self._limits.max_request_bytes)
                raise media_too_large(kind, f"the limit for all media of a request is {limit}")
        if self._ticket and self._num_bytes > self._ticket.held("media_bytes"):
            self._ticket.take_now("media_bytes", max(num_bytes, MIB))

    def take_decoded_bytes(self, kind: MediaKind, num_bytes: int) -> None:
        with self._lock:
            self._num_decoded_bytes += num_bytes
            if self._num_decoded_bytes > self._limits.max_decoded_bytes:
                limit = in_mib(self._limits.max_decoded_bytes)
                raise media_too_large(kind, f"the limit for all decoded media of a request is {limit}")

    def take_sound_seconds(self, seconds: float) -> None:
        """Those of a sound that was decoded within `sound_seconds_left`."""
        self._num_sound_seconds += seconds

    @property
    def sound_seconds_left(self) -> float:
        return max(0.0, self._limits.max_heard_seconds - self._num_sound_seconds)

    @property
    def decoded_bytes_left(self) -> int:
        with self._lock:
            return max(0, self._limits.max_decoded_bytes - self._num_decoded_bytes)


def in_mib(num_bytes: int) -> str:
    return f"{num_bytes / MIB:g} MiB"
