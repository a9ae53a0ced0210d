"""The tables of the file, as numbered migrations. A released migration never changes."""

import sqlite3
from collections.abc import Sequence

from tis.streaming.stores.store import StoreRefused

SqlValue = str | bytes | memoryview | int | float | None
Statement = tuple[str, Sequence[SqlValue]]  # SQL and its parameters

MIGRATIONS: list[list[str]] = [
    [
        # `ttl_seconds` and `grace_seconds`: null is as `SessionLimits` says. `num_bytes` and `next_index` are as of the
        # last turn that ended, so that a start reads no events. `is_cut`: readers saw events that are not here.
        """CREATE TABLE sessions (
            number INTEGER PRIMARY KEY, owner TEXT NOT NULL, id TEXT NOT NULL,
            is_named INTEGER NOT NULL, used_at REAL NOT NULL, unheard_since REAL, kind TEXT NOT NULL DEFAULT '',
            ttl_seconds REAL, grace_seconds REAL, num_bytes INTEGER NOT NULL DEFAULT 0,
            next_index INTEGER NOT NULL DEFAULT 0, is_cut INTEGER NOT NULL DEFAULT 0, UNIQUE (owner, id))""",
        """CREATE TABLE turns (
            session INTEGER NOT NULL, number INTEGER NOT NULL, fingerprint TEXT NOT NULL, request BLOB NOT NULL,
            first_index INTEGER NOT NULL, last_index INTEGER, status TEXT NOT NULL, summary BLOB NOT NULL,
            ended_at REAL NOT NULL, is_worth_repeating INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (session, number)) WITHOUT ROWID""",
        """CREATE TABLE events (
            session INTEGER NOT NULL, idx INTEGER NOT NULL, data BLOB NOT NULL, mark BLOB,
            PRIMARY KEY (session, idx)) WITHOUT ROWID""",
        # Deleted sessions whose events the writer deletes in small batches: below the index, null: all.
        "CREATE TABLE forgotten (session INTEGER PRIMARY KEY, below INTEGER)",
        """CREATE TABLE clock (
            one INTEGER PRIMARY KEY CHECK (one = 1), boot_id TEXT NOT NULL, since_boot REAL NOT NULL,
            wall REAL NOT NULL, house REAL NOT NULL)""",
        # `turn` is the latest turn with this attachment.
        """CREATE TABLE attachments (
            session INTEGER NOT NULL, name TEXT NOT NULL, turn INTEGER NOT NULL, num_bytes INTEGER NOT NULL,
            PRIMARY KEY (session, name)) WITHOUT ROWID""",
        # In a table of its own: a new `turn` must not rewrite the bytes. In parts: the writer deletes in small batches.
        """CREATE TABLE attachment_parts (
            session INTEGER NOT NULL, name TEXT NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL,
            UNIQUE (session, name, part))""",
        # In a table of its own: the server reads all turns at the start, and no document.
        """CREATE TABLE documents (
            session INTEGER NOT NULL, turn INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (session, turn))""",
    ],
]


def migrate(connection: sqlite3.Connection) -> None:
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise StoreRefused(
            f"The file of sessions was written by a newer server (version {version}, this one knows {len(MIGRATIONS)})."
            " Start that server, or name another file."
        )
    if version < len(MIGRATIONS):
        connection.execute("BEGIN IMMEDIATE")
        for statement in sum(MIGRATIONS[version:], []):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
