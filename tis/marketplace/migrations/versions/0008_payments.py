"""How shops take money, payments at providers, what providers said, and what was given back."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, UTCDateTime

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def upgrade() -> None:
    op.create_table(
        "shop_payment_methods",
        sa.Column("supplier_id", BigId, autoincrement=False, nullable=False),
        sa.Column("takes_cash", sa.Boolean(), nullable=False),
        sa.Column("bank_name", sa.String(100), nullable=True),
        sa.Column("account_number", sa.String(34), nullable=True),
        sa.Column("account_holder", sa.String(200), nullable=True),
        sa.Column("qris_text", sa.String(512), nullable=True),
        sa.Column("provider", sa.String(16), nullable=True),
        sa.Column("environment", sa.String(16), nullable=True),
        sa.Column("sealed_credentials", sa.String(1000), nullable=True),
        sa.Column("credentials_at", UTCDateTime(), nullable=True),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        sa.CheckConstraint(
            "environment IN ('sandbox', 'production')", name=op.f("ck_shop_payment_methods_environment")
        ),
        sa.CheckConstraint("provider IN ('midtrans', 'xendit')", name=op.f("ck_shop_payment_methods_provider")),
        sa.ForeignKeyConstraint(
            ["supplier_id"],
            ["suppliers.id"],
            name=op.f("fk_shop_payment_methods_supplier_id_suppliers"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("supplier_id", name=op.f("pk_shop_payment_methods")),
    )
    op.create_table(
        "payments",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("order_id", sa.String(36), nullable=False),
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("provider", sa.String(16), nullable=False),
        sa.Column("environment", sa.String(16), nullable=False),
        sa.Column("amount", BigId, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("external_id", sa.String(64), nullable=True),
        sa.Column("url", sa.String(500), nullable=True),
        sa.Column("problem", sa.String(200), nullable=True),
        sa.Column("paid_amount", BigId, nullable=False),
        sa.Column("refunded", BigId, nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("expires_at", UTCDateTime(), nullable=False),
        sa.Column("paid_at", UTCDateTime(), nullable=True),
        sa.Column("check_at", UTCDateTime(), nullable=True),
        sa.Column("num_checks", sa.Integer(), nullable=False),
        sa.Column("busy_until", UTCDateTime(), nullable=True),
        sa.CheckConstraint(
            "status IN ('creating', 'pending', 'paid', 'differs', 'expired', 'failed')", name=op.f("ck_payments_status")
        ),
        sa.CheckConstraint("amount BETWEEN 1 AND 10000000000000", name=op.f("ck_payments_amount")),
        sa.CheckConstraint("refunded BETWEEN 0 AND paid_amount", name=op.f("ck_payments_refunded")),
        sa.ForeignKeyConstraint(
            ["order_id"], ["orders.id"], name=op.f("fk_payments_order_id_orders"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_payments")),
    )
    op.create_index("ix_payments_check_at", "payments", ["check_at"], **_where("check_at IS NOT NULL"))
    op.create_index("ix_payments_order_id_created_at", "payments", ["order_id", "created_at", "id"])
    op.create_table(
        "payment_callbacks",
        sa.Column("payment_id", sa.String(36), autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("seen_at", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["payment_id"], ["payments.id"], name=op.f("fk_payment_callbacks_payment_id_payments"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("payment_id", "digest", name=op.f("pk_payment_callbacks")),
    )
    op.create_index(op.f("ix_payment_callbacks_seen_at"), "payment_callbacks", ["seen_at"])
    op.create_table(
        "payment_refunds",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("order_id", sa.String(36), nullable=False),
        sa.Column("payment_id", sa.String(36), nullable=True),
        sa.Column("amount", BigId, nullable=False),
        sa.Column("reason", sa.String(200), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("problem", sa.String(200), nullable=True),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("created_by", sa.String(32), nullable=True),
        sa.Column("ended_at", UTCDateTime(), nullable=True),
        sa.Column("check_at", UTCDateTime(), nullable=True),
        sa.Column("num_checks", sa.Integer(), nullable=False),
        sa.CheckConstraint("status IN ('asked', 'done', 'failed')", name=op.f("ck_payment_refunds_status")),
        sa.CheckConstraint("amount BETWEEN 1 AND 10000000000000", name=op.f("ck_payment_refunds_amount")),
        sa.ForeignKeyConstraint(
            ["order_id"], ["orders.id"], name=op.f("fk_payment_refunds_order_id_orders"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["payment_id"], ["payments.id"], name=op.f("fk_payment_refunds_payment_id_payments"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_payment_refunds")),
    )
    op.create_index("ix_payment_refunds_check_at", "payment_refunds", ["check_at"], **_where("check_at IS NOT NULL"))
    op.create_index(op.f("ix_payment_refunds_created_by"), "payment_refunds", ["created_by"])
    op.create_index("ix_payment_refunds_order_id_created_at", "payment_refunds", ["order_id", "created_at", "id"])
    op.create_index(op.f("ix_payment_refunds_payment_id"), "payment_refunds", ["payment_id"])


def downgrade() -> None:
    for table in ("payment_refunds", "payment_callbacks", "payments", "shop_payment_methods"):  # with their indexes
        op.drop_table(table)
