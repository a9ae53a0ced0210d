"""Sessions as rows: operations that write them, and functions that read documents and events back."""

import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tis.streaming.stores import sqlite_attachments
from tis.streaming.stores.clock import ClockReading
from tis.streaming.stores.sqlite_schema import SqlValue, Statement
from tis.streaming.stores.store import Committed, Event, SessionRecord, TurnRecord

# Every call into SQLite releases the GIL and must win it back from a busy event loop: use few, large calls.
_ROWS_PER_CALL = 64
_EVENTS_DELETED_AT_ONCE = 512
_OPERATION_BYTES = 400
_EVENT_BYTES = 40
_COLUMNS_OF_A_TURN = "fingerprint request first_index last_index status summary ended_at is_worth_repeating".split()


@dataclass(slots=True)  # not frozen: there is one per token
class Operation:
    """Writes that the file takes together or not at all."""

    statements: Sequence[Statement] = ()
    session: int = 0
    events: Sequence[Event] = ()
    committed: Committed | None = None
    attached: Sequence[Statement] = ()  # attachments, which may be left out when there is no space
    attached_bytes: int = 0
    num_bytes: int = 0  # what the queue holds for it; 0: it is computed
    begins: bool = False  # inserts a session that the file does not have yet
    deletes: bool = False  # deletes the whole session
    restores: bool = False  # writes a session from memory over the one in the file
    leaves_rows: bool = False  # leaves rows that the writer deletes in small batches
    drops_request: bool = False  # the file has the request of this turn no more; it may have named a secret URL
    queued_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if not self.num_bytes:
            self.num_bytes = _OPERATION_BYTES + self.attached_bytes + bytes_of(self.events)
            self.num_bytes += sum(_size(value) for _, values in self.statements for value in values)

    def drop_attachments(self) -> None:
        self.num_bytes -= self.attached_bytes
        self.attached, self.attached_bytes = (), 0


def bytes_of(events: Iterable[Event]) -> int:
    """What events take in memory, and about what they take in the file."""
    return sum(_EVENT_BYTES + len(event.data) + len(event.resume_state) for event in events)


def _size(value: SqlValue) -> int:
    return len(value) if isinstance(value, bytes | str | memoryview) else 8


def insert_session(number: int, session: SessionRecord) -> Statement:
    values = (number, *session.key, session.is_named, session.used_at, session.no_reader_since)
    retention = (session.kind, session.ttl_seconds, session.grace_seconds)
    columns = "number, owner, id, is_named, used_at, unheard_since, kind, ttl_seconds, grace_seconds"
    return f"INSERT INTO sessions ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values + retention


def insert_turn(number: int, turn: TurnRecord) -> Statement:
    identity = (number, turn.number, turn.fingerprint, turn.request, turn.first_index)
    end = (turn.last_index, turn.status, turn.summary, turn.ended_at, turn.is_worth_repeating)
    return "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", identity + end


def update_turn(number: int, turn: TurnRecord) -> Statement:
    values = (turn.request, turn.last_index, turn.status, turn.summary, turn.ended_at, turn.is_worth_repeating)
    change = (
        "UPDATE turns SET request = ?, last_index = ?, status = ?, summary = ?, ended_at = ?, is_worth_repeating = ?"
    )
    return f"{change} WHERE session = ? AND number = ?", (*values, number, turn.number)


def replace_document(number: int, turn: TurnRecord) -> list[Statement]:
    if not turn.document:
        return []
    return [("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", (number, turn.number, turn.document))]


def update_progress(number: int, used_at: float, no_reader_since: float | None) -> Statement:
    return "UPDATE sessions SET used_at = ?, unheard_since = ? WHERE number = ?", (used_at, no_reader_since, number)


def update_size(number: int, num_bytes: int) -> Statement:
    return "UPDATE sessions SET num_bytes = ? WHERE number = ?", (num_bytes, number)


