"""Random operations in any order: the stock columns agree with the ledger and the reservations."""

from dataclasses import dataclass

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test
from sqlalchemy import true

from tests.faults.forms import short_or_long
from tests.marketplace.shop import Shop
from tis.errors import Conflict
from tis.marketplace.kit.principal import Principal
from tis.marketplace.products.service import change_product
from tis.marketplace.sheets.importing import import_sheet
from tis.marketplace.sheets.rows import read_rows
from tis.marketplace.stock import ending
from tis.marketplace.stock import service as stock

pytestmark = pytest.mark.long

ANYBODY = Principal(is_open=True)
MANY = settings(
    max_examples=short_or_long(12, 500),
    stateful_step_count=25,
)


@dataclass
class KnownReservation:
    """What a reader of the rules expects of one reservation."""

    quantity: int
    status: str = "held"
    ran_out: bool = False


class StockMachine(RuleBasedStateMachine):
    held = Bundle("held")
    shop: Shop  # set by the test, on its database

    def __init__(self) -> None:
        super().__init__()
        self.on_hand = 10
        self.supplier = self.shop.supplier()
        self.product = self.shop.product(on_hand=10, sku="A", supplier_id=self.supplier)
        self.known: dict[str, KnownReservation] = {}

    @property
    def reserved(self) -> int:
        return sum(one.quantity for one in self.known.values() if one.status == "held")

    def sweep(self) -> None:
        for one in self.known.values():
            if one.status == "held" and one.ran_out:
                one.status = "expired"

    @rule(target=held, quantity=st.integers(1, 8))
    def reserve(self, quantity: int) -> str:
        if self.on_hand - self.reserved < quantity:
            before = {name: one.status for name, one in self.known.items()}
            self.sweep()
        fits = self.on_hand - self.reserved >= quantity
        try:
            with self.shop.market.writing() as session:
                made = stock.reserve(session, ANYBODY, self.shop.market.search, self.product, quantity, 600)
                name, available = made.id, made.available_quantity
        except Conflict as refused:
            assert not fits and refused.message == f"Only {self.on_hand - self.reserved} left"
            # A refusal undoes the sweep, too.
            for name, status in before.items():
                self.known[name].status = status
            return "none"
        assert fits
        self.known[name] = KnownReservation(quantity)
        assert available == self.on_hand - self.reserved
        return name

    @rule(name=held)
    def let_run_out(self, name: str) -> None:
        if name in self.known:
            self.shop.make_due(name)
            self.known[name].ran_out = True

    @rule(name=held)
    def sell(self, name: str) -> None:
        if one := self.known.get(name):
            if one.status == "held":
                one.status = "expired" if one.ran_out else "committed"
                self.on_hand -= 0 if one.ran_out else one.quantity
            with self.shop.market.writing() as session:
                assert stock.commit(session, ANYBODY, self.shop.market.search, name).status == one.status

    @rule(name=held)
    def give_back(self, name: str) -> None:
        if one := self.known.get(name):
            if one.status == "held":
                one.status = "expired" if one.ran_out else "released"
            with self.shop.market.writing() as session:
                assert stock.release(session, ANYBODY, self.shop.market.search, name).status == one.status

    @rule(name=consumes(held))
    def forget(self, name: str) -> None:
        """So that others are chosen, too."""

    @rule()
    def sweep_all(self) -> None:
        self.sweep()
        with self.shop.market.writing() as session:
            ending.expire_due(session, self.shop.market.search, true())

    @rule(on_hand=st.integers(0, 20))
    def count(self, on_hand: int) -> None:
        fits = on_hand >= self.reserved
        try:
            with self.shop.market.writing() as session:
                values = {"stock_quantity": on_hand}
                change_product(session, self.shop.market.search, ANYBODY, self.product, values)
        except Conflict:
            assert not fits
        else:
            assert fits
            self.on_hand = on_hand

    @rule(on_hand=st.integers(0, 20))
    def send_a_sheet(self, on_hand: int) -> None:
        sheet = read_rows(f"sku,stock_quantity\nA,{on_hand}\n".encode())
        with self.shop.market.writing() as session:
            plan = import_sheet(session, ANYBODY, self.shop.market.search, self.supplier, sheet)
        assert bool(plan.problems) == (on_hand < self.reserved)
        if not plan.problems:
            self.on_hand = on_hand

    @invariant()
    def numbers_are_what_was_done(self) -> None:
        assert (
            self.shop.stock_columns(self.product)
            == self.shop.stock_ledger(self.product)
            == (self.on_hand, self.reserved)
        )


def test_random_operations_agree_with_a_model(shop: Shop) -> None:
    machine = type("StockMachine", (StockMachine,), {"shop": shop})
    run_state_machine_as_test(machine, settings=MANY)
