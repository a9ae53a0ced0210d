"""The lines of an upstream's stream: the same events, however they are cut, and no more work than there are bytes."""

from tis.upstream.event_lines import EventLines

SENT = b"event: a\r\ndata: one\r\ndata:two\r\n\r\n: ping\n\ndata: three\n\ndata: four"


def test_events_are_the_same_however_they_are_cut() -> None:
    for size in range(1, len(SENT)):
        lines = EventLines()
        events = [event for at in range(0, len(SENT), size) for event in lines.feed(SENT[at : at + size])]
        assert [*events, *lines.rest()] == [b"one\ntwo", b"three", b"four"]


class CountedBytes(bytearray):
    """How many bytes are copied to make a line longer."""

    num_copied = 0

    def __add__(self, more: bytes) -> "CountedBytes":  # type: ignore[override]
        CountedBytes.num_copied += len(self)
        return CountedBytes(bytes(self) + more)


def test_a_line_in_small_pieces_is_not_copied_for_each_of_them() -> None:
    lines = EventLines()
    lines._unread = CountedBytes()
    for _ in range(1000):
        lines.feed(b"data: a")
    assert CountedBytes.num_copied == 0
    assert len(lines._unread) == 7000