def update_next_index(number: int, next_index: int) -> Statement:
    """For events that are added after the end of a turn: otherwise the turn knows."""
    return "UPDATE sessions SET next_index = ? WHERE number = ?", (next_index, number)


def set_clock(reading: ClockReading) -> Statement:
    change = (
        "boot_id = excluded.boot_id, since_boot = excluded.since_boot, wall = excluded.wall, house = excluded.house"
    )
    return f"INSERT INTO clock VALUES (1, ?, ?, ?, ?) ON CONFLICT (one) DO UPDATE SET {change}", tuple(reading)


def delete_session(number: int) -> Operation:
    tables = ["INSERT OR REPLACE INTO forgotten (session) VALUES (?)", "DELETE FROM turns WHERE session = ?"]
    tables += ["DELETE FROM attachments WHERE session = ?", "DELETE FROM documents WHERE session = ?"]
    tables += ["DELETE FROM sessions WHERE number = ?"]
    return Operation([(statement, (number,)) for statement in tables], number, deletes=True, leaves_rows=True)


def delete_before(number: int, first: TurnRecord) -> Operation:
    statements: list[Statement] = [
        ("INSERT OR REPLACE INTO forgotten VALUES (?, ?)", (number, first.first_index)),
        ("DELETE FROM turns WHERE session = ? AND number < ?", (number, first.number)),
        ("DELETE FROM documents WHERE session = ? AND turn < ?", (number, first.number)),
    ]
    return Operation([*statements, *sqlite_attachments.delete_before(number, first)], number, leaves_rows=True)


def restore(number: int, session: SessionRecord, events: Sequence[Event], num_bytes: int) -> Operation:
    """Writes a session from memory over the one in the file. Older events, which only the file has, stay."""
    insert, values = insert_session(number, session)
    change = "used_at = excluded.used_at, unheard_since = excluded.unheard_since"
    statements: list[Statement] = [(f"{insert} ON CONFLICT (number) DO UPDATE SET {change}", values)]
    change = "num_bytes = ?, next_index = ?, is_cut = max(is_cut, ?)"
    sizes = (num_bytes, session.next_index, session.is_cut, number)
    statements.append((f"UPDATE sessions SET {change} WHERE number = ?", sizes))
    attached: list[Statement] = []
    for turn in session.turns:
        insert, values = insert_turn(number, turn)
        change = ", ".join(f"{column} = excluded.{column}" for column in _COLUMNS_OF_A_TURN)
        statements.append((f"{insert} ON CONFLICT (session, number) DO UPDATE SET {change}", values))
        statements += replace_document(number, turn)
        attached += sqlite_attachments.insert(number, turn)
    if session.turns and session.turns[0].number:
        statements += delete_before(number, session.turns[0]).statements
    if session.turns and session.turns[-1].last_index is not None:
        statements += sqlite_attachments.delete_unnamed(number, session.turns[-1])
    return Operation(
        statements,
        number,
        tuple(events),
        attached=attached,
        attached_bytes=sum(turn.attached_bytes for turn in session.turns),
        restores=True,
        leaves_rows=True,
    )


def abandon(number: int) -> Operation:
    """Ends a session that the file rejects. The events that it has stay; the session is marked as cut behind them.

    No other process may resume a turn whose end the file does not have.
    """
    last = "max(first_index - 1, ifnull((SELECT max(idx) FROM events WHERE session = turns.session), -1))"
    change = f"status = 'failed', request = x'', last_index = {last}"
    is_orphan = "NOT EXISTS (SELECT 1 FROM sessions WHERE number = ?)"
    statements: list[Statement] = [
        (f"UPDATE turns SET {change} WHERE session = ? AND last_index IS NULL", (number,)),
        ("UPDATE sessions SET is_cut = 1 WHERE number = ?", (number,)),
    ]
    statements += [
        (f"DELETE FROM {table} WHERE session = ? AND {is_orphan}", (number, number))
        for table in ("turns", "attachments", "documents")
    ]
    statements.append((f"INSERT OR REPLACE INTO forgotten (session) SELECT ? WHERE {is_orphan}", (number, number)))
    return Operation(statements, number, leaves_rows=True)


