"""Random walks of the money of one order: by hand, by a provider, back in parts. What is owed always adds up."""

import random
from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import select

from tests.faults.forms import short_or_long
from tests.marketplace.shop import Shop
from tis.errors import Conflict, Forbidden
from tis.marketplace.columns import now
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.versions import IfMatch
from tis.marketplace.orders.moving import move_order
from tis.marketplace.orders.schemas import ReturnedLine
from tis.marketplace.orders.shop_moves import return_goods
from tis.marketplace.orders.states import OrderState
from tis.marketplace.payment_providers.provider import PaymentStanding, RefundAnswer
from tis.marketplace.payments.refunds import begin_refund
from tis.marketplace.payments.truth import apply_refund, apply_standing
from tis.marketplace.tables import Order, OrderLine, Payment, PaymentRefund, ShopPaymentMethods

PRICE, UNITS, FEE = 1000, 3, 500
TOTAL = PRICE * UNITS + FEE
NUM_WALKS, NUM_STEPS = short_or_long(12, 200), 25
ANY_VERSION = IfMatch()
BOUGHT = ("paid", "handed_over", "received", "returned")


class MoneyWalk:
    """One order of a provider, which the shop has accepted, with pages that the buyer may pay."""

    def __init__(self, shop: Shop, chance: random.Random) -> None:
        self.shop, self.chance = shop, chance
        self.product = shop.product(on_hand=UNITS, price=PRICE, reserved=UNITS)
        self.account = f"user:{shop.user()}"
        self.buyer = Principal(self.account)
        self.seller = Principal(f"supplier:{shop.id}", supplier_ids=frozenset([shop.id]))
        self.order_id = str(uuid4())
        self.payments = [str(uuid4()) for _ in range(3)]
        self.by_provider = dict.fromkeys(self.payments, 0)
        self.by_hand = self.back_by_hand = 0
        self.back: dict[str, int] = dict.fromkeys(self.payments, 0)
        self.returned = 0
        self._begin()

    def _begin(self) -> None:
        moment = now()
        with self.shop.market.writing() as session:
            session.add(
                Order(
                    id=self.order_id,
                    number=self.order_id[:13],
                    supplier_id=self.shop.id,
                    buyer=self.account,
                    state="accepted",
                    shop_name="Toko",
                    payment_method="provider",
                    items_total=PRICE * UNITS,
                    delivery_fee=FEE,
                    total=TOTAL,
                    return_days=7,
                    placed_at=moment,
                    accepted_at=moment,
                    due_at=moment + timedelta(hours=1),
                )
            )
            session.flush()
            line = {"order_id": self.order_id, "position": 1, "product_id": self.product, "name": "Kipas"}
            session.add(OrderLine(**line, unit_price=PRICE, ordered=UNITS, quantity=UNITS, total=PRICE * UNITS))
            session.add_all(
                Payment(
                    id=one,
                    order_id=self.order_id,
                    supplier_id=self.shop.id,
                    provider="xendit",
                    environment="sandbox",
                    amount=TOTAL,
                    status="pending",
                    created_at=moment,
                    expires_at=moment + timedelta(hours=1),
                )
                for one in self.payments
            )

    def row(self) -> Order:
        with self.shop.market.reading() as session:
            order = session.get_one(Order, self.order_id)
            session.expunge(order)
            return order

    def asked(self) -> list[PaymentRefund]:
        with self.shop.market.reading() as session:
            own = PaymentRefund.order_id == self.order_id, PaymentRefund.status == "asked"
            rows = list(session.scalars(select(PaymentRefund).where(*own).order_by(PaymentRefund.id)))
            session.expunge_all()
            return rows

    def owed(self) -> int:
        """What came in, less what went back, less the price of what the buyer got and kept."""
        came = self.by_hand + sum(self.by_provider.values())
        went = self.back_by_hand + sum(self.back.values())
        return came - went - (TOTAL - self.returned * PRICE if self.row().state in BOUGHT else 0)

    def money_comes(self) -> None:
        payment = self.chance.choice(self.payments)
        amount = max(self.by_provider[payment], self.chance.choice([TOTAL, TOTAL, TOTAL - 700, TOTAL + 300]))
        with self.shop.market.writing() as session:
            was_paid = session.get_one(Payment, payment).status == "paid"
            standing = PaymentStanding("paid", amount, "IDR")
            apply_standing(session, self.shop.market.search, payment, standing, ServiceRules())
            if not was_paid:
                self.by_provider[payment] = amount

    def shop_says_paid(self) -> None:
        came, went = sum(self.by_provider.values()), sum(self.back.values())
        on_its_way = sum(refund.amount for refund in self.asked())
        if self._moved("paid", self.seller):
            self.by_hand = min(TOTAL, max(0, TOTAL - (came - went - on_its_way)))

    def somebody_moves(self) -> None:
        target: OrderState = self.chance.choice(["handed_over", "received", "cancelled"])
        self._moved(target, self.chance.choice([self.buyer, self.seller]))

    def goods_come_back(self) -> None:
        number = self.chance.randint(1, UNITS)
        lines = [ReturnedLine(position=1, quantity=number, restock=self.chance.random() < 0.5)]
        before = self.row().state
        try:
            with self.shop.market.writing() as session:
                search, rules = self.shop.market.search, ServiceRules()
                return_goods(session, self.seller, search, self.order_id, lines, "Rusak", rules, ANY_VERSION)
        except Conflict:
            return
        if before != "returned":
            self.returned = number

    def shop_gives_back(self) -> None:
        amount = self.chance.choice([1, 400, TOTAL - 700, TOTAL, self.owed() or 1])
        free = self.owed() - sum(refund.amount for refund in self.asked())
        try:
            with self.shop.market.writing() as session:
                begun = begin_refund(session, self.seller, self.order_id, amount, "Kembali")
        except Conflict as refused:
            assert amount > free or "in parts" in refused.message, refused.message
            return
        assert amount <= free
        if begun.by_provider is None:
            self.back_by_hand += amount

    def provider_answers(self) -> None:
        for refund in self.asked():
            answer = self.chance.choice([RefundAnswer("asked"), RefundAnswer("done"), RefundAnswer("failed", "x")])
            with self.shop.market.writing() as session:
                apply_refund(session, refund.id, answer)
            if answer.state == "done":
                assert refund.payment_id is not None
                self.back[refund.payment_id] += refund.amount

    def time_passes(self) -> None:
        with self.shop.market.writing() as session:
            order = session.get_one(Order, self.order_id)
            order.due_at = order.due_at and now() - timedelta(seconds=1)

    def _moved(self, target: OrderState, by: Principal) -> bool:
        before = self.row().state
        try:
            with self.shop.market.writing() as session:
                move_order(session, self.shop.market.search, by, self.order_id, target, reason="Alasan")
        except (Conflict, Forbidden):
            return False
        return before != target


@pytest.mark.parametrize("seed", range(NUM_WALKS))
def test_what_is_owed_is_what_came_less_what_went_back(shop: Shop, seed: int) -> None:
    shop.id = shop.supplier()
    shop.takes_orders()
    with shop.market.writing() as session:
        keys = {"provider": "xendit", "environment": "sandbox", "sealed_credentials": "sealed"}
        session.add(ShopPaymentMethods(supplier_id=shop.id, credentials_at=now(), **keys))
    chance = random.Random(seed)
    walk = MoneyWalk(shop, chance)
    steps = [
        walk.money_comes,
        walk.shop_says_paid,
        walk.somebody_moves,
        walk.goods_come_back,
        walk.shop_gives_back,
        walk.shop_gives_back,
        walk.provider_answers,
        walk.time_passes,
    ]
    for _ in range(NUM_STEPS):
        step = chance.choice(steps)
        step()
        assert walk.row().refund_due == walk.owed() >= 0, step.__name__
