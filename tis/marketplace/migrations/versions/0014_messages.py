"""Messages between buyers and shops."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, UTCDateTime

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def upgrade() -> None:
    op.create_table(
        "shop_talks",
        sa.Column("id", BigId, nullable=False),
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("buyer", sa.String(32), nullable=True),
        sa.Column("product_id", BigId, nullable=True),
        sa.Column("order_id", sa.String(36), nullable=True),
        sa.Column("num_messages", sa.Integer(), nullable=False),
        sa.Column("buyer_read", sa.Integer(), nullable=False),
        sa.Column("shop_read", sa.Integer(), nullable=False),
        sa.Column("waits_for", sa.String(8), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("last_at", UTCDateTime(), nullable=False),
        sa.CheckConstraint("waits_for IN ('buyer', 'shop')", name=op.f("ck_shop_talks_waits_for")),
        sa.CheckConstraint("(product_id IS NULL) <> (order_id IS NULL)", name=op.f("ck_shop_talks_subject")),
        sa.ForeignKeyConstraint(
            ["order_id"], ["orders.id"], name=op.f("fk_shop_talks_order_id_orders"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["product_id"], ["products.id"], name=op.f("fk_shop_talks_product_id_products"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["supplier_id"], ["suppliers.id"], name=op.f("fk_shop_talks_supplier_id_suppliers"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_shop_talks")),
        sa.UniqueConstraint("order_id", name=op.f("uq_shop_talks_order_id")),
        sa.UniqueConstraint("product_id", "buyer", name=op.f("uq_shop_talks_product_id_buyer")),
    )
    op.create_index("ix_shop_talks_buyer_last_at_id", "shop_talks", ["buyer", "last_at", "id"])
    op.create_index("ix_shop_talks_last_at", "shop_talks", ["last_at"])
    op.create_index("ix_shop_talks_supplier_id_last_at_id", "shop_talks", ["supplier_id", "last_at", "id"])
    op.create_index(
        "ix_shop_talks_supplier_id_waits_for_last_at_id", "shop_talks", ["supplier_id", "waits_for", "last_at", "id"]
    )
    op.create_table(
        "shop_messages",
        sa.Column("talk_id", BigId, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("side", sa.String(8), nullable=False),
        sa.Column("author", sa.String(32), nullable=True),
        sa.Column("body", sa.String(2000), nullable=True),
        sa.Column("picture_hash", sa.String(64), nullable=True),
        sa.Column("is_drafted", sa.Boolean(), nullable=False),
        sa.Column("flagged_reason", sa.String(100), nullable=True),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("reported_at", UTCDateTime(), nullable=True),
        sa.Column("report_reason", sa.String(200), nullable=True),
        sa.Column("hidden_at", UTCDateTime(), nullable=True),
        sa.Column("decided_by", sa.String(32), nullable=True),
        sa.CheckConstraint("side IN ('buyer', 'shop')", name=op.f("ck_shop_messages_side")),
        sa.CheckConstraint("(body IS NULL) <> (picture_hash IS NULL)", name=op.f("ck_shop_messages_content")),
        sa.ForeignKeyConstraint(
            ["picture_hash"],
            ["pictures.hash"],
            name=op.f("fk_shop_messages_picture_hash_pictures"),
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["talk_id"], ["shop_talks.id"], name=op.f("fk_shop_messages_talk_id_shop_talks"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("talk_id", "number", name=op.f("pk_shop_messages")),
    )
    op.create_index(op.f("ix_shop_messages_author"), "shop_messages", ["author"])
    op.create_index(op.f("ix_shop_messages_decided_by"), "shop_messages", ["decided_by"])
    op.create_index(op.f("ix_shop_messages_picture_hash"), "shop_messages", ["picture_hash"])
    op.create_index(
        "ix_shop_messages_reported", "shop_messages", ["talk_id", "number"], **_where("reported_at IS NOT NULL")
    )


def downgrade() -> None:
    op.drop_table("shop_messages")
    op.drop_table("shop_talks")
