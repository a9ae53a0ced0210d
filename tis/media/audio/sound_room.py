"""The room that a ticket has for the samples of a request's sounds."""

from collections.abc import Sequence

from tis.admission.ticket import Ticket
from tis.media.audio.protocol import BYTES_PER_SAMPLE

# Of a file. Codecs of speech have more, and in a wav, which begins with RIFF, even those of telephones; silence in a
# flac has less.
_MIN_BYTES_PER_SECOND, _MIN_RIFF_BYTES_PER_SECOND = 500, 4000


class SoundRoom:
    """At first what files of their size may have, then what each says of itself, in the end what it has.

    The ticket waits for the first alone: a file that has more takes it at once, or is refused where there is no room.
    """

    def __init__(self, files: Sequence[bytes], sample_rate: int, most: int, ticket: Ticket) -> None:
        self._second = sample_rate * BYTES_PER_SAMPLE
        self._most = most  # bytes, of all
        self._ticket = ticket
        self._sizes = [len(file) * self._second // _min_bytes_per_second(file) for file in files]
        self._num_other_bytes = 0

    @property
    def num_bytes(self) -> int:
        return min(self._most, sum(self._sizes))

    async def take(self, num_other_bytes: int, most: int) -> None:
        """Together with the room of pictures: all that a request needs of a resource at once."""
        self._num_other_bytes = num_other_bytes
        await self._ticket.take("decoded_bytes", min(num_other_bytes + self.num_bytes, most))

    def is_long(self, number: int, seconds: float) -> None:
        """Of one sound: as its file says, and then as it is."""
        self._sizes[number] = round(seconds * self._second)
        wanted = self._num_other_bytes + self.num_bytes
        if (more := wanted - self._ticket.held("decoded_bytes")) > 0:
            self._ticket.take_now("decoded_bytes", more)
        self._ticket.keep("decoded_bytes", wanted)


def _min_bytes_per_second(file: bytes) -> int:
    return _MIN_RIFF_BYTES_PER_SECOND if file.startswith(b"RIFF") else _MIN_BYTES_PER_SECOND
