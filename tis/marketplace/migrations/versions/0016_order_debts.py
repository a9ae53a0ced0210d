"""What shops got by hand, debts above the price of an order, and the time that a paid order may wait."""

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, UTCDateTime

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_HANDOVER_HOURS = 72
# As `orders/money.py` has it.
_PAYMENTS = "SELECT SUM(paid_amount - refunded) FROM payments WHERE payments.order_id = orders.id"
_LEFT = f"COALESCE(({_PAYMENTS}), 0)"
_LEFT_BEFORE = f"COALESCE(({_PAYMENTS} AND payments.paid_at <= orders.paid_at), 0)"
_GIVEN_BY_HAND = (
    "COALESCE((SELECT SUM(amount) FROM payment_refunds WHERE payment_refunds.order_id = orders.id"
    " AND payment_refunds.payment_id IS NULL AND payment_refunds.status = 'done'), 0)"
)
_PRICE = (
    "total - COALESCE((SELECT SUM(returned * unit_price) FROM order_lines WHERE order_lines.order_id = orders.id), 0)"
)
_BOUGHT = "('paid', 'handed_over', 'shipped', 'received', 'returned')"


def upgrade() -> None:
    hours = sa.text(str(_HANDOVER_HOURS))
    op.add_column("shop_order_rules", sa.Column("handover_hours", sa.Integer(), server_default=hours, nullable=False))
    op.add_column("orders", sa.Column("paid_by_hand", BigId, server_default=sa.text("0"), nullable=False))
    op.add_column("orders", sa.Column("overdue_at", UTCDateTime(), nullable=True))
    _check_refund_due("refund_due >= 0")
    op.execute(
        f"UPDATE orders SET paid_by_hand = {_not_below_0(f'total - {_LEFT_BEFORE}')}"
        " WHERE paid_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM order_moves"
        " WHERE order_moves.order_id = orders.id AND order_moves.state = 'paid' AND order_moves.mover = 'payment')"
    )
    # Until now shops gave back what differed beside `refund_due`.
    owed = f"paid_by_hand - {_GIVEN_BY_HAND} + {_LEFT} - CASE WHEN state IN {_BOUGHT} THEN {_PRICE} ELSE 0 END"
    op.execute(
        f"UPDATE orders SET refund_due = {_not_below_0(owed)}"
        " WHERE id IN (SELECT order_id FROM payments WHERE paid_amount > refunded)"
    )
    orders = sa.table("orders", sa.column("state", sa.String), sa.column("due_at", UTCDateTime()))
    due_at = datetime.now(UTC) + timedelta(hours=_HANDOVER_HOURS)
    op.execute(orders.update().where(orders.c.state == "paid").values(due_at=due_at))


def downgrade() -> None:
    op.execute("UPDATE orders SET due_at = NULL WHERE state = 'paid'")
    op.execute("UPDATE orders SET refund_due = total WHERE refund_due > total")
    _check_refund_due("refund_due BETWEEN 0 AND total")
    op.drop_column("orders", "overdue_at")
    op.drop_column("orders", "paid_by_hand")
    op.drop_column("shop_order_rules", "handover_hours")


def _not_below_0(sql: str) -> str:
    return f"CASE WHEN {sql} > 0 THEN {sql} ELSE 0 END"


def _check_refund_due(condition: str) -> None:
    """SQLite copies the table, as it cannot change a constraint. With the old table go the rows that belong to it."""
    kept = _tables_below("orders") if op.get_bind().dialect.name == "sqlite" else []
    for table in kept:
        op.execute(f"CREATE TEMPORARY TABLE kept_{table} AS SELECT * FROM {table}")
    name = op.f("ck_orders_refund_due")
    with op.batch_alter_table("orders") as orders:
        orders.drop_constraint(name, type_="check")
        orders.create_check_constraint(name, condition)
    for table in kept:
        op.execute(f"INSERT INTO {table} SELECT * FROM kept_{table}")
        op.execute(f"DROP TABLE kept_{table}")


def _tables_below(parent: str) -> list[str]:
    """All whose rows go with those of a table, each after those that it refers to."""
    inspector, found = sa.inspect(op.get_bind()), [parent]
    for table, _ in inspector.get_sorted_table_and_fkc_names():
        if table and any(key["referred_table"] in found for key in inspector.get_foreign_keys(table)):
            found.append(table)
    return found[1:]
