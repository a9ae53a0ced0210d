"""What accounts are told of their reservations, numbered for each account."""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import Json, UTCDateTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "notice_counters",
        sa.Column("account", sa.String(32), nullable=False),
        sa.Column("latest", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("account", name=op.f("pk_notice_counters")),
    )
    op.create_table(
        "notices",
        sa.Column("account", sa.String(32), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("type", sa.String(32), nullable=False),
        sa.Column("data", Json, nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("account", "number", name=op.f("pk_notices")),
    )
    op.create_index(op.f("ix_notices_created_at"), "notices", ["created_at"])


def downgrade() -> None:
    for table in ("notices", "notice_counters"):
        op.drop_table(table)
