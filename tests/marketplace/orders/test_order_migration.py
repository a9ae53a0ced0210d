"""Orders that are there already when the server is renewed."""

from datetime import timedelta
from typing import Any

from sqlalchemy import func, select, text

from tests.marketplace.shop import Shop
from tis.marketplace.columns import now
from tis.marketplace.market import MIGRATIONS
from tis.marketplace.orders.money import settle
from tis.marketplace.tables import (
    Order,
    OrderAddress,
    OrderLine,
    OrderMove,
    Payment,
    PaymentCallback,
    PaymentRefund,
    ShopMessage,
    ShopTalk,
    Table,
)

# So many migrations are taken back.
BEFORE = f"-{sum(path.name >= '0016' for path in (MIGRATIONS / 'versions').glob('0*.py'))}"
BELOW: tuple[type[Table], ...] = (
    OrderAddress,
    OrderLine,
    OrderMove,
    Payment,
    PaymentCallback,
    PaymentRefund,
    ShopMessage,
    ShopTalk,
)


def add_order(shop: Shop, name: str, mover: str, **payment: Any) -> None:
    """Paid, and with all that may belong to an order."""
    moment, product = now(), shop.product()
    with shop.market.writing() as session:
        order = Order(
            id=name, number=name, supplier_id=shop.id, state="paid", shop_name="Toko", payment_method="provider"
        )
        order.items_total = order.total = 1000
        order.placed_at = order.accepted_at = order.paid_at = moment
        session.add(order)
        session.flush()
        line = {"order_id": name, "position": 1, "product_id": product, "name": "Kipas", "total": 1000}
        session.add(OrderLine(**line, unit_price=1000, ordered=1, quantity=1))
        address = {"name": "Dewi Specimen", "phone": "+6281234567890", "street": "Jl. Contoh 12", "city": "Jakarta"}
        session.add(OrderAddress(order_id=name, **address))
        session.add(OrderMove(order_id=name, number=4, state="paid", mover=mover))
        payment |= {"provider": "xendit", "environment": "sandbox", "amount": 1000, "expires_at": moment}
        session.add(Payment(id=name, order_id=name, supplier_id=shop.id, **payment))
        talk = ShopTalk(supplier_id=shop.id, order_id=name, waits_for="shop", last_at=moment)
        session.add(talk)
        session.flush()
        session.add(PaymentCallback(payment_id=name, digest=name))
        session.add(PaymentRefund(id=name, order_id=name, payment_id=name, amount=1, reason="x"))
        session.add(ShopMessage(talk_id=talk.id, number=1, side="buyer", body="Halo"))


def test_a_renewed_server_keeps_what_belongs_to_orders_and_knows_who_took_the_money(shop: Shop) -> None:
    add_order(shop, "by-hand", "shop")
    add_order(shop, "by-provider", "payment")
    shop.market.database.migrate(MIGRATIONS, BEFORE)
    shop.market.database.migrate(MIGRATIONS)
    with shop.market.reading() as session:
        found = {row.id: (row.paid_by_hand, row.due_at is not None) for row in session.scalars(select(Order))}
        assert found == {"by-hand": (1000, True), "by-provider": (0, True)}
        assert {table: session.scalar(select(func.count()).select_from(table)) for table in BELOW} == dict.fromkeys(
            BELOW, 2
        )


def test_money_that_differs_is_owed_but_for_what_a_shop_took_as_a_part_of_the_price(shop: Shop) -> None:
    differs = {"status": "differs", "paid_amount": 900}
    add_order(shop, "as-a-part", "shop", **differs, paid_at=now() - timedelta(days=1))
    add_order(shop, "besides", "shop", **differs, paid_at=now() + timedelta(days=1))
    add_order(shop, "partly-back", "shop", **differs, refunded=200, paid_at=now() + timedelta(days=1))
    add_order(shop, "of-no-sale", "buyer", **differs, paid_at=now())
    with shop.market.writing() as session:
        order = session.get_one(Order, "of-no-sale")
        order.state, order.paid_at, order.ended_at = "cancelled", None, now()
    shop.market.database.migrate(MIGRATIONS, BEFORE)
    with shop.market.writing() as session:
        session.execute(text("UPDATE orders SET refund_due = 0"))
    shop.market.database.migrate(MIGRATIONS)
    with shop.market.writing() as session:
        orders = session.scalars(select(Order).where(Order.supplier_id == shop.id)).all()
        found = {row.id: (row.paid_by_hand, row.refund_due) for row in orders}
        assert found == {
            "as-a-part": (100, 0),
            "besides": (1000, 900),
            "partly-back": (1000, 700),
            "of-no-sale": (0, 900),
        }
        for row in orders:
            settle(session, row)
        assert found == {row.id: (row.paid_by_hand, row.refund_due) for row in orders}
