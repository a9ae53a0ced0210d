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


def upgrade() -> None:
    hours = sa.text(str(_HANDOVER_HOURS))
    op.add_column("shop_order_rules", sa.Column("handover_hours", sa.Integer(), server_default=hours, nullable=False))
    op.add_column("orders", sa.Column("paid_by_hand", BigId, server_default=sa.text("0"), nullable=False))
    op.add_column("orders", sa.Column("overdue_at", UTCDateTime(), nullable=True))
    _check_refund_due("refund_due >= 0")
    op.execute(
        "UPDATE orders SET paid_by_hand = total WHERE paid_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM order_moves"
        " WHERE order_moves.order_id = orders.id AND order_moves.state = 'paid' AND order_moves.mover = 'payment')"
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
