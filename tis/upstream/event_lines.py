"""Server-sent events out of the bytes of an upstream, with a bound for each."""

_MAX_EVENT_BYTES = 2**20
_TOO_LONG = f"an event of more than {_MAX_EVENT_BYTES // 2**10} KiB"


class EventTooLong(Exception):
    pass


class EventLines:
    """Only the `data` of events is of interest."""

    def __init__(self) -> None:
        self._unread = bytearray()  # of the line that has begun: it grows in place, however small the pieces are
        self._data: list[bytes] = []  # of the event that has begun
        self._num_bytes = 0

    def feed(self, received: bytes) -> list[bytes]:
        """The data of the events that are complete with this. Raises EventTooLong."""
        *lines, begun = received.split(b"\n")
        if lines:
            lines[0], self._unread = bytes(self._unread + lines[0]), bytearray()
        self._unread += begun
        if len(self._unread) > _MAX_EVENT_BYTES:
            raise EventTooLong(_TOO_LONG)
        events = []
        for line in lines:
            if line := line.rstrip(b"\r"):
                self._add(line)
            elif self._data:
                events.append(self._take())
        return events

    def rest(self) -> list[bytes]:
        """What came without the blank line that ends an event."""
        self._add(bytes(self._unread.rstrip(b"\r")))
        return [self._take()] if self._data else []

    def _add(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        self._num_bytes += len(line)
        if self._num_bytes > _MAX_EVENT_BYTES:
            raise EventTooLong(_TOO_LONG)
        self._data.append(line[5:].removeprefix(b" "))

    def _take(self) -> bytes:
        data, self._data, self._num_bytes = b"\n".join(self._data), [], 0
        return data
