"""Orders: their lines, moves and addresses, and how shops take them."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, UTCDateTime

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


_RESERVATIONS = "stock_reservations"
_STATUSES = "'held', 'committed', 'released', 'refused', 'expired'"
_HOLDS_UNITS = "'draft', 'placed', 'accepted', 'paid'"


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def upgrade() -> None:
    _allow_statuses(f"{_STATUSES}, 'ordered'")
    op.create_table(
        "courier_fees",
        sa.Column("supplier_id", BigId, autoincrement=False, nullable=False),
        sa.Column("up_to_km", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("fee", BigId, nullable=False),
        sa.CheckConstraint("fee BETWEEN 0 AND 10000000000000", name=op.f("ck_courier_fees_fee")),
        sa.ForeignKeyConstraint(
            ["supplier_id"], ["suppliers.id"], name=op.f("fk_courier_fees_supplier_id_suppliers"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("supplier_id", "up_to_km", name=op.f("pk_courier_fees")),
    )
    op.create_table(
        "orders",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("number", sa.String(16), nullable=False),
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("buyer", sa.String(32), nullable=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("shop_name", sa.String(200), nullable=False),
        sa.Column("delivery", sa.String(16), nullable=False),
        sa.Column("payment_method", sa.String(16), nullable=False),
        sa.Column("note", sa.String(500), nullable=True),
        sa.Column("items_total", BigId, nullable=False),
        sa.Column("delivery_fee", BigId, nullable=False),
        sa.Column("total", BigId, nullable=False),
        sa.Column("tax_rate", sa.Integer(), nullable=False),
        sa.Column("tax_included", BigId, nullable=False),
        sa.Column("tax_number", sa.String(32), nullable=True),
        sa.Column("refund_due", BigId, nullable=False),
        sa.Column("return_days", sa.Integer(), nullable=False),
        sa.Column("return_asked_at", UTCDateTime(), nullable=True),
        sa.Column("return_reason", sa.String(200), nullable=True),
        sa.Column("return_refused_at", UTCDateTime(), nullable=True),
        sa.Column("return_refusal", sa.String(200), nullable=True),
        sa.Column("tracking", sa.String(100), nullable=True),
        sa.Column("carrier", sa.String(100), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("due_at", UTCDateTime(), nullable=True),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("placed_at", UTCDateTime(), nullable=True),
        sa.Column("accepted_at", UTCDateTime(), nullable=True),
        sa.Column("paid_at", UTCDateTime(), nullable=True),
        sa.Column("ended_at", UTCDateTime(), nullable=True),
        sa.CheckConstraint("delivery IN ('pickup', 'courier', 'expedition')", name=op.f("ck_orders_delivery")),
        sa.CheckConstraint(
            "payment_method IN ('cash', 'transfer', 'qris', 'provider')", name=op.f("ck_orders_payment_method")
        ),
        sa.CheckConstraint(
            "state IN ('draft', 'placed', 'accepted', 'paid', 'handed_over', 'shipped', 'received', "
            "'refused', 'cancelled', 'expired', 'returned')",
            name=op.f("ck_orders_state"),
        ),
        sa.CheckConstraint("delivery_fee BETWEEN 0 AND 10000000000000", name=op.f("ck_orders_delivery_fee")),
        sa.CheckConstraint("items_total BETWEEN 0 AND 10000000000000", name=op.f("ck_orders_items_total")),
        sa.CheckConstraint("refund_due BETWEEN 0 AND total", name=op.f("ck_orders_refund_due")),
        sa.CheckConstraint("tax_included BETWEEN 0 AND total", name=op.f("ck_orders_tax_included")),
        sa.CheckConstraint("total = items_total + delivery_fee", name=op.f("ck_orders_total")),
        sa.ForeignKeyConstraint(
            ["supplier_id"], ["suppliers.id"], name=op.f("fk_orders_supplier_id_suppliers"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_orders")),
        sa.UniqueConstraint("number", name=op.f("uq_orders_number")),
    )
    op.create_index("ix_orders_buyer_created_at_id", "orders", ["buyer", "created_at", "id"])
    op.create_index("ix_orders_buyer_state_created_at_id", "orders", ["buyer", "state", "created_at", "id"])
    op.create_index("ix_orders_due_at", "orders", ["due_at"], **_where("due_at IS NOT NULL"))
    op.create_index("ix_orders_ended_at", "orders", ["ended_at"])
    op.create_index("ix_orders_supplier_id_placed_at_id", "orders", ["supplier_id", "placed_at", "id"])
    op.create_index("ix_orders_supplier_id_state_placed_at_id", "orders", ["supplier_id", "state", "placed_at", "id"])
    op.create_table(
        "shop_order_rules",
        sa.Column("supplier_id", BigId, autoincrement=False, nullable=False),
        sa.Column("takes_orders", sa.Boolean(), nullable=False),
        sa.Column("accept_hours", sa.Integer(), nullable=False),
        sa.Column("pay_hours", sa.Integer(), nullable=False),
        sa.Column("return_days", sa.Integer(), nullable=False),
        sa.Column("expedition_fee", BigId, nullable=True),
        sa.Column("tax_rate", sa.Integer(), nullable=False),
        sa.Column("tax_number", sa.String(32), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["supplier_id"],
            ["suppliers.id"],
            name=op.f("fk_shop_order_rules_supplier_id_suppliers"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("supplier_id", name=op.f("pk_shop_order_rules")),
    )
    op.create_table(
        "order_addresses",
        sa.Column("order_id", sa.String(36), autoincrement=False, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("phone", sa.String(32), nullable=False),
        sa.Column("street", sa.String(500), nullable=False),
        sa.Column("city", sa.String(100), nullable=False),
        sa.Column("postal_code", sa.String(10), nullable=True),
        sa.Column("latitude", sa.Double(), nullable=True),
        sa.Column("longitude", sa.Double(), nullable=True),
        sa.CheckConstraint("latitude BETWEEN -90 AND 90", name=op.f("ck_order_addresses_latitude")),
        sa.CheckConstraint("longitude BETWEEN -180 AND 180", name=op.f("ck_order_addresses_longitude")),
        sa.ForeignKeyConstraint(
            ["order_id"], ["orders.id"], name=op.f("fk_order_addresses_order_id_orders"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("order_id", name=op.f("pk_order_addresses")),
    )
    op.create_table(
        "order_lines",
        sa.Column("order_id", sa.String(36), autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("product_id", BigId, nullable=False),
        sa.Column("reservation_id", sa.String(36), nullable=True),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("sku", sa.String(100), nullable=True),
        sa.Column("unit_price", BigId, nullable=False),
        sa.Column("ordered", sa.Integer(), nullable=False),
        sa.Column("quantity", sa.Integer(), nullable=False),
        sa.Column("returned", sa.Integer(), nullable=False),
        sa.Column("total", BigId, nullable=False),
        sa.CheckConstraint("ordered > 0 AND quantity BETWEEN 0 AND ordered", name=op.f("ck_order_lines_quantity")),
        sa.CheckConstraint("returned BETWEEN 0 AND quantity", name=op.f("ck_order_lines_returned")),
        sa.CheckConstraint("total = quantity * unit_price", name=op.f("ck_order_lines_total")),
        sa.ForeignKeyConstraint(
            ["order_id"], ["orders.id"], name=op.f("fk_order_lines_order_id_orders"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("order_id", "position", name=op.f("pk_order_lines")),
        sa.UniqueConstraint("reservation_id", name=op.f("uq_order_lines_reservation_id")),
    )
    op.create_index(op.f("ix_order_lines_product_id"), "order_lines", ["product_id"])
    op.create_table(
        "order_moves",
        sa.Column("order_id", sa.String(36), autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("mover", sa.String(16), nullable=False),
        sa.Column("actor", sa.String(32), nullable=True),
        sa.Column("reason", sa.String(200), nullable=True),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["order_id"], ["orders.id"], name=op.f("fk_order_moves_order_id_orders"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("order_id", "number", name=op.f("pk_order_moves")),
    )
    op.create_index(op.f("ix_order_moves_actor"), "order_moves", ["actor"])


def downgrade() -> None:
    # Their units stay on hand, and nobody has them any more.
    op.execute(
        "UPDATE products SET reserved = reserved - (SELECT COALESCE(SUM(order_lines.quantity), 0) FROM order_lines"
        " JOIN orders ON orders.id = order_lines.order_id WHERE order_lines.product_id = products.id"
        f" AND orders.state IN ({_HOLDS_UNITS}))"
    )
    for table in ("order_moves", "order_lines", "order_addresses", "shop_order_rules", "orders", "courier_fees"):
        op.drop_table(table)
    op.execute("UPDATE stock_reservations SET status = 'released' WHERE status = 'ordered'")
    _allow_statuses(_STATUSES)


def _allow_statuses(words: str) -> None:
    """Of reservations. SQLite copies the table: it cannot change a constraint."""
    name = op.f(f"ck_{_RESERVATIONS}_status")
    with op.batch_alter_table(_RESERVATIONS) as table:
        table.drop_constraint(name, type_="check")
        table.create_check_constraint(name, f"status IN ({words})")
