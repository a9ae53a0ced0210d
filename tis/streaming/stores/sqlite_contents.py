"""What the file has when it is opened. Its values are checked: damage that leaves a row readable must be seen, too."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from tis.streaming.stores.clock import ClockReading
from tis.streaming.stores.store import SessionKey, SessionRecord, Status, TurnRecord

# In the order of the columns of each table.
_TYPES_OF_A_TURN = (int, int, str, bytes, int, int | None, str, bytes, float, int)
_TYPES_OF_A_SESSION = (int, str, str, int, float, float | None, str, float | None, float | None, int, int, int)
_TYPES_OF_A_CLOCK = (str, float, float, float)
_END_OF_NUMBERS = 2**53  # nothing is counted so far, and SQLite ends at 2**63


class FileCorrupt(Exception):
    pass


@dataclass(slots=True)
class StoreContents:
    """No session number is reused while events of it remain."""

    sessions: dict[int, SessionRecord] = field(default_factory=dict)
    num_bytes: dict[int, int] = field(default_factory=dict)  # of each session, about
    next_number: int = 1
    clock: ClockReading | None = None


def load_contents(connection: sqlite3.Connection) -> StoreContents:
    """Reads sessions and turns, and counts the events of running turns: its time does not grow with the file."""
    numbers = connection.execute(
        "SELECT max(ifnull((SELECT max(number) FROM sessions), 0), ifnull((SELECT max(session) FROM forgotten), 0))"
    )
    [highest] = _checked(numbers.fetchone(), (int,), "sessions or forgotten")
    contents = StoreContents(next_number=highest + 1)
    _load_sessions(connection, contents)
    clock = connection.execute("SELECT boot_id, since_boot, wall, house FROM clock").fetchone()
    contents.clock = clock and ClockReading(*_checked(clock, _TYPES_OF_A_CLOCK, "clock"))
    return contents


def _load_sessions(connection: sqlite3.Connection, contents: StoreContents) -> None:
    turns: dict[int, list[TurnRecord]] = {}
    for row in connection.execute("SELECT * FROM turns ORDER BY session, number"):
        number, *turn = _checked(row, _TYPES_OF_A_TURN, "turns")
        turns.setdefault(number, []).append(TurnRecord(*turn))
        if turns[number][-1].status not in get_args(Status):
            raise FileCorrupt("a turn has a status that nobody writes")
    for row in connection.execute("SELECT * FROM sessions ORDER BY number").fetchall():
        number, owner, name, is_named, used_at, no_reader_since, *rest = _checked(row, _TYPES_OF_A_SESSION, "sessions")
        kind, ttl_seconds, grace_seconds, num_bytes, following, is_cut = rest
        own = turns.get(number, [])
        for one in own:
            last_index = one.last_index
            if last_index is None:
                last_index, added = _events_since(connection, number, one.first_index)
                num_bytes += added
            following = max(following, last_index + 1)
        session = SessionRecord(SessionKey(owner, name), bool(is_named), used_at, no_reader_since, own, following)
        session.kind, session.ttl_seconds, session.grace_seconds = kind, ttl_seconds, grace_seconds
        session.is_cut = bool(is_cut)
        contents.sessions[number], contents.num_bytes[number] = session, num_bytes


def _checked(row: Sequence[Any], types: Sequence[Any], table: str) -> Sequence[Any]:
    for value, kind in zip(row, types, strict=True):
        if not isinstance(value, kind) or (isinstance(value, int) and not -1 <= value < _END_OF_NUMBERS):
            raise FileCorrupt(f"a row of {table} has a value that nobody writes")
    return row


def _events_since(connection: sqlite3.Connection, session: int, first_index: int) -> tuple[int, int]:
    """The last index of a running turn, and the bytes of its events."""
    size = "sum(length(data) + ifnull(length(mark), 0))"
    last_index, num_bytes = connection.execute(
        f"SELECT max(idx), {size} FROM events WHERE session = ? AND idx >= ?", (session, first_index)
    ).fetchone()
    return (first_index - 1, 0) if last_index is None else (last_index, num_bytes)