def commit(connection: sqlite3.Connection, operations: Iterable[Operation]) -> None:
    """Runs the operations in one transaction. Events go last; session numbers keep them apart from deleted rows."""
    connection.execute("BEGIN IMMEDIATE")
    new: list[SqlValue] = []
    restored: list[SqlValue] = []
    for operation in operations:
        for statement, parameters in (*operation.statements, *operation.attached):
            connection.execute(statement, parameters)
        values = restored if operation.restores else new
        for event in operation.events:
            values += (operation.session, event.index, event.data, event.resume_state or None)
    # In this order: a restored event may be new in the same transaction, never the other way round.
    _insert_events(connection, "INSERT", new)
    _insert_events(connection, "INSERT OR IGNORE", restored)
    connection.execute("COMMIT")


def _insert_events(connection: sqlite3.Connection, insert: str, values: Sequence[SqlValue]) -> None:
    for start in range(0, len(values), 4 * _ROWS_PER_CALL):
        some = values[start : start + 4 * _ROWS_PER_CALL]
        connection.execute(f"{insert} INTO events VALUES (?, ?, ?, ?)" + ", (?, ?, ?, ?)" * (len(some) // 4 - 1), some)


def try_to_write(connection: sqlite3.Connection) -> None:
    """Raises if the file is locked or read-only. `BEGIN IMMEDIATE` does not notice either."""
    connection.execute("DELETE FROM forgotten WHERE session < 0")


def delete_some(connection: sqlite3.Connection, deleted: list[int]) -> bool:
    """Deletes a small batch of rows; False if none were left. Small, because new events wait meanwhile.

    Adds to `deleted` a session of which nothing is left.
    """
    row = connection.execute("SELECT session, below FROM forgotten LIMIT 1").fetchone()
    if row is None:
        return False
    session, below = row
    connection.execute("BEGIN IMMEDIATE")
    is_clean = not _forget_some_events(connection, session, below)
    if is_clean and not (below is None and sqlite_attachments.delete_some(connection, session)):
        connection.execute("DELETE FROM forgotten WHERE session = ?", (session,))
        if below is None:
            deleted.append(session)
    connection.execute("COMMIT")
    return True


def used_bytes(connection: sqlite3.Connection) -> int:
    """Without the pages that deleted rows have left: new rows take these before the file grows."""
    names = ("page_size", "page_count", "freelist_count")
    [page_bytes], [num_pages], [num_free] = (connection.execute(f"PRAGMA {name}").fetchone() for name in names)
    return int(page_bytes * (num_pages - num_free))


def clear_log(connection: sqlite3.Connection) -> bool:
    """Truncates the write-ahead log, which has copies of deleted rows. False while a reader uses it."""
    [timeout] = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        [is_busy, *_] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {timeout}")
    return not is_busy


def _forget_some_events(connection: sqlite3.Connection, session: int, below: int | None) -> bool:
    """Returns False if there were none."""
    [first] = connection.execute("SELECT min(idx) FROM events WHERE session = ?", (session,)).fetchone()
    if first is None or (below is not None and first >= below):
        return False
    end = first + _EVENTS_DELETED_AT_ONCE
    some = (session, end if below is None else min(below, end))
    connection.execute("DELETE FROM events WHERE session = ? AND idx < ?", some)
    return True


def find_document(connection: sqlite3.Connection, session: int, turn: int) -> bytes | None:
    values = (session, turn)
    row = connection.execute("SELECT data FROM documents WHERE session = ? AND turn = ?", values).fetchone()
    return row and bytes(row[0])


def find_events(connection: sqlite3.Connection, session: int, after: int, limit: int) -> list[Event]:
    rows = connection.execute(
        "SELECT idx, data, mark FROM events WHERE session = ? AND idx > ? ORDER BY idx LIMIT ?", (session, after, limit)
    )
    return [Event(index, data, mark or b"") for index, data, mark in rows.fetchall()]
