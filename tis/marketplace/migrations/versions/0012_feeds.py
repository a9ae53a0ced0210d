"""What changed in the feed of goods."""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, UTCDateTime, now

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "feed_changes",
        sa.Column("product_id", BigId, autoincrement=False, nullable=False),
        sa.Column("number", BigId, nullable=False),
        sa.Column("is_pending", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("product_id", name=op.f("pk_feed_changes")),
    )
    op.create_index("ix_feed_changes_number_product_id", "feed_changes", ["number", "product_id"])
    pending = sa.text("is_pending")
    op.create_index(
        "ix_feed_changes_pending",
        "feed_changes",
        ["is_pending", "product_id"],
        sqlite_where=pending,
        postgresql_where=pending,
    )
    state = op.create_table(
        "feed_state",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("latest", BigId, nullable=False),
        sa.Column("changed_at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_feed_state")),
    )
    op.bulk_insert(state, [{"id": 1, "latest": 0, "changed_at": now()}])


def downgrade() -> None:
    for table in ("feed_state", "feed_changes"):
        op.drop_table(table)
