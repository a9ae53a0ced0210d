"""The seller's desk: answers to reviews, reasons of corrections and refusals, tokens of programs."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, UTCDateTime

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_COLUMNS: tuple[tuple[str, str, Any], ...] = (
    ("stock_movements", "on_hand", sa.Integer()),
    ("stock_movements", "reason", sa.String(200)),
    ("stock_reservations", "refusal_reason", sa.String(200)),
    ("reviews", "answer", sa.String(2000)),
    ("reviews", "answered_at", UTCDateTime()),
    ("reviews", "answer_changed_at", UTCDateTime()),
    ("reviews", "answered_by", sa.String(32)),
    ("reviews", "answer_flagged_reason", sa.String(100)),
)


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


_INDEXES: tuple[tuple[str, str, list[str], dict[str, Any]], ...] = (
    ("ix_stock_movements_supplier_id_kind_id", "stock_movements", ["supplier_id", "kind", "id"], {}),
    (
        "ix_stock_reservations_supplier_id_status_ended_at",
        "stock_reservations",
        ["supplier_id", "status", "ended_at"],
        {},
    ),
    ("ix_reviews_answered_by", "reviews", ["answered_by"], {}),
    ("ix_reviews_supplier_id_status_id", "reviews", ["supplier_id", "status", "id"], {}),
    ("ix_reviews_supplier_id_created_at", "reviews", ["supplier_id", "created_at"], {}),
    (
        "ix_reviews_unanswered",
        "reviews",
        ["supplier_id", "status", "id"],
        _where("answer IS NULL"),
    ),
    ("ix_reviews_answer_flagged", "reviews", ["id"], _where("answer_flagged_reason IS NOT NULL")),
)


def upgrade() -> None:
    for table, name, kind in _COLUMNS:
        op.add_column(table, sa.Column(name, kind, nullable=True))
    op.add_column("reviews", sa.Column("supplier_id", BigId, server_default=sa.text("0"), nullable=False))
    op.execute(
        "UPDATE reviews SET supplier_id = (SELECT supplier_id FROM products WHERE products.id = reviews.product_id)"
    )
    for name, table, columns, options in _INDEXES:
        op.create_index(name, table, columns, **options)
    op.create_table(
        "shop_tokens",
        sa.Column("id", BigId, nullable=False),
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("scopes", sa.String(40), nullable=False),
        sa.Column("created_by", sa.String(32), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("expires_at", UTCDateTime(), nullable=False),
        sa.Column("last_used_at", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["supplier_id"], ["suppliers.id"], name=op.f("fk_shop_tokens_supplier_id_suppliers"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_shop_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_shop_tokens_digest")),
    )
    for column in ("created_by", "expires_at", "supplier_id"):
        op.create_index(op.f(f"ix_shop_tokens_{column}"), "shop_tokens", [column])


def downgrade() -> None:
    op.drop_table("shop_tokens")
    for name, table, _, _ in reversed(_INDEXES):
        op.drop_index(name, table_name=table)
    op.drop_column("reviews", "supplier_id")
    for table, name, _ in reversed(_COLUMNS):
        op.drop_column(table, name)
