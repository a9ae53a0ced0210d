"""Buyers, sellers, sheets and sweepers change the same products at once: no deadlock, and the ledger agrees."""

import operator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from random import Random
from typing import cast

import pytest
from sqlalchemy import select, true, update
from sqlalchemy.orm import Session

from tests.faults.forms import short_or_long
from tests.marketplace.shop import Shop
from tis.errors import Conflict, NotFound
from tis.marketplace.columns import now
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.versions import IfMatch
from tis.marketplace.orders.clock import OrderClock
from tis.marketplace.orders.drafting import draft_order
from tis.marketplace.orders.moving import move_order
from tis.marketplace.orders.schemas import OrderForm
from tis.marketplace.orders.states import OrderState
from tis.marketplace.products.service import change_product, delete_product, restore_product
from tis.marketplace.reviews.service import add_review, change_review
from tis.marketplace.search.query import PageRequest, ProductQuery
from tis.marketplace.sheets.importing import import_sheet
from tis.marketplace.sheets.rows import read_rows
from tis.marketplace.stock import ending, sales
from tis.marketplace.stock import service as stock
from tis.marketplace.suppliers.service import change_supplier, set_status
from tis.marketplace.tables import Order, OrderLine, Product, Reservation, Review, Supplier

pytestmark = pytest.mark.long

ANYBODY = Principal(is_open=True)
ADMIN = Principal(is_open=True, is_admin=True)
RULES = ServiceRules(
    max_reservations_per_account=10_000,
    max_reserved_units_per_product=10_000,
    max_open_orders_per_account=10_000,
    max_unsold_hold_minutes=0,
)
NUM_PEOPLE = 12
NUM_DEEDS = short_or_long(25, 600)


class Participant:
    def __init__(self, shop: Shop, supplier: int, goods: dict[str, int], user_id: int, seed: int) -> None:
        self.shop, self.supplier, self.goods, self.random = shop, supplier, goods, Random(seed)
        self.user = Principal(f"user:{user_id}", user_id)
        self.held: list[str] = []
        self.ordered: list[str] = []
        self.done: set[str] = set()

    def live(self) -> None:
        deeds = [
            self.hold,
            self.hold,
            self.hold,
            self.accept,
            self.refuse,
            self.review,
            self.sell,
            self.give_back,
            self.lose,
            self.sweep,
            self.count,
            self.send_a_sheet,
            self.move,
            self.suspend_and_open,
            self.close_and_open,
            self.order,
            self.order,
            self.move_an_order,
            self.move_an_order,
            self.let_the_clock_move,
        ]
        for _ in range(NUM_DEEDS):
            deed = self.random.choice(deeds)
            try:
                deed()
            except (Conflict, NotFound):
                continue  # too few, too late, or off the shelf: what buyers and sellers live with
            self.done.add(deed.__name__)

    def hold(self) -> None:
        product = self.random.choice(list(self.goods.values()))
        with self.shop.market.writing() as session:
            quantity = self.random.randint(1, 4)
            who = self.random.choice([ANYBODY, self.user])
            made = stock.reserve(session, who, self.shop.market.search, product, quantity, 600, RULES)
            name = made.id
        self.held.append(name)

    def one_held(self) -> str | None:
        return self.held.pop(self.random.randrange(len(self.held))) if self.held else None

    def accept(self) -> None:
        if self.held:
            with self.shop.market.writing() as session:
                sales.accept(session, ANYBODY, self.shop.market.search, self.held[-1], 600)

    def refuse(self) -> None:
        if name := self.one_held():
            with self.shop.market.writing() as session:
                sales.refuse(session, ANYBODY, self.shop.market.search, name)

    def review(self) -> None:
        product, values = self.random.choice(list(self.goods.values())), {"rating": self.random.randint(1, 5)}
        with self.shop.market.writing() as session:
            own = select(Review.id).where(Review.product_id == product, Review.user_id == self.user.user_id)
            if written := session.scalar(own):
                change_review(session, self.shop.market.search, self.user, written, values)
            else:
                add_review(session, self.shop.market.search, self.user, product, values)

    def sell(self) -> None:
        if name := self.one_held():
            with self.shop.market.writing() as session:
                stock.commit(session, ANYBODY, self.shop.market.search, name)

    def give_back(self) -> None:
        if name := self.one_held():
            with self.shop.market.writing() as session:
                stock.release(session, ANYBODY, self.shop.market.search, name)

    def order(self) -> None:
        """Of several goods, in any order."""
        goods = self.random.sample(list(self.goods.values()), 3)
        items = [{"product_id": product, "quantity": self.random.randint(1, 2)} for product in goods]
        form = OrderForm.model_validate({"items": items, "place": {"delivery": "pickup"}})
        with self.shop.market.writing() as session:
            self.ordered.append(draft_order(session, self.user, self.shop.market.search, form, RULES).id)

    def move_an_order(self) -> None:
        if not self.ordered:
            return
        name, seller = self.random.choice(self.ordered), Principal("user:0", is_admin=True)
        who, target = self.random.choice(
            [
                (seller, "accepted"),
                (seller, "handed_over"),
                (seller, "refused"),
                (self.user, "cancelled"),
                (self.user, "received"),
            ]
        )
        with self.shop.market.writing() as session:
            move_order(session, self.shop.market.search, who, name, cast(OrderState, target), RULES, reason="x")

    def let_the_clock_move(self) -> None:
        if self.ordered:
            with self.shop.market.writing() as session:
                past = now() - timedelta(seconds=1)
                is_timed = Order.id == self.ordered[-1], Order.due_at.is_not(None)
                session.execute(update(Order).where(*is_timed).values(due_at=past))
        market = self.shop.market
        OrderClock(market.reading, market.writing, market.search, RULES).move_some()

    def lose(self) -> None:
        if self.held:
            self.shop.make_due(self.held[-1])

    def sweep(self) -> None:
        with self.shop.market.writing() as session:
            ending.expire_due(session, self.shop.market.search, true(), skip_locked=True)

    def count(self) -> None:
        product = self.random.choice(list(self.goods.values()))
        with self.shop.market.writing() as session:
            values = {"stock_quantity": self.random.randint(5, 40)}
            change_product(session, self.shop.market.search, ANYBODY, product, values)

    def send_a_sheet(self) -> None:
        skus = self.random.sample(list(self.goods), 4)
        lines = "".join(f"{sku},{self.random.randint(5, 40)},{self.random.randint(1, 9)}\n" for sku in skus)
        sheet = read_rows(f"sku,stock_quantity,price\n{lines}".encode())
        with self.shop.market.writing() as session:
            import_sheet(session, ANYBODY, self.shop.market.search, self.supplier, sheet, partial=True)

    def move(self) -> None:
        with self.shop.market.writing() as session:
            changes = {"city": self.random.choice(["Bandung", "Bogor"]), "latitude": self.random.uniform(-8, -6)}
            change_supplier(session, ANYBODY, self.shop.market.search, self.supplier, changes, IfMatch())

    def suspend_and_open(self) -> None:
        for status in ("suspended", "active"):
            with self.shop.market.writing() as session:
                set_status(session, ADMIN, self.shop.market.search, self.supplier, status)

    def close_and_open(self) -> None:
        product = self.random.choice(list(self.goods.values()))
        for deed in (delete_product, restore_product):
            with self.shop.market.writing() as session:
                deed(session, self.shop.market.search, ANYBODY, product)


