"""What is told by mail and to the programs of shops, and who wants what."""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, Json, UTCDateTime

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_INDEXES = (
    ("webhooks", ["supplier_id"]),
    ("webhooks", ["set_by"]),
    ("webhooks", ["status", "paused_until"]),
    ("notice_deliveries", ["channel", "status", "due_at"]),
    ("notice_deliveries", ["account", "status", "id"]),
    ("notice_deliveries", ["webhook_id", "id"]),
    ("notice_deliveries", ["webhook_id", "status", "id"]),
    ("notice_deliveries", ["webhook_id", "status", "due_at"]),
    ("notice_deliveries", ["give_up_at"]),
)


def upgrade() -> None:
    op.add_column("stock_reservations", sa.Column("reminded_at", UTCDateTime(), nullable=True))
    op.create_table(
        "notice_preferences",
        sa.Column("account", sa.String(32), nullable=False),
        sa.Column("mail", Json, nullable=False),
        sa.Column("digest", sa.String(8), nullable=False),
        sa.Column("digest_hour", sa.Integer(), nullable=False),
        sa.Column("quiet_from", sa.String(5), nullable=True),
        sa.Column("quiet_until", sa.String(5), nullable=True),
        sa.Column("time_zone", sa.String(4), nullable=True),
        sa.Column("language", sa.String(2), nullable=True),
        sa.Column("low_stock_below", sa.Integer(), nullable=True),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        sa.CheckConstraint("digest IN ('now', 'hourly', 'daily')", name=op.f("ck_notice_preferences_digest")),
        sa.CheckConstraint("digest_hour BETWEEN 0 AND 23", name=op.f("ck_notice_preferences_digest_hour")),
        sa.CheckConstraint("language IN ('id', 'en')", name=op.f("ck_notice_preferences_language")),
        sa.CheckConstraint("low_stock_below BETWEEN 1 AND 1000000", name=op.f("ck_notice_preferences_low_stock_below")),
        sa.PrimaryKeyConstraint("account", name=op.f("pk_notice_preferences")),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", BigId, nullable=False),
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("groups", Json, nullable=False),
        sa.Column("seed", sa.String(64), nullable=False),
        sa.Column("former_seed", sa.String(64), nullable=True),
        sa.Column("former_until", UTCDateTime(), nullable=True),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("off_reason", sa.String(16), nullable=True),
        sa.Column("set_by", sa.String(32), nullable=True),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("failing_since", UTCDateTime(), nullable=True),
        sa.Column("num_failures", sa.Integer(), nullable=False),
        sa.Column("paused_until", UTCDateTime(), nullable=True),
        sa.Column("taken_until", UTCDateTime(), nullable=True),
        sa.Column("last_at", UTCDateTime(), nullable=True),
        sa.Column("last_result", sa.String(32), nullable=True),
        sa.CheckConstraint("status IN ('on', 'off')", name=op.f("ck_webhooks_status")),
        sa.ForeignKeyConstraint(
            ["supplier_id"], ["suppliers.id"], name=op.f("fk_webhooks_supplier_id_suppliers"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_table(
        "notice_deliveries",
        sa.Column("id", BigId, nullable=False),
        sa.Column("channel", sa.String(8), nullable=False),
        sa.Column("account", sa.String(32), nullable=False),
        sa.Column("webhook_id", BigId, nullable=True),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("type", sa.String(32), nullable=False),
        sa.Column("data", Json, nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("due_at", UTCDateTime(), nullable=False),
        sa.Column("give_up_at", UTCDateTime(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.String(32), nullable=True),
        sa.Column("ended_at", UTCDateTime(), nullable=True),
        sa.Column("result", sa.String(32), nullable=True),
        sa.CheckConstraint("channel IN ('mail', 'webhook')", name=op.f("ck_notice_deliveries_channel")),
        sa.CheckConstraint("status IN ('waiting', 'sent', 'dead')", name=op.f("ck_notice_deliveries_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notice_deliveries")),
    )
    for table, columns in _INDEXES:
        op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, columns)


def downgrade() -> None:
    for table in ("notice_deliveries", "webhooks", "notice_preferences"):
        op.drop_table(table)
    op.drop_column("stock_reservations", "reminded_at")
