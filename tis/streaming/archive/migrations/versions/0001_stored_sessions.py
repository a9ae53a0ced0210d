"""Stored responses and conversations. Later migrations only add: servers of this version may run on."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # which counts only INTEGER keys by itself


def upgrade() -> None:
    op.create_table(
        "stored_sessions",
        sa.Column("number", _BIG, primary_key=True, autoincrement=True),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("record_version", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("is_named", sa.Boolean(), nullable=False),
        sa.Column("born", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("last_index", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.Column("document_version", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=False),
        sa.Column("used_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("is_deleted", sa.Boolean(), nullable=False),
        sa.UniqueConstraint("owner", "id", name="uq_stored_sessions_owner_id"),
    )
    op.create_index("ix_stored_sessions_expires_at", "stored_sessions", ["expires_at"])
    op.create_table(
        "stored_events",
        _session_number(),
        sa.Column("first_index", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "stored_attachments",
        _session_number(),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("num_bytes", sa.BigInteger(), nullable=False),
        sa.Column("document_version", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    )


def downgrade() -> None:
    for table in ("stored_attachments", "stored_events", "stored_sessions"):
        op.drop_table(table)


def _session_number() -> "sa.Column[int]":
    session = sa.ForeignKey("stored_sessions.number", ondelete="CASCADE")
    return sa.Column("session", _BIG, session, primary_key=True, autoincrement=False)
