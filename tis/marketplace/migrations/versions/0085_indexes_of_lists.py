"""An index for every list: ledgers of a supplier, reviews, reservations, audit log, deleted products"""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId

revision = "0085"
down_revision = "0080"
branch_labels = None
depends_on = None

_NEW = (
    ("ix_products_supplier_id_id", "products", ["supplier_id", "id"]),
    ("ix_price_history_product_id_id", "price_history", ["product_id", "id"]),
    ("ix_price_history_actor", "price_history", ["actor"]),
    ("ix_stock_movements_supplier_id_id", "stock_movements", ["supplier_id", "id"]),
    ("ix_stock_movements_product_id_id", "stock_movements", ["product_id", "id"]),
    ("ix_stock_movements_actor", "stock_movements", ["actor"]),
    ("ix_stock_reservations_actor_created_at_id", "stock_reservations", ["actor", "created_at", "id"]),
    (
        "ix_stock_reservations_actor_status_created_at_id",
        "stock_reservations",
        ["actor", "status", "created_at", "id"],
    ),
    ("ix_reviews_product_id_status_id", "reviews", ["product_id", "status", "id"]),
    ("ix_audit_log_entity_id", "audit_log", ["entity", "id"]),
    ("ix_audit_log_entity_id_id", "audit_log", ["entity_id", "id"]),
    ("ix_audit_log_actor_id", "audit_log", ["actor", "id"]),
)
_OLD = (
    ("ix_stock_movements_product_id", "stock_movements", ["product_id"]),
    ("ix_stock_reservations_actor", "stock_reservations", ["actor"]),
    ("ix_audit_log_entity_entity_id", "audit_log", ["entity", "entity_id"]),
    ("ix_audit_log_actor", "audit_log", ["actor"]),
)


def upgrade() -> None:
    # With a default, as SQLite would make the table anew otherwise.
    op.add_column("stock_movements", sa.Column("supplier_id", BigId, nullable=False, server_default="0"))
    op.execute(
        "UPDATE stock_movements SET supplier_id ="
        " (SELECT p.supplier_id FROM products p WHERE p.id = stock_movements.product_id)"
    )
    for name, table, columns in _NEW:
        op.create_index(name, table, columns)
    is_deleted = sa.text("deleted_at IS NOT NULL")
    op.create_index(
        "ix_products_deleted", "products", ["supplier_id", "id"], sqlite_where=is_deleted, postgresql_where=is_deleted
    )
    for name, table, _ in _OLD:
        op.drop_index(name, table)


def downgrade() -> None:
    for name, table, columns in _OLD:
        op.create_index(name, table, columns)
    op.drop_index("ix_products_deleted", "products")
    for name, table, _ in reversed(_NEW):
        op.drop_index(name, table)
    op.drop_column("stock_movements", "supplier_id")