@pytest.mark.slow
def test_there_is_no_deadlock_and_the_ledger_agrees(shop: Shop) -> None:
    supplier = shop.id = shop.supplier()
    shop.takes_orders()
    goods = {f"S-{number}": shop.product(on_hand=20, sku=f"S-{number}", supplier_id=supplier) for number in range(6)}
    with shop.market.writing() as session:
        shop.market.search.rebuild(session)
    users = [shop.user() for _ in range(4)]
    people = [Participant(shop, supplier, goods, users[seed % len(users)], seed) for seed in range(NUM_PEOPLE)]
    with ThreadPoolExecutor(NUM_PEOPLE) as pool:
        for life in [pool.submit(person.live) for person in people]:
            life.result()
    kinds = {"hold", "sell", "give_back", "lose", "sweep", "count", "send_a_sheet", "move"}
    kinds |= {
        "order",
        "move_an_order",
        "let_the_clock_move",
        "accept",
        "refuse",
        "review",
        "suspend_and_open",
        "close_and_open",
    }
    assert set().union(*(person.done for person in people)) == kinds
    assert [shop.stock_columns(product) for product in goods.values()] == [
        shop.stock_ledger(one) for one in goods.values()
    ]
    with shop.market.reading() as session:
        sellable = {product for product in goods.values() if operator.gt(*shop.stock_columns(product))}
        [city] = session.scalars(select(Supplier.city).where(Supplier.id == supplier))
        found = shop.market.search.find(session, ProductQuery(city=city), PageRequest())
        assert {hit.product.id for hit in found.hits} == sellable, "what is searched is what is there"
        for product in goods.values():
            assert counters_of(session, product) == counted_reviews(session, product)


def counters_of(session: Session, product_id: int) -> tuple[int, ...]:
    product = session.get_one(Product, product_id)
    return product.rating_sum, product.rating_count, product.verified_sum, product.verified_count


def counted_reviews(session: Session, product_id: int) -> tuple[int, ...]:
    """As the sales and the reviews add up."""
    reviews = session.scalars(select(Review).where(Review.product_id == product_id)).all()
    sales_of = select(Reservation.actor).where(Reservation.product_id == product_id, Reservation.status == "committed")
    delivered = select(Order.buyer).join(OrderLine, OrderLine.order_id == Order.id)
    delivered = delivered.where(OrderLine.product_id == product_id, Order.state.in_(("handed_over", "received")))
    buyers = {*session.scalars(sales_of), *session.scalars(delivered)}
    bought = [review.rating for review in reviews if f"user:{review.user_id}" in buyers]
    return sum(review.rating for review in reviews), len(reviews), sum(bought), len(bought)
