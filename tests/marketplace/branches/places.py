"""A shop with places beside its own address, and what lies at each by the counters and by the ledger."""

from typing import Any

import httpx2
from sqlalchemy import func, select

from tests.marketplace.shop import Shop
from tis.marketplace.kit.branch_shares import shares_of
from tis.marketplace.orders.states import HOLDS_UNITS
from tis.marketplace.tables import Branch, Order, OrderLine, Reservation, StockMovement

NEW_BRANCH = {"name": "Toko Kemang", "city": "Bandung", "latitude": -6.9, "longitude": 107.6, "shows_place": True}
Counted = dict[int, tuple[int, int]]  # by place: on hand, reserved


def add_branch(shop: Shop, **values: Any) -> int:
    with shop.market.writing() as session:
        branch = Branch(**{"supplier_id": shop.id, **NEW_BRANCH, **values})
        session.add(branch)
        session.flush()
        return branch.id


def by_counters(shop: Shop, product_id: int) -> Counted:
    with shop.market.reading() as session:
        shares = shares_of(session, [product_id])[product_id]
        return {share.branch_id: (share.on_hand, share.reserved) for share in shares}


def by_ledger(shop: Shop, product_id: int) -> Counted:
    """As movements, held reservations and the lines of orders add up at each place."""
    with shop.market.reading() as session:
        moved = select(StockMovement.branch_id, func.sum(StockMovement.delta))
        on_hand = dict(_pairs(session, moved.where(StockMovement.product_id == product_id), StockMovement.branch_id))
        held = select(Reservation.branch_id, func.sum(Reservation.quantity))
        is_held = Reservation.product_id == product_id, Reservation.status == "held"
        reserved = dict(_pairs(session, held.where(*is_held), Reservation.branch_id))
        ordered = select(Order.branch_id, func.sum(OrderLine.quantity)).join(OrderLine, OrderLine.order_id == Order.id)
        of_orders = ordered.where(OrderLine.product_id == product_id, Order.state.in_(HOLDS_UNITS))
        for branch_id, units in _pairs(session, of_orders, Order.branch_id):
            reserved[branch_id] = reserved.get(branch_id, 0) + units
    return {one: (on_hand.get(one, 0), reserved.get(one, 0)) for one in {0, *on_hand, *reserved}}


def _pairs(session: Any, statement: Any, column: Any) -> list[tuple[int, int]]:
    return [(one, int(units)) for one, units in session.execute(statement.group_by(column))]


def stock(shop: Shop, product_id: int) -> Counted:
    """What lies where, once it is sure that counters and ledger agree and that the places add up."""
    counted, written = by_counters(shop, product_id), by_ledger(shop, product_id)
    assert counted == {one: written.get(one, (0, 0)) for one in {*counted, *written}}
    on_hand, reserved = (sum(one[at] for one in counted.values()) for at in (0, 1))
    assert (on_hand, reserved) == shop.stock_columns(product_id)
    return counted


class SpreadShop:
    """What a shop with places and its buyers send."""

    def __init__(self, client: httpx2.Client, shop: Shop) -> None:
        self.client, self.shop = client, shop
        self.seller = shop.auth_headers(f"supplier:{shop.id}")
        self.buyer = shop.auth_headers(f"user:{shop.user()}")

    def hold(self, product: int, quantity: int = 1, **wish: Any) -> httpx2.Response:
        path = f"/api/products/{product}/reservations"
        return self.client.post(path, json={"quantity": quantity, **wish}, headers=self.buyer)

    def end(self, deed: str, hold: dict[str, Any]) -> httpx2.Response:
        who = self.seller if deed == "commit" else self.buyer
        return self.client.post(f"/api/reservations/{hold['id']}/{deed}", headers=who)

    def correct(self, product: int, delta: int, branch_id: int) -> httpx2.Response:
        body = {"delta": delta, "reason": "Datang", "branch_id": branch_id}
        return self.client.post(f"/api/products/{product}/stock-corrections", json=body, headers=self.seller)

    def transfer(self, product: int, quantity: int, source: int, target: int, **headers: str) -> httpx2.Response:
        body = {"quantity": quantity, "from_branch_id": source, "to_branch_id": target}
        path = f"/api/products/{product}/stock-transfers"
        return self.client.post(path, json=body, headers={**self.seller, **headers})

    def change(self, branch_id: int, **body: Any) -> httpx2.Response:
        path = f"/api/suppliers/{self.shop.id}/branches/{branch_id}"
        return self.client.put(path, json=body, headers=self.seller)
