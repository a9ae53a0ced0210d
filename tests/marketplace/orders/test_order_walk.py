"""Random walks of orders, by buyers, shops, a rival, a thief, the clock and rollbacks, against a plain model."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from tests.faults.forms import short_or_long
from tests.marketplace.shop import Shop
from tis.errors import Conflict, Forbidden, NotFound, Unprocessable
from tis.marketplace.columns import now
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.versions import IfMatch
from tis.marketplace.orders.clock import OrderClock
from tis.marketplace.orders.drafting import draft_order, place_order
from tis.marketplace.orders.money import included_tax
from tis.marketplace.orders.moving import mark_paid, move_order
from tis.marketplace.orders.reading import describe, find_order, list_for_shop, list_own
from tis.marketplace.orders.schemas import LineQuantity, OrderForm, PlacingForm, ReturnedLine
from tis.marketplace.orders.shop_moves import accept_order, return_goods
from tis.marketplace.orders.states import HOLDS_UNITS, MOVES, OrderState
from tis.marketplace.stock.holding import hold_units
from tis.marketplace.tables import Order, OrderLine, OrderMove, StockMovement

MAX_UNPAID = 12
RULES = ServiceRules(
    max_open_orders_per_account=10_000,
    max_reservations_per_account=10_000,
    max_reserved_units_per_product=MAX_UNPAID,
    max_unsold_hold_minutes=0,
)
BOUGHT_IN = 40
TAX_RATE = 1100
ANY_VERSION = IfMatch()
WALKS = settings(max_examples=short_or_long(6, 250), stateful_step_count=short_or_long(30, 45), deadline=None)


class PowerCut(Exception):
    """Between the work of a transaction and its commit."""


@dataclass
class ModelOrder:
    """What a reader of the rules expects of an order."""

    buyer: str
    units: Counter[int]
    prices: dict[int, int]
    state: str = "draft"
    prepaid: bool = False
    was_placed: bool = False
    is_paid: bool = False
    is_due: bool = False
    is_late: bool = False
    refund: int = 0
    history: list[str] = field(default_factory=lambda: ["draft"])

    @property
    def holds(self) -> bool:
        return self.state in HOLDS_UNITS

    @property
    def total(self) -> int:
        return sum(self.prices[product] * number for product, number in self.units.items())

    def become(self, state: str) -> None:
        self.state = state
        self.is_due = False
        self.is_late = False
        self.history.append(state)


class OrderWalk(RuleBasedStateMachine):
    orders = Bundle("orders")
    shop: Shop  # set by the test, on its database

    def __init__(self) -> None:
        super().__init__()
        shop = self.shop
        shop.id = shop.supplier()
        shop.takes_orders(tax_rate=TAX_RATE)
        self.search = shop.market.search
        self.prices = {shop.product(on_hand=BOUGHT_IN, price=price): price for price in (999, 12_345)}
        self.users = [shop.user() for _ in range(3)]
        self.people = {f"user:{one}": Principal(f"user:{one}", one) for one in self.users}
        *self.buyers, self.thief = self.people
        rival = shop.supplier()
        self.people["rival"] = Principal(f"supplier:{rival}", supplier_ids=frozenset([rival]))
        self.people["shop"] = Principal(f"supplier:{shop.id}", supplier_ids=frozenset([shop.id]))
        self.known: dict[str, ModelOrder] = {}
        self.sold: Counter[int] = Counter()

    @contextmanager
    def transaction(self, *, cut: bool = False) -> Iterator[Session]:
        try:
            with self.shop.market.writing() as session:
                yield session
                session.flush()
                if cut:
                    raise PowerCut
        except PowerCut:
            pass

    @rule(
        target=orders,
        who=st.integers(0, 1),
        first=st.integers(0, 6),
        second=st.integers(0, 6),
        held=st.booleans(),
        cut=st.booleans(),
    )
    def draft(self, who: int, first: int, second: int, *, held: bool, cut: bool) -> Any:
        buyer, wanted = self.buyers[who], dict(zip(self.prices, (first, second), strict=True))
        wanted = {product: number for product, number in wanted.items() if number}
        if not wanted:
            return multiple()
        fits = all(number <= self.left(product) for product, number in wanted.items())
        # Of goods that are not held yet; holds are counted when they are made.
        fits = fits and (
            held or all(number + self.unpaid(buyer, product) <= MAX_UNPAID for product, number in wanted.items())
        )
        cut = cut and first == 1
        try:
            with self.transaction(cut=cut) as session:
                form: dict[str, Any] = {
                    "items": [{"product_id": one, "quantity": number} for one, number in wanted.items()]
                }
                if held:
                    made = hold_units(session, self.people[buyer], self.search, wanted, 600)
                    form = {"reservations": [one.id for one in made]}
                order = draft_order(session, self.people[buyer], self.search, OrderForm.model_validate(form), RULES)
                name = order.id
        except Conflict as refused:
            assert not fits, refused.message
            return multiple()
        assert fits
        if cut:
            return multiple()
        self.known[name] = ModelOrder(buyer, Counter(wanted), {one: self.prices[one] for one in wanted})
        return name

    @rule(name=orders, who=st.integers(0, 4), cut=st.integers(0, 5))
    def place(self, name: str, who: int, cut: int) -> None:
        form = PlacingForm(delivery="pickup", payment_method="cash")
        self.walk(
            name, who, "placed", lambda session, by: place_order(session, by, self.search, name, form, RULES), cut=cut
        )

    @rule(name=orders)
    def will_pay_before(self, name: str) -> None:
        """As if the shop took transfers."""
        one = self.known[name]
        if one.state == "placed" and not one.is_due:
            with self.shop.market.writing() as session:
                session.execute(update(Order).where(Order.id == name).values(payment_method="transfer"))
            one.prepaid = True

    @rule(name=orders, who=st.integers(0, 4), less=st.integers(0, 3), cut=st.integers(0, 5))
    def accept(self, name: str, who: int, less: int, cut: int) -> None:
        one = self.known[name]
        with self.shop.market.reading() as session:
            lines = session.scalars(
                select(OrderLine).where(OrderLine.order_id == name).order_by(OrderLine.position)
            ).all()
        given = [LineQuantity(position=line.position, quantity=max(0, line.ordered - less)) for line in lines]
        if not any(line.quantity for line in given):
            return
        units = Counter({line.product_id: part.quantity for line, part in zip(lines, given, strict=True)})

        def accepted(session: Session, by: Principal) -> Order:
            return accept_order(session, by, self.search, name, given, RULES, ANY_VERSION)

        if self.walk(name, who, "accepted", accepted, cut=cut):
            one.units = units

    @rule(
        name=orders,
        who=st.integers(0, 4),
        becomes=st.sampled_from(
            ["refused", "cancelled", "paid", "handed_over", "shipped", "received", "expired", "draft"]
        ),
        cut=st.integers(0, 5),
    )
    def move(self, name: str, who: int, becomes: OrderState, cut: int) -> None:
        def moved(session: Session, by: Principal) -> Order:
            return move_order(session, self.search, by, name, becomes, RULES, reason="Alasan")

        self.walk(name, who, becomes, moved, cut=cut)

    @rule(name=orders)
    def money_comes(self, name: str) -> None:
        one = self.known[name]
        with self.shop.market.writing() as session:
            state = mark_paid(session, self.search, name, RULES)
        self.let_clock_move(one)
        if one.state == "accepted" and one.prepaid:
            one.become("paid")
            one.is_paid = True
        assert state == one.state

    @rule(name=orders, who=st.integers(0, 4), restock=st.booleans(), number=st.integers(1, 3), cut=st.integers(0, 5))
    def bring_back(self, name: str, who: int, number: int, cut: int, *, restock: bool) -> None:
        one = self.known[name]
        product, units = next(((product, units) for product, units in sorted(one.units.items()) if units), (0, 0))
        number = min(number, units)
        if not number:
            return
        with self.shop.market.reading() as session:
            of_product = OrderLine.order_id == name, OrderLine.product_id == product
            position = session.scalars(select(OrderLine.position).where(*of_product)).one()
        lines = [ReturnedLine(position=position, quantity=number, restock=restock)]

        def returned(session: Session, by: Principal) -> Order:
            return return_goods(session, by, self.search, name, lines, "Rusak", RULES, ANY_VERSION)

        if self.walk(name, who, "returned", returned, cut=cut):
            one.refund = number * self.prices[product]
            if restock:
                self.sold[product] -= number

    @rule(name=orders)
    def let_time_pass(self, name: str) -> None:
        one = self.known[name]
        with self.shop.market.writing() as session:
            is_timed = Order.id == name, Order.due_at.is_not(None)
            past = now() - timedelta(seconds=1)
            session.execute(update(Order).where(*is_timed).values(due_at=past))
        one.is_due = one.state in ("draft", "placed", "accepted", "handed_over", "shipped")
        one.is_late = one.state == "paid"

    @rule()
    def sweep(self) -> None:
        market = self.shop.market
        OrderClock(market.reading, market.writing, self.search, RULES).move_some()
        for one in self.known.values():
            self.let_clock_move(one)

    @rule(name=orders, who=st.integers(0, 4))
    def look(self, name: str, who: int) -> None:
        """Only the buyer, and the shop once it was placed."""
        one, by = self.known[name], list(self.people.values())[who]
        sees = by.account == one.buyer or (by is self.people["shop"] and one.was_placed)
        with self.shop.market.reading() as session:
            listed = list_own(session, by, None, None, 100)[0]
            assert {order.id for order in listed} == {
                known for known, other in self.known.items() if other.buyer == by.account
            }
            if by is self.people["shop"]:
                shown, _ = list_for_shop(session, by, self.shop.id, None, None, 100)
                assert {order.id for order in shown} == {key for key, other in self.known.items() if other.was_placed}
            try:
                view = describe(session, by, find_order(session, by, name))
            except NotFound:
                assert not sees
                return
        assert sees
        assert view.state == self.state_now(one)
        assert view.total == one.total and view.refund_due == one.refund

    def walk(self, name: str, who: int, target: str, deed: Any, *, cut: int) -> bool:
        """Whether the order was moved, and the model with it."""
        one, by = self.known[name], list(self.people.values())[who]
        movers = {"buyer"} if by.account == one.buyer else set()
        movers |= {"shop"} if by is self.people["shop"] and one.was_placed else set()
        state = self.state_now(one)
        paid = "prepaid" if one.prepaid else "cash"
        fits = any(
            (move.source, move.target) == (state, target)
            and movers & move.movers
            and move.only in (None, paid, "late" if one.is_late else None)
            for move in MOVES
        )
        try:
            with self.transaction(cut=cut == 0) as session:
                before = session.scalars(select(func.max(OrderMove.number)).where(OrderMove.order_id == name)).one()
                after = deed(session, by)
                assert after.state == target
                is_new = (after.version > before) and state != target
        except NotFound:
            assert not movers
            return False
        except (Conflict, Forbidden, Unprocessable):
            assert movers and not fits
            return False
        assert movers
        if cut == 0:
            return False
        self.let_clock_move(one)
        if not is_new:
            assert one.state == target
            return False
        assert fits
        if target == "placed":
            one.was_placed = True
        if target == "cancelled" and one.is_paid:
            one.refund = one.total
        if target == "paid" or (target == "handed_over" and not one.prepaid):
            one.is_paid = True
        if target in ("handed_over", "shipped"):
            self.sold.update(one.units)
        one.become(target)
        return True

    def let_clock_move(self, one: ModelOrder) -> None:
        if one.is_due:
            one.become(self.state_now(one))

    def state_now(self, one: ModelOrder) -> str:
        if not one.is_due:
            return one.state
        return "received" if one.state in ("handed_over", "shipped") else "expired"

    def left(self, product: int) -> int:
        return BOUGHT_IN - self.sold[product] - self.held_of(product)

    def held_of(self, product: int) -> int:
        return sum(one.units[product] for one in self.known.values() if one.holds)

    def unpaid(self, buyer: str, product: int) -> int:
        """What counts in the caps of the buyer."""
        states = ("draft", "placed", "accepted")
        own = (one for one in self.known.values() if one.buyer == buyer and one.state in states and not one.is_due)
        return sum(one.units[product] for one in own)

    @invariant()
    def stock_adds_up(self) -> None:
        for product in self.prices:
            on_hand, reserved = self.shop.stock_columns(product)
            assert (on_hand, reserved) == self.shop.stock_ledger(product)
            assert reserved == self.held_of(product)
            assert on_hand == BOUGHT_IN - self.sold[product]

    @invariant()
    def money_adds_up_and_nothing_goes_back(self) -> None:
        with self.shop.market.reading() as session:
            for name, one in self.known.items():
                order = session.get_one(Order, name)
                lines = session.scalars(select(OrderLine).where(OrderLine.order_id == name)).all()
                assert order.total == sum(line.quantity * line.unit_price for line in lines) + order.delivery_fee
                assert order.total == one.total and order.refund_due == one.refund <= order.total
                assert order.tax_included == included_tax(order.total, TAX_RATE)
                assert (order.paid_at is not None) == one.is_paid
                steps = select(OrderMove.state).where(OrderMove.order_id == name).order_by(OrderMove.number)
                history = list(session.scalars(steps))
                assert history == one.history and order.state == one.state
                assert all((first, second) in ALLOWED for first, second in zip(history, history[1:], strict=False))

    @invariant()
    def the_ledger_names_what_was_sold(self) -> None:
        with self.shop.market.reading() as session:
            for product in self.prices:
                sums = select(func.coalesce(func.sum(StockMovement.delta), 0)).where(
                    StockMovement.product_id == product, StockMovement.kind.in_(("sold", "returned"))
                )
                assert session.scalar(sums) == -self.sold[product]


ALLOWED = {(move.source, move.target) for move in MOVES}


@pytest.mark.parametrize("total", [0, 1, 111, 10**13])
@pytest.mark.parametrize("rate", [0, 1, 1100, 10_000])
def test_the_tax_of_a_price_is_rounded_half_up(total: int, rate: int) -> None:
    tax = included_tax(total, rate)
    assert abs(tax * (10_000 + rate) - total * rate) * 2 <= 10_000 + rate and 0 <= tax <= total


def test_random_walks_agree_with_a_model(shop: Shop) -> None:
    machine = type("OrderWalk", (OrderWalk,), {"shop": shop})
    run_state_machine_as_test(machine, settings=WALKS)
