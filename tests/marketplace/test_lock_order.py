"""Every transaction locks the tables in one order, so that no two of them wait for each other."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy import event, true, update
from sqlalchemy.orm import Session
from sqlalchemy.pool import Pool

from tests.marketplace.branches.places import add_branch
from tests.marketplace.conftest import SECRET
from tests.marketplace.postgres import Postgres
from tests.marketplace.shop import Shop
from tis.database.database import Database
from tis.marketplace.alerts.product_alerts import add_alert
from tis.marketplace.alerts.saved_searches import save_search
from tis.marketplace.alerts.schemas import AlertForm, SavedSearchForm
from tis.marketplace.alerts.watch import Watch
from tis.marketplace.branches.schemas import TransferForm
from tis.marketplace.branches.service import change_branch, transfer_units
from tis.marketplace.columns import now
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit.branch_shares import PlaceWish
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.versions import IfMatch
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.orders.drafting import draft_order, place_order
from tis.marketplace.orders.moving import move_order
from tis.marketplace.orders.schemas import LineQuantity, OrderForm, PlacingForm, ReturnedLine
from tis.marketplace.orders.shop_moves import accept_order, return_goods
from tis.marketplace.payment_providers.provider import PaymentStanding
from tis.marketplace.payments.truth import apply_standing
from tis.marketplace.products.service import (
    change_product,
    correct_stock,
    create_product,
    delete_product,
    restore_product,
)
from tis.marketplace.promotions.schemas import PromotionForm
from tis.marketplace.promotions.service import add_promotion, stop_promotion
from tis.marketplace.reviews.service import add_review, change_review
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.sheets.importing import import_sheet
from tis.marketplace.sheets.rows import read_rows
from tis.marketplace.stock import ending, sales
from tis.marketplace.stock import service as stock
from tis.marketplace.suppliers.deletion import close_or_delete_supplier
from tis.marketplace.suppliers.service import change_supplier, restore_supplier, set_status
from tis.marketplace.tables import Order, Payment, Promotion, Reservation, SupplierMember
from tis.marketplace.users.service import delete_user
from tis.marketplace.variants import service as variants_service
from tis.marketplace.variants.schemas import GroupChange, NewGroup, NewVariant

pytestmark = pytest.mark.slow

ORDER = [
    "suppliers",
    "users",
    "stock_reservations",
    "orders",
    "reviews",
    "branches",
    "products",
]  # promotions are written under the lock of their product
ORDER += [
    "product_groups",
    "product_search",
    "product_words",
    "product_attributes",
    "goods_places",
    "lexicon",
    "supplier_words",
    "supplier_hours",
    "supplier_search",
    "product_alerts",
    "saved_searches",
    "search_finds",
    "feed_changes",
    "notice_counters",
    "notices",
]
_PRODUCTS = ORDER.index("products")
_ALL_ADMINS = "users.role = "  # who changes admins locks all of them, before any other row
ANYBODY = Principal(is_open=True)
_HOUR = timedelta(hours=1)
ADMIN = Principal(account="user:0", is_admin=True)
_CHANGED = re.compile(r"\b(?:UPDATE|DELETE FROM) (\w+)")
_UPSERTED = re.compile(r"INSERT INTO (\w+) .*ON CONFLICT", re.DOTALL)
_LOCKED = re.compile(r"FROM (\w+).*? FOR (?:UPDATE|NO KEY UPDATE|SHARE|KEY SHARE)(?: OF (\w+))?", re.DOTALL)


def locked_tables(statement: str) -> list[str]:
    """Tables of which the statement locks rows that were there before."""
    if "SKIP LOCKED" in statement:
        return []  # waits for nobody
    if _ALL_ADMINS in statement and " FOR " in statement:
        return []
    locked = [one[2] or one[1] for one in _LOCKED.finditer(statement)]
    for pattern in (_CHANGED, _UPSERTED):
        locked += [one[1] for one in pattern.finditer(statement)]
    return [table for table in locked if table in ORDER]


def out_of_order(statements: list[str]) -> list[str]:
    """Statements that lock a table after one that comes later in `ORDER`."""
    found, last = [], 0
    for statement in statements:
        ranks = [ORDER.index(table) for table in locked_tables(statement)]
        # The products of a group are locked before it, and written behind it.
        if set(ranks) == {_PRODUCTS} and last == _PRODUCTS + 1:
            continue
        # The row of an account that was locked at the beginning is written at the end.
        if ranks and min(ranks) < last and not statement.startswith(("UPDATE suppliers", "UPDATE users")):
            found.append(statement)
        last = max([last, *ranks])
    return found


@contextmanager
def recorded_statements() -> Iterator[list[str]]:
    statements: list[str] = []

    class RecordingCursor(psycopg.Cursor[Any]):
        def execute(self, query: Any, *values: Any, **options: Any) -> Any:
            statements.append(str(query))
            return super().execute(query, *values, **options)

        def executemany(self, query: Any, *values: Any, **options: Any) -> Any:
            statements.append(str(query))
            return super().executemany(query, *values, **options)

    def record(connection: Any, *_: object) -> None:
        connection.cursor_factory = RecordingCursor

    event.listen(Pool, "checkout", record)
    try:
        yield statements
    finally:
        event.remove(Pool, "checkout", record)


@pytest.fixture(scope="module")
def market(postgres: Postgres) -> Iterator[Market]:
    market = Market(Database(postgres.new_market("lock_order")), MarketRules(jwt_secret=SECRET))
    yield market
    market.close()


class Deeds:
    """Each works on a shop of its own with three products, all of whose units are held; the third is in a group."""

    def __init__(self, market: Market) -> None:
        self.shop, self.search = Shop(market), market.search
        self.first, self.second, self.third = (self.shop.product(on_hand=1, sku=sku) for sku in "ABD")
        stall = Shop(market)
        stall.takes_orders()
        self.stall = Principal(f"supplier:{stall.id}", owned_ids=frozenset([stall.id]))
        goods = [stall.product(on_hand=1) for _ in range(8)]
        self.to_hold, *self.to_order = (stall.product(on_hand=1) for _ in range(3))
        self.fourth = self.shop.product(on_hand=1)
        self.branch, self.other_branch = add_branch(self.shop), add_branch(self.shop)
        self.stall_branch, self.spread = add_branch(stall), self.shop.product(on_hand=0)
        self.owner = Principal(f"user:{(owner := self.shop.user())}", user_id=owner)
        with market.writing() as session:
            session.add(SupplierMember(supplier_id=self.shop.id, user_id=owner, role="owner"))
            self.search.rebuild(session)
            correct_stock(session, self.search, ANYBODY, self.spread, 1, "came", self.branch)
            variants = [NewVariant(product_id=one, values={"size": str(one)}) for one in (self.fourth, self.third)]
            form = NewGroup(name="Laptop", axes=["size"], variants=variants)
            self.group = variants_service.create_group(session, self.search, ANYBODY, self.shop.id, form).id
            self.reviewer = Principal(f"user:{(reviewer := self.shop.user())}", user_id=reviewer)
            review, _ = add_review(session, self.search, self.reviewer, self.third, {"rating": 5})
            self.reviewed = review.id
            self.promoted = self._with_a_promotion_that_is_due(session)
            self.bought = stock.reserve(session, self.reviewer, self.search, self.third, 1, 600).id
            self.reserved = stock.reserve(session, self.reviewer, self.search, self.to_hold, 1, 600).id
            self.orders = {
                state: self._order(session, goods[2 * at : 2 * at + 2], state)
                for at, state in enumerate(("draft", "placed", "accepted", "shipped"))
            }
            session.get_one(Order, self.orders["shipped"]).branch_id = self.stall_branch
            for product in goods:
                add_review(session, self.search, self.reviewer, product, {"rating": 4})
            self.held = [
                stock.reserve(session, Principal(account, is_open=True), self.search, product, 1, 600).id
                for account, product in ((self.owner.account, self.first), (f"supplier:{self.shop.id}", self.second))
            ]

    def _order(self, session: Session, goods: list[int], state: str) -> str:
        form = OrderForm.model_validate({"items": [{"product_id": product, "quantity": 1} for product in goods]})
        order = draft_order(session, self.reviewer, self.search, form, ServiceRules())
        order.state, order.placed_at = state, now()
        return order.id

    def order_goods_and_holds(self, session: Session) -> None:
        items = [{"product_id": product, "quantity": 1} for product in self.to_order]
        form = {"reservations": [self.reserved], "items": items, "place": {"delivery": "pickup"}}
        draft_order(session, self.reviewer, self.search, OrderForm.model_validate(form), ServiceRules())

    def place_an_order(self, session: Session) -> None:
        place_order(session, self.reviewer, self.search, self.orders["draft"], PlacingForm(), ServiceRules())

    def accept_a_part(self, session: Session) -> None:
        given = [LineQuantity(position=1, quantity=0)]
        accept_order(session, ADMIN, self.search, self.orders["placed"], given, ServiceRules(), IfMatch())

    def cancel_an_order(self, session: Session) -> None:
        move_order(session, self.search, self.reviewer, self.orders["placed"], "cancelled")

    def sell_an_order_to_a_reviewer(self, session: Session) -> None:
        move_order(session, self.search, ADMIN, self.orders["accepted"], "handed_over")

    def take_money_by_a_provider(self, session: Session) -> None:
        order = session.get_one(Order, self.orders["accepted"])
        order.payment_method = "provider"
        of_shop = {"order_id": order.id, "supplier_id": order.supplier_id, "provider": "xendit"}
        later = now() + timedelta(hours=1)
        session.add(Payment(id=order.id, **of_shop, environment="sandbox", amount=order.total, expires_at=later))
        session.flush()
        apply_standing(session, self.search, order.id, PaymentStanding("paid", order.total), ServiceRules())
        assert order.state == "paid"

    def receive_an_order(self, session: Session) -> None:
        move_order(session, self.search, self.reviewer, self.orders["shipped"], "received")

    def take_an_order_back(self, session: Session) -> None:
        lines = [ReturnedLine(position=number, quantity=1) for number in (1, 2)]
        return_goods(session, ADMIN, self.search, self.orders["shipped"], lines, "Rusak", ServiceRules(), IfMatch())

    def delete_a_shop_with_orders(self, session: Session) -> None:
        close_or_delete_supplier(session, self.stall, self.search, min(self.stall.owned_ids))

    def delete_a_buyer(self, session: Session) -> None:
        delete_user(session, self.reviewer, self.search)

    def _with_a_promotion_that_is_due(self, session: Session) -> int:
        values = {"name": "Lampu", "price": 9_000_000, "stock_quantity": 1, "category": "lamp", "sku": "P"}
        product = create_product(session, self.search, ANYBODY, self.shop.id, values).id
        form = PromotionForm(price=1_000_000, begins_at=now() + _HOUR, ends_at=now() + 2 * _HOUR)
        self.promotion = add_promotion(session, self.search, ANYBODY, product, form).id
        begun = update(Promotion).where(Promotion.id == self.promotion).values(begins_at=now() - _HOUR)
        session.execute(begun)
        return product

    def sell(self, session: Session) -> None:
        stock.commit(session, ANYBODY, self.search, self.held[0])

    def accept(self, session: Session) -> None:
        sales.accept(session, ANYBODY, self.search, self.held[0], 600)

    def refuse(self, session: Session) -> None:
        sales.refuse(session, ANYBODY, self.search, self.held[0])

    def release(self, session: Session) -> None:
        stock.release(session, ANYBODY, self.search, self.held[0])

    def expire(self, session: Session) -> None:
        past = now() - timedelta(seconds=1)
        for name in self.held:
            session.get_one(Reservation, name).expires_at = past
        ending.expire_due(session, self.search, true())

    def hold_the_last(self, session: Session) -> None:
        product = self.shop.product(on_hand=1)
        stock.reserve(session, ANYBODY, self.search, product, 1, 600)

    def create(self, session: Session) -> None:
        values = {"name": "Kipas", "price": 1, "stock_quantity": 1, "category": "fan"}
        create_product(session, self.search, ANYBODY, self.shop.id, values)

    def change(self, session: Session) -> None:
        change_product(session, self.search, ANYBODY, self.first, {"name": "Laptop baru", "stock_quantity": 9})

    def delete(self, session: Session) -> None:
        delete_product(session, self.search, ANYBODY, self.first)

    def promote(self, session: Session) -> None:
        add_promotion(session, self.search, ANYBODY, self.first, PromotionForm(price=1, ends_at=now() + _HOUR))

    def hold_when_a_promotion_is_due(self, session: Session) -> None:
        stock.reserve(session, ANYBODY, self.search, self.promoted, 1, 600)

    def change_when_a_promotion_is_due(self, session: Session) -> None:
        change_product(session, self.search, ANYBODY, self.promoted, {"price": 8_000_000})

    def delete_when_a_promotion_is_due(self, session: Session) -> None:
        delete_product(session, self.search, ANYBODY, self.promoted)

    def end_a_promotion(self, session: Session) -> None:
        stop_promotion(session, self.search, ANYBODY, self.promotion)

    def ask_to_be_told(self, session: Session) -> None:
        add_alert(session, self.reviewer, self.third, AlertForm(kind="fall"), ServiceRules())

    def send_a_sheet(self, session: Session) -> None:
        sheet = read_rows(b"sku,name,price,stock_quantity,category\nA,Meja,5,9,x\nB,Kursi,5,9,x\nC,Baru,5,9,x\n")
        import_sheet(session, ANYBODY, self.search, self.shop.id, sheet)

    def review(self, session: Session) -> None:
        add_review(session, self.search, self.reviewer, self.first, {"rating": 5})

    def change_a_review(self, session: Session) -> None:
        change_review(session, self.search, self.reviewer, self.reviewed, {"rating": 1})

    def sell_to_a_reviewer(self, session: Session) -> None:
        stock.commit(session, ANYBODY, self.search, self.bought)

    def make_a_group(self, session: Session) -> None:
        variants = [NewVariant(product_id=one, values={"size": str(one)}) for one in (self.second, self.first)]
        form = NewGroup(name="Meja", axes=["size"], variants=variants)
        variants_service.create_group(session, self.search, ANYBODY, self.shop.id, form)

    def add_a_variant(self, session: Session) -> None:
        new = NewVariant(product_id=self.first, values={"size": "1"})
        variants_service.add_variant(session, self.search, ANYBODY, self.group, new)

    def remove_a_variant(self, session: Session) -> None:
        variants_service.remove_variant(session, self.search, ANYBODY, self.group, self.third)

    def delete_a_variant(self, session: Session) -> None:
        delete_product(session, self.search, ANYBODY, self.third)

    def change_the_axes(self, session: Session) -> None:
        change = GroupChange.model_validate({"axes": [{"name": "number", "was": "size"}]})
        variants_service.change_group(session, self.search, ANYBODY, self.group, change, IfMatch())

    def dissolve_a_group(self, session: Session) -> None:
        variants_service.dissolve(session, self.search, ANYBODY, self.group)

    def send_a_sheet_of_variants(self, session: Session) -> None:
        sheet = read_rows(b"sku,variant_group,variant_values\nA,Laptop,size: 1\nB,Meja,size: 2\nD,,\n")
        import_sheet(session, ANYBODY, self.search, self.shop.id, sheet)

    def move_units(self, session: Session) -> None:
        form = TransferForm(quantity=1, from_branch_id=self.branch, to_branch_id=self.other_branch)
        transfer_units(session, ANYBODY, self.search, self.spread, form)

    def count_at_a_branch(self, session: Session) -> None:
        correct_stock(session, self.search, ANYBODY, self.spread, 1, "found", self.other_branch)

    def hold_at_a_branch(self, session: Session) -> None:
        stock.reserve(session, ANYBODY, self.search, self.spread, 1, 600, wish=PlaceWish(self.branch))

    def move_a_branch(self, session: Session) -> None:
        changes = {"latitude": -7.8, "longitude": 110.4}
        change_branch(session, ANYBODY, self.search, self.shop.id, self.branch, changes, IfMatch())

    def close_a_branch(self, session: Session) -> None:
        changes = {"is_active": False}
        change_branch(session, ANYBODY, self.search, self.shop.id, self.other_branch, changes, IfMatch())

    def move(self, session: Session) -> None:
        changes = {"city": "Bandung", "latitude": -6.9, "longitude": 107.6}
        change_supplier(session, ANYBODY, self.search, self.shop.id, changes, IfMatch())

    def rename(self, session: Session) -> None:
        changes = {"business_name": "Toko baru", "city": "Bandung", "longitude": 120.0, "latitude": -6.9}
        change_supplier(session, ANYBODY, self.search, self.shop.id, changes, IfMatch())

    def suspend(self, session: Session) -> None:
        set_status(session, ADMIN, self.search, self.shop.id, "suspended")

    def close(self, session: Session) -> None:
        close_or_delete_supplier(session, ANYBODY, self.search, self.shop.id)

    def delete_the_owner(self, session: Session) -> None:
        delete_user(session, self.owner, self.search)


DEEDS: list[Callable[[Deeds, Session], None]] = [
    deed for name, deed in vars(Deeds).items() if callable(deed) and not name.startswith("_")
]


@pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.__name__)
def test_a_transaction_locks_the_tables_in_one_order(market: Market, deed: Callable[[Deeds, Session], None]) -> None:
    deeds = Deeds(market)
    with recorded_statements() as statements, market.writing() as session:
        deed(deeds, session)
        session.flush()
    assert any(locked_tables(statement) for statement in statements)
    assert out_of_order(statements) == []


def test_restoring_locks_the_tables_in_the_same_order(market: Market) -> None:
    deeds = Deeds(market)
    with market.writing() as session:
        delete_product(session, market.search, ANYBODY, deeds.first)
        deeds.close(session)
    with recorded_statements() as statements:
        with market.writing() as session:
            restore_supplier(session, ANYBODY, market.search, deeds.shop.id)
        assert statements and out_of_order(statements) == []
        statements.clear()
        with market.writing() as session:
            restore_product(session, market.search, ANYBODY, deeds.first)
    assert any("suppliers" in locked_tables(one) for one in statements) and out_of_order(statements) == []


def test_the_watch_locks_the_tables_in_the_same_order(market: Market) -> None:
    deeds, watch = Deeds(market), Watch(market.reading, market.writing, market.search)
    with market.writing() as session:
        found = ProductQuery(supplier_id=deeds.shop.id)
        save_search(session, deeds.reviewer, found, [], SavedSearchForm(name="Mine"), ServiceRules())
        deeds.ask_to_be_told(session)
    while watch.step():  # what other tests have changed
        pass
    with market.writing() as session:
        change_product(session, market.search, ANYBODY, deeds.third, {"price": 5, "stock_quantity": 9})
        deeds.create(session)
    for step in (watch._look, watch._tell_finds):
        with recorded_statements() as statements:
            step()
        assert any("notice_counters" in locked_tables(one) for one in statements)
        assert out_of_order(statements) == []


def test_the_order_is_checked() -> None:
    locks = ["SELECT id FROM products WHERE id = 1 FOR UPDATE", "UPDATE stock_reservations SET status = 1"]
    assert out_of_order(locks) == locks[1:] and out_of_order(locks[::-1]) == []
    assert locked_tables("SELECT a FROM products JOIN suppliers ON 1 FOR NO KEY UPDATE OF products") == ["products"]
