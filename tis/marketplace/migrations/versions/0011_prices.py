"""Promotions, alerts on products, saved searches."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, Json, UTCDateTime

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_RUPIAH = "BETWEEN 1 AND 10000000000000"


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


_PROMOTION_INDEXES: tuple[tuple[str, list[str], dict[str, Any]], ...] = (
    ("ix_promotions_product_id_state", ["product_id", "state"], {}),
    ("ix_promotions_product_id_id", ["product_id", "id"], {}),
    ("ix_promotions_supplier_id_id", ["supplier_id", "id"], {}),
    ("ix_promotions_supplier_id_state_id", ["supplier_id", "state", "id"], {}),
    ("ix_promotions_begins", ["begins_at"], _where("state = 'scheduled'")),
    ("ix_promotions_ends", ["ends_at"], _where("state IN ('running', 'sold_out')")),
)


def upgrade() -> None:
    _add_columns()
    op.create_table(
        "promotions",
        sa.Column("id", BigId, nullable=False),
        sa.Column("product_id", BigId, nullable=False),
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("price", BigId, nullable=False),
        sa.Column("begins_at", UTCDateTime(), nullable=False),
        sa.Column("ends_at", UTCDateTime(), nullable=False),
        sa.Column("max_units", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("end_reason", sa.String(16), nullable=True),
        sa.Column("lowest_before", BigId, nullable=True),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("ended_at", UTCDateTime(), nullable=True),
        sa.CheckConstraint(f"price {_RUPIAH}", name=op.f("ck_promotions_price")),
        sa.CheckConstraint("begins_at < ends_at", name=op.f("ck_promotions_period")),
        sa.CheckConstraint("max_units > 0", name=op.f("ck_promotions_max_units")),
        sa.CheckConstraint("state IN ('scheduled', 'running', 'sold_out', 'ended')", name=op.f("ck_promotions_state")),
        sa.CheckConstraint(
            "end_reason IN ('over', 'stopped', 'not_lower', 'deleted')", name=op.f("ck_promotions_end_reason")
        ),
        _to_product("promotions"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_promotions")),
    )
    for name, columns, options in _PROMOTION_INDEXES:
        op.create_index(name, "promotions", columns, **options)
    _create_alerts()
    op.create_table(
        "product_changes",
        sa.Column("id", BigId, nullable=False),
        sa.Column("product_id", BigId, nullable=False),
        sa.Column("after_alert", BigId, nullable=False),
        sa.Column("after_search", BigId, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_product_changes")),
    )


def _add_columns() -> None:
    op.add_column("stock_reservations", sa.Column("promotion_id", BigId, nullable=True))
    op.create_index(op.f("ix_stock_reservations_promotion_id"), "stock_reservations", ["promotion_id"])
    is_price = f"normal_price {_RUPIAH}"
    if op.get_bind().dialect.name == "sqlite":  # which adds no constraint to a table, but a column that has one
        op.execute(
            "ALTER TABLE products ADD COLUMN normal_price INTEGER"
            f" CONSTRAINT ck_products_normal_price CHECK ({is_price})"
        )
        return
    op.add_column("products", sa.Column("normal_price", BigId, nullable=True))
    op.create_check_constraint(op.f("ck_products_normal_price"), "products", is_price)


def _create_alerts() -> None:
    op.create_table(
        "product_alerts",
        sa.Column("id", BigId, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("product_id", BigId, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("max_price", BigId, nullable=True),
        sa.Column("last_price", BigId, nullable=True),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("told_at", UTCDateTime(), nullable=True),
        sa.CheckConstraint("kind IN ('below', 'fall', 'stock')", name=op.f("ck_product_alerts_kind")),
        sa.CheckConstraint("(kind = 'below') = (max_price IS NOT NULL)", name=op.f("ck_product_alerts_max_price")),
        _to_user("product_alerts"),
        _to_product("product_alerts"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_product_alerts")),
        sa.UniqueConstraint("user_id", "product_id", "kind", name=op.f("uq_product_alerts_user_id_product_id_kind")),
    )
    op.create_index("ix_product_alerts_user_id_id", "product_alerts", ["user_id", "id"])
    op.create_index("ix_product_alerts_product_id_id", "product_alerts", ["product_id", "id"])
    op.create_table(
        "saved_searches",
        sa.Column("id", BigId, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("parameters", Json, nullable=False),
        sa.Column("query", Json, nullable=False),
        sa.Column("tells", sa.Boolean(), nullable=False),
        sa.Column("tells_since", UTCDateTime(), nullable=False),
        sa.Column("told_at", UTCDateTime(), nullable=True),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        _to_user("saved_searches"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_saved_searches")),
    )
    op.create_index("ix_saved_searches_user_id_id", "saved_searches", ["user_id", "id"])
    op.create_table(
        "search_finds",
        sa.Column("saved_search_id", BigId, autoincrement=False, nullable=False),
        sa.Column("product_id", BigId, autoincrement=False, nullable=False),
        sa.Column("found_at", UTCDateTime(), nullable=False),
        sa.Column("told_at", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["saved_search_id"],
            ["saved_searches.id"],
            name=op.f("fk_search_finds_saved_search_id_saved_searches"),
            ondelete="CASCADE",
        ),
        _to_product("search_finds"),
        sa.PrimaryKeyConstraint("saved_search_id", "product_id", name=op.f("pk_search_finds")),
    )
    op.create_index(op.f("ix_search_finds_product_id"), "search_finds", ["product_id"])
    op.create_index("ix_search_finds_untold", "search_finds", ["saved_search_id"], **_where("told_at IS NULL"))
    op.create_index("ix_search_finds_saved_search_id_found_at", "search_finds", ["saved_search_id", "found_at"])


def _to_product(table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_product_id_products")
    return sa.ForeignKeyConstraint(["product_id"], ["products.id"], name=name, ondelete="CASCADE")


def _to_user(table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_user_id_users")
    return sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=name, ondelete="CASCADE")


def downgrade() -> None:
    for table in ("product_changes", "search_finds", "saved_searches", "product_alerts", "promotions"):
        op.drop_table(table)
    op.drop_index(op.f("ix_stock_reservations_promotion_id"), table_name="stock_reservations")
    op.drop_column("stock_reservations", "promotion_id")
    if op.get_bind().dialect.name == "sqlite":
        op.drop_column("products", "normal_price")
        return
    op.drop_constraint(op.f("ck_products_normal_price"), "products", type_="check")
    op.drop_column("products", "normal_price")
