"""On MySQL and MariaDB: room for long texts, and a SKU that is unique among the products that are not deleted"""

import sqlalchemy as sa
from alembic import op

revision = "0088"
down_revision = "0087"
branch_labels = None
depends_on = None

_INDEX = "uq_products_supplier_id_sku"
_TEXTS = (
    ("products", "description", True),
    *(("product_words", column, False) for column in ("name", "labels", "description", "tokens")),
)


def upgrade() -> None:
    if not _is_mysql():
        return
    for table, column, is_null in _TEXTS:  # TEXT has 64 KiB, and a letter up to four bytes
        op.execute(f"ALTER TABLE {table} MODIFY {column} MEDIUMTEXT {'' if is_null else 'NOT NULL'}")
    op.drop_index(_INDEX, "products")
    # Instead of an index with a condition.
    live = sa.Computed("CASE WHEN deleted_at IS NULL THEN sku END")
    op.add_column("products", sa.Column("live_sku", sa.String(100), live))
    op.create_index(_INDEX, "products", ["supplier_id", "live_sku"], unique=True)


def downgrade() -> None:
    if not _is_mysql():
        return
    op.drop_index(_INDEX, "products")
    op.drop_column("products", "live_sku")
    op.create_index(_INDEX, "products", ["supplier_id", "sku"], unique=True)
    for table, column, is_null in _TEXTS:
        op.execute(f"ALTER TABLE {table} MODIFY {column} TEXT {'' if is_null else 'NOT NULL'}")


def _is_mysql() -> bool:
    return op.get_bind().dialect.name == "mysql"
