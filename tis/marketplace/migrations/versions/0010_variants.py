"""Variants: groups of products, which lists show once."""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, Json, UTCDateTime

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    counters = ("rating_sum", "rating_count", "verified_sum", "verified_count", "version")
    op.create_table(
        "product_groups",
        sa.Column("id", BigId, nullable=False),
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("name_key", sa.String(255), nullable=False),
        sa.Column("axes", Json, nullable=False),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in counters),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["supplier_id"], ["suppliers.id"], name=op.f("fk_product_groups_supplier_id_suppliers"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_product_groups")),
    )
    op.create_index("ix_product_groups_supplier_id_id", "product_groups", ["supplier_id", "id"])
    op.create_index(
        "uq_product_groups_supplier_id_name_key", "product_groups", ["supplier_id", "name_key"], unique=True
    )
    op.add_column("products", sa.Column("group_id", BigId, nullable=True))
    op.add_column("products", sa.Column("variant_key", sa.String(32), nullable=True))
    op.create_index("uq_products_group_id_variant_key", "products", ["group_id", "variant_key"], unique=True)
    op.add_column("product_search", sa.Column("group_id", BigId, nullable=True))
    is_variant = sa.text("group_id IS NOT NULL")
    op.create_index(
        "ix_product_search_group",
        "product_search",
        ["group_id", "category_key", "product_id", "sellable"],
        sqlite_where=is_variant,
        postgresql_where=is_variant,
    )


def downgrade() -> None:
    op.drop_index("ix_product_search_group", table_name="product_search")
    op.drop_column("product_search", "group_id")
    op.drop_index("uq_products_group_id_variant_key", table_name="products")
    op.drop_column("products", "variant_key")
    op.drop_column("products", "group_id")
    op.drop_index("uq_product_groups_supplier_id_name_key", table_name="product_groups")
    op.drop_table("product_groups")
