"""Random moves of units between buyers and the places of a shop: each place has what was brought there and not sold."""

from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy import true

from tests.faults.forms import short_or_long
from tests.marketplace.branches.places import add_branch, stock
from tests.marketplace.shop import Shop
from tis.errors import Conflict
from tis.marketplace.branches.schemas import TransferForm
from tis.marketplace.branches.service import transfer_units
from tis.marketplace.kit.branch_shares import PlaceWish
from tis.marketplace.kit.principal import Principal
from tis.marketplace.products.service import change_product, correct_stock
from tis.marketplace.stock import ending
from tis.marketplace.stock import service as reservations

pytestmark = pytest.mark.long

ANYBODY = Principal(is_open=True)
MANY = settings(max_examples=short_or_long(10, 300), stateful_step_count=30)
PLACES = st.integers(0, 2)
UNITS = st.integers(1, 5)


class PlacesMachine(RuleBasedStateMachine):
    """The model: units on hand by place, and what each hold has and where."""

    holds = Bundle("holds")
    shop: Shop  # set by the test, on its database

    def __init__(self) -> None:
        super().__init__()
        self.search = self.shop.market.search
        self.places = [0, add_branch(self.shop), add_branch(self.shop)]
        self.product = self.shop.product(on_hand=6)
        self.on_hand = Counter({0: 6})
        self.held: dict[str, tuple[int, int]] = {}
        self.due: set[str] = set()

    def available(self, place: int) -> int:
        return self.on_hand[place] - sum(units for at, units in self.held.values() if at == place)

    @rule(target=holds, at=st.none() | PLACES, units=UNITS)
    def hold(self, at: int | None, units: int) -> str:
        place = None if at is None else self.places[at]
        allowed = self.places if place is None else [place]
        before = dict(self.held)
        if not any(self.available(one) >= units for one in allowed):
            self.sweep_model()
        fits = [one for one in allowed if self.available(one) >= units]
        try:
            with self.shop.market.writing() as session:
                wish = PlaceWish(place)
                made = reservations.reserve(session, ANYBODY, self.search, self.product, units, 600, wish=wish)
        except Conflict:
            assert not fits
            self.held = before  # a refusal undoes the sweep, too
            return "none"
        assert made.branch_id in fits
        self.held[made.id] = made.branch_id, units
        return made.id

    @rule(name=holds)
    def let_run_out(self, name: str) -> None:
        if name in self.held:
            self.shop.make_due(name)
            self.due.add(name)

    @rule(name=holds, sells=st.booleans())
    def end(self, name: str, sells: bool) -> None:
        if name not in self.held:
            return
        place, units = self.held.pop(name)
        deed = reservations.commit if sells else reservations.release
        with self.shop.market.writing() as session:
            deed(session, ANYBODY, self.search, name)
        self.on_hand[place] -= units if sells and name not in self.due else 0

    @rule()
    def sweep(self) -> None:
        self.sweep_model()
        with self.shop.market.writing() as session:
            ending.expire_due(session, self.search, true())

    def sweep_model(self) -> None:
        self.held = {name: one for name, one in self.held.items() if name not in self.due}

    @rule(at=PLACES, delta=st.integers(-4, 4).filter(bool))
    def correct(self, at: int, delta: int) -> None:
        place = self.places[at]
        fits = self.available(place) + delta >= 0
        try:
            with self.shop.market.writing() as session:
                correct_stock(session, self.search, ANYBODY, self.product, delta, "counted", place)
        except Conflict:
            assert not fits
        else:
            assert fits
            self.on_hand[place] += delta

    @rule(source=PLACES, goal=PLACES, units=UNITS)
    def transfer(self, source: int, goal: int, units: int) -> None:
        if source == goal:
            return
        one, other = self.places[source], self.places[goal]
        fits = self.available(one) >= units
        form = TransferForm(quantity=units, from_branch_id=one, to_branch_id=other)
        try:
            with self.shop.market.writing() as session:
                transfer_units(session, ANYBODY, self.search, self.product, form)
        except Conflict:
            assert not fits
        else:
            assert fits
            self.on_hand[one] -= units
            self.on_hand[other] += units

    @rule(total=st.integers(0, 20))
    def set_the_total(self, total: int) -> None:
        own = total - sum(self.on_hand[one] for one in self.places[1:])
        fits = own >= self.on_hand[0] - self.available(0)
        try:
            with self.shop.market.writing() as session:
                change_product(session, self.search, ANYBODY, self.product, {"stock_quantity": total})
        except Conflict:
            assert not fits
        else:
            assert fits
            self.on_hand[0] = own

    @invariant()
    def every_place_has_what_was_brought_and_not_sold(self) -> None:
        counted = stock(self.shop, self.product)
        expected = {one: (self.on_hand[one], self.on_hand[one] - self.available(one)) for one in self.places}
        assert {one: counted.get(one, (0, 0)) for one in self.places} == expected


def test_random_moves_between_places_agree_with_a_model(shop: Shop) -> None:
    machine = type("PlacesMachine", (PlacesMachine,), {"shop": shop})
    run_state_machine_as_test(machine, settings=MANY)
