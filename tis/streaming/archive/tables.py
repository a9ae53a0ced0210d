"""The tables of the archive, as the newest migration leaves them."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

METADATA = MetaData()
_BIG = BigInteger().with_variant(Integer(), "sqlite")

_RUNS = text("status = 'running'")

# One turn each. Times are seconds of the wall clock, which servers share; `expires_at` begins anew with each use.
# Only a response in the background is here while it runs, with what is needed to begin it anew (`request`, `summary`)
# and until when its server has said that it goes on with it (`held_until`).
# `epoch`: how often its holder had changed when it was written; a later holder's answer is not written over.
# `is_deleted`: an empty row stays for a day, so that no server that was away writes the session back.
SESSIONS = Table(
    "stored_sessions",
    METADATA,
    Column("number", _BIG, primary_key=True, autoincrement=True),
    Column("owner", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("record_version", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("is_named", Boolean, nullable=False),
    Column("born", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("last_index", BigInteger, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("document_version", BigInteger, nullable=False),
    Column("ended_at", Double, nullable=False),
    Column("used_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("is_deleted", Boolean, nullable=False),
    Column("request", LargeBinary),
    Column("summary", LargeBinary),
    Column("held_until", Double),
    UniqueConstraint("owner", "id", name="uq_stored_sessions_owner_id"),
    Index("ix_stored_sessions_expires_at", "expires_at"),
    Index("ix_stored_sessions_held_until", "held_until", postgresql_where=_RUNS, sqlite_where=_RUNS),
)


def _session() -> "Column[int]":
    key = ForeignKey("stored_sessions.number", ondelete="CASCADE")
    return Column("session", _BIG, key, primary_key=True, autoincrement=False)


# A row has some hundred events in a row, packed (`packed_events`).
EVENTS = Table(
    "stored_events",
    METADATA,
    _session(),
    Column("first_index", BigInteger, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)
# `document_version`: of the document that brought it.
ATTACHMENTS = Table(
    "stored_attachments",
    METADATA,
    _session(),
    Column("name", Text, primary_key=True),
    Column("num_bytes", BigInteger, nullable=False),
    Column("document_version", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
)
