"""Responses in the background from their begin on. A server of the first version leaves rows that run alone."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("stored_sessions", sa.Column("request", sa.LargeBinary()))
    op.add_column("stored_sessions", sa.Column("summary", sa.LargeBinary()))
    op.add_column("stored_sessions", sa.Column("held_until", sa.Double()))
    runs = sa.text("status = 'running'")
    op.create_index(
        "ix_stored_sessions_held_until", "stored_sessions", ["held_until"], postgresql_where=runs, sqlite_where=runs
    )


def downgrade() -> None:
    op.drop_index("ix_stored_sessions_held_until", "stored_sessions")
    for column in ("held_until", "summary", "request"):
        op.drop_column("stored_sessions", column)
