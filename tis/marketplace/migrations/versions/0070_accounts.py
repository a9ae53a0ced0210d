"""Confirmed e-mails, one-time links, consents, what sessions look like, and indexes to delete old rows by"""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, UTCDateTime

revision = "0070"
down_revision = "0061"
branch_labels = None
depends_on = None

_HOLDERS = ("users", "suppliers")


def upgrade() -> None:
    for table in _HOLDERS:
        op.add_column(table, sa.Column("email_confirmed_at", UTCDateTime(), nullable=True))
    op.add_column("refresh_tokens", sa.Column("signed_in_at", UTCDateTime(), nullable=True))
    op.add_column("refresh_tokens", sa.Column("agent", sa.String(length=200), nullable=True))
    op.create_table(
        "one_time_links",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("account", sa.String(length=32), nullable=False),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("email", sa.String(length=320), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("expires_at", UTCDateTime(), nullable=False),
        sa.CheckConstraint("purpose IN ('reset', 'confirm', 'change')", name=op.f("ck_one_time_links_purpose")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_one_time_links")),
    )
    op.create_index("ix_one_time_links_account", "one_time_links", ["account"])
    op.create_index("ix_one_time_links_expires_at", "one_time_links", ["expires_at"])
    op.create_table(
        "consents",
        sa.Column("id", BigId, nullable=False),
        sa.Column("account", sa.String(length=32), nullable=False),
        sa.Column("version", sa.String(length=40), nullable=False),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_consents")),
    )
    op.create_index("ix_consents_account", "consents", ["account"])
    not_carried = sa.text("kind <> 'carried'")
    op.create_index(
        "ix_stock_movements_at", "stock_movements", ["at"], sqlite_where=not_carried, postgresql_where=not_carried
    )
    op.create_index("ix_stock_reservations_ended_at", "stock_reservations", ["ended_at"])


def downgrade() -> None:
    op.drop_index("ix_stock_reservations_ended_at", "stock_reservations")
    op.drop_index("ix_stock_movements_at", "stock_movements")
    op.drop_table("consents")
    op.drop_table("one_time_links")
    for column in ("agent", "signed_in_at"):
        op.drop_column("refresh_tokens", column)
    for table in reversed(_HOLDERS):
        op.drop_column(table, "email_confirmed_at")
