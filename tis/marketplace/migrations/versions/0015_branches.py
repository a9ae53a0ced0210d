"""Places of a shop, and the units at each."""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, Json, UTCDateTime

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None
_PLACED = ("stock_reservations", "stock_movements", "orders")


def upgrade() -> None:
    op.create_table(
        "branches",
        sa.Column("id", BigId, nullable=False),
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("address", sa.String(500), nullable=True),
        sa.Column("city", sa.String(100), nullable=False),
        sa.Column("province", sa.String(100), nullable=True),
        sa.Column("place_code", sa.String(4), nullable=True),
        sa.Column("latitude", sa.Double(), nullable=False),
        sa.Column("longitude", sa.Double(), nullable=False),
        _public("latitude"),
        _public("longitude"),
        sa.Column("shows_place", sa.Boolean(), nullable=False),
        sa.Column("opening_hours", Json, nullable=True),
        sa.Column("time_zone", sa.String(4), nullable=True),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        sa.CheckConstraint("latitude BETWEEN -90 AND 90", name=op.f("ck_branches_latitude")),
        sa.CheckConstraint("longitude BETWEEN -180 AND 180", name=op.f("ck_branches_longitude")),
        sa.ForeignKeyConstraint(
            ["supplier_id"], ["suppliers.id"], name=op.f("fk_branches_supplier_id_suppliers"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_branches")),
    )
    op.create_index("ix_branches_supplier_id_id", "branches", ["supplier_id", "id"])
    op.create_index("ix_branches_public_latitude_public_longitude", "branches", ["public_latitude", "public_longitude"])
    op.create_table(
        "branch_stock",
        sa.Column("product_id", BigId, autoincrement=False, nullable=False),
        sa.Column("branch_id", BigId, autoincrement=False, nullable=False),
        sa.Column("on_hand", sa.Integer(), nullable=False),
        sa.Column("reserved", sa.Integer(), nullable=False),
        sa.CheckConstraint(
            "on_hand >= 0 AND reserved >= 0 AND reserved <= on_hand", name=op.f("ck_branch_stock_stock")
        ),
        sa.ForeignKeyConstraint(
            ["branch_id"], ["branches.id"], name=op.f("fk_branch_stock_branch_id_branches"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["product_id"], ["products.id"], name=op.f("fk_branch_stock_product_id_products"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("product_id", "branch_id", name=op.f("pk_branch_stock")),
    )
    op.create_index("ix_branch_stock_branch_id_on_hand", "branch_stock", ["branch_id", "on_hand"])
    op.create_table(
        "goods_places",
        sa.Column("product_id", BigId, autoincrement=False, nullable=False),
        sa.Column("branch_id", BigId, autoincrement=False, nullable=False),
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("latitude", sa.Double(), nullable=False),
        sa.Column("longitude", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["product_id"], ["products.id"], name=op.f("fk_goods_places_product_id_products"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("product_id", "branch_id", name=op.f("pk_goods_places")),
    )
    op.create_index(op.f("ix_goods_places_supplier_id"), "goods_places", ["supplier_id"])
    for table in _PLACED:
        op.add_column(table, sa.Column("branch_id", BigId, server_default=sa.text("0"), nullable=False))
    op.add_column("product_search", sa.Column("is_spread", sa.Integer(), server_default=sa.text("0"), nullable=False))


def downgrade() -> None:
    op.drop_column("product_search", "is_spread")
    for table in reversed(_PLACED):
        op.drop_column(table, "branch_id")
    op.drop_table("goods_places")
    op.drop_table("branch_stock")
    op.drop_table("branches")


def _public(column: str) -> "sa.Column[float]":
    """As that of suppliers in 0001."""
    dialect = op.get_bind().dialect.name
    digits = "CASE WHEN shows_place THEN 3 ELSE 2 END"
    rounded = f"round({column}, {digits}) + 0.0"
    is_postgresql = dialect == "postgresql"  # version 15 has no virtual columns
    if is_postgresql:
        rounded = f"round({column}::numeric, {digits})::double precision"
    computed = sa.Computed(rounded, persisted=True if is_postgresql else None)
    # MariaDB knows no NOT NULL beside an expression.
    return sa.Column(f"public_{column}", sa.Double(), computed, nullable=dialect in ("mysql", "mariadb"))
