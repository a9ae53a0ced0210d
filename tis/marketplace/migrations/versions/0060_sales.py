"""Reservations with a price, a shop that accepts or refuses them, and reviews by buyers"""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, UTCDateTime

revision = "0060"
down_revision = "0050"
branch_labels = None
depends_on = None

_BEFORE = "status IN ('held', 'committed', 'released', 'expired')"
_NOW = "status IN ('held', 'committed', 'released', 'refused', 'expired')"
_RESERVATIONS = "stock_reservations"
_INDEXES = {
    "ix_stock_reservations_supplier_id_created_at": ["supplier_id", "created_at", "id"],
    "ix_stock_reservations_supplier_id_status": ["supplier_id", "status", "created_at", "id"],
    "ix_stock_reservations_actor_status": ["actor", "status", "expires_at", "product_id", "quantity"],
}
_BUYER_REVIEW = (
    "status = 'committed' AND stock_reservations.product_id = reviews.product_id AND stock_reservations.actor ="
)
# As of this migration: three reviews for one by a buyer, and a prior of five reviews of 3.5 stars.
_RANK = "(5 * COALESCE(granted_rating, 3.5) + rating_sum + 2 * verified_sum) / (5 + rating_count + 2 * verified_count)"


def upgrade() -> None:
    for name in ("supplier_id", "unit_price"):
        # With a default, as SQLite adds no other column that may not be null.
        op.add_column(_RESERVATIONS, sa.Column(name, BigId, nullable=False, server_default="0"))
    op.add_column(_RESERVATIONS, sa.Column("accepted_at", UTCDateTime(), nullable=True))
    _fill_reservations()
    _replace_status_check(_NOW)
    for name, columns in _INDEXES.items():
        op.create_index(name, _RESERVATIONS, columns)
    op.add_column("reviews", sa.Column("verified_purchase", sa.Boolean(), nullable=False, server_default=sa.false()))
    for name in ("verified_sum", "verified_count"):
        op.add_column("products", sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
    _mark_reviews_by_buyers()


def downgrade() -> None:
    for name in ("verified_sum", "verified_count"):
        op.execute(f"UPDATE products SET {name} = 0 WHERE {name} > 0")
    _rank_products("rating_count > 0")
    for name in ("verified_sum", "verified_count"):
        op.drop_column("products", name)
    op.drop_column("reviews", "verified_purchase")
    op.execute("UPDATE stock_reservations SET status = 'released' WHERE status = 'refused'")
    for name in _INDEXES:
        op.drop_index(name, _RESERVATIONS)
    _replace_status_check(_BEFORE)
    for name in ("accepted_at", "unit_price", "supplier_id"):
        op.drop_column(_RESERVATIONS, name)


def _fill_reservations() -> None:
    """The price of the moment is in the price history; products older than that have their price of today."""
    of_product = "FROM products WHERE products.id = stock_reservations.product_id"
    then = (
        "SELECT price_history.price FROM price_history WHERE price_history.product_id = stock_reservations.product_id"
        " AND price_history.valid_from <= stock_reservations.created_at"
        " ORDER BY price_history.valid_from DESC, price_history.id DESC LIMIT 1"
    )
    op.execute(
        f"UPDATE stock_reservations SET supplier_id = (SELECT products.supplier_id {of_product}),"
        f" unit_price = COALESCE(({then}), (SELECT products.price {of_product}))"
    )


def _replace_status_check(rule: str) -> None:
    # SQLite makes the table anew. Nothing refers to it, so nothing is lost with the old one.
    with op.batch_alter_table(_RESERVATIONS) as table:
        table.drop_constraint(op.f("ck_stock_reservations_status"), type_="check")
        table.create_check_constraint(op.f("ck_stock_reservations_status"), sa.text(rule))


def _mark_reviews_by_buyers() -> None:
    account = {"mysql": "CONCAT('user:', reviews.user_id)"}.get(
        op.get_bind().dialect.name, "'user:' || reviews.user_id"
    )
    sales = f"SELECT 1 FROM stock_reservations WHERE stock_reservations.{_BUYER_REVIEW} {account}"
    op.execute(
        f"UPDATE reviews SET verified_purchase = {sa.true().compile(dialect=op.get_bind().dialect)}"
        f" WHERE EXISTS ({sales})"
    )
    op.execute(
        "UPDATE products SET verified_sum = (SELECT COALESCE(SUM(reviews.rating), 0) FROM reviews WHERE"
        " reviews.product_id = products.id AND reviews.verified_purchase AND reviews.status = 'published'),"
        " verified_count = (SELECT COUNT(*) FROM reviews WHERE"
        " reviews.product_id = products.id AND reviews.verified_purchase AND reviews.status = 'published')"
        " WHERE rating_count > 0"
    )
    _rank_products("verified_count > 0")


def _rank_products(condition: str) -> None:
    mean = "1.0 * (rating_sum + 2 * verified_sum) / (rating_count + 2 * verified_count)"
    op.execute(f"UPDATE products SET rating_rank = {_RANK} WHERE {condition}")
    for column, value in (("rating", mean), ("rating_rank", "rating_rank")):
        op.execute(
            f"UPDATE product_search SET {column} = (SELECT {value} FROM products"
            f" WHERE products.id = product_search.product_id)"
            f" WHERE product_id IN (SELECT id FROM products WHERE {condition})"
        )
