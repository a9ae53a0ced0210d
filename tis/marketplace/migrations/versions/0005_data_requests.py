"""Requests of people about their data, and indexes for admins: reviews by status, the audit log by time."""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, UTCDateTime

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "data_requests",
        sa.Column("id", BigId, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(500), nullable=False),
        sa.Column("received_at", UTCDateTime(), nullable=False),
        sa.Column("due_at", UTCDateTime(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("created_by", sa.String(32), nullable=True),
        sa.Column("ended_at", UTCDateTime(), nullable=True),
        sa.Column("ended_by", sa.String(32), nullable=True),
        sa.Column("ended_reason", sa.String(500), nullable=True),
        sa.CheckConstraint("kind IN ('export', 'erase')", name=op.f("ck_data_requests_kind")),
        sa.CheckConstraint("status IN ('open', 'done', 'refused')", name=op.f("ck_data_requests_status")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_data_requests_user_id_users"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_data_requests")),
    )
    op.create_index(op.f("ix_data_requests_user_id"), "data_requests", ["user_id"])
    op.create_index("ix_data_requests_status_id", "data_requests", ["status", "id"])
    op.create_index("ix_reviews_status_id", "reviews", ["status", "id"])
    op.create_index("ix_audit_log_at_id", "audit_log", ["at", "id"])
    op.drop_index(op.f("ix_audit_log_at"), "audit_log")


def downgrade() -> None:
    op.create_index(op.f("ix_audit_log_at"), "audit_log", ["at"])
    op.drop_index("ix_audit_log_at_id", "audit_log")
    op.drop_index("ix_reviews_status_id", "reviews")
    op.drop_table("data_requests")
