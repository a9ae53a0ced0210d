"""Which talks go on: not about goods that are gone, nor with a shop that closed, but about its open orders."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import update

from tests.marketplace.orders.ordering import Ordering, made, refusal
from tests.marketplace.pictures.photos import photo
from tests.marketplace.shop import Shop
from tis.marketplace.columns import now
from tis.marketplace.tables import Order, Supplier

_GONE = "These goods are not offered any more: this talk can be read, not continued."
_CLOSED = "This shop has closed: only talks about open orders go on."
_SUSPENDED = "This shop is suspended: only talks about open orders go on."


@pytest.fixture
def ordering(internet: httpx2.Client, strict_shop: Shop) -> Ordering:
    return Ordering(internet, strict_shop)


@pytest.fixture
def member(strict_shop: Shop) -> dict[str, str]:
    """Of a closed or suspended shop, its own account does not sign in."""
    return strict_shop.auth_headers(f"user:{strict_shop.editor()}")


def write(ordering: Ordering, path: str, headers: dict[str, str], body: str = "Halo") -> httpx2.Response:
    return ordering.client.post(f"/api{path}", json={"body": body}, headers=headers)


def become(ordering: Ordering, **values: Any) -> None:
    with ordering.shop.market.writing() as session:
        session.execute(update(Supplier).where(Supplier.id == ordering.shop.id).values(**values))


def reasons(ordering: Ordering, headers: dict[str, str], path: str = "/talks") -> dict[int, str | None]:
    found = ordering.client.get(f"/api{path}", headers=headers)
    assert found.status_code == 200, found.text
    return {one["id"]: one["closed_reason"] for one in found.json()}


def require_closed(ordering: Ordering, talk: int, why: str, *parties: dict[str, str]) -> None:
    for headers in parties:
        assert refusal(write(ordering, f"/talks/{talk}/messages", headers)) == (409, why)
        path = f"/api/talks/{talk}/pictures"
        picture = ordering.client.post(path, files={"file": ("a.png", photo())}, headers=headers)
        assert refusal(picture) == (409, why)
        seen = made(ordering.client.get(f"/api/talks/{talk}", headers=headers))
        assert len(seen["messages"]) == 1 and seen["closed_reason"] is not None


def test_a_talk_about_deleted_goods_is_read_and_not_continued_until_they_are_back(ordering: Ordering) -> None:
    product = ordering.shop.product()
    talk = made(write(ordering, f"/products/{product}/talk", ordering.buyer))
    assert talk["closed_reason"] is None
    made(ordering.client.delete(f"/api/products/{product}", headers=ordering.seller))
    require_closed(ordering, talk["id"], _GONE, ordering.buyer, ordering.seller)
    assert write(ordering, f"/products/{product}/talk", ordering.buyer).status_code == 404
    assert reasons(ordering, ordering.buyer) == {talk["id"]: "product_gone"}
    made(ordering.client.post(f"/api/products/{product}/restore", headers=ordering.seller))
    assert made(write(ordering, f"/talks/{talk['id']}/messages", ordering.buyer))["num_messages"] == 2


def test_a_talk_about_an_order_goes_on_when_its_goods_are_gone(ordering: Ordering) -> None:
    product = ordering.shop.product()
    order = ordering.order({product: 1})
    talk = made(write(ordering, f"/orders/{order['id']}/talk", ordering.buyer))
    for deed in ("accept", "hand-over"):
        made(ordering.by_shop(deed, order))
    made(ordering.client.delete(f"/api/products/{product}", headers=ordering.seller))
    assert made(write(ordering, f"/talks/{talk['id']}/messages", ordering.seller))["closed_reason"] is None


@pytest.mark.parametrize(
    ("values", "code", "why"),
    [({"deleted_at": now()}, "shop_closed", _CLOSED), ({"status": "suspended"}, "shop_suspended", _SUSPENDED)],
)
def test_with_a_shop_that_is_closed_or_suspended_only_talks_about_open_orders_go_on(
    ordering: Ordering, member: dict[str, str], values: dict[str, Any], code: str, why: str
) -> None:
    product = ordering.shop.product(on_hand=9)
    orders = [ordering.order({product: 1}) for _ in range(3)]
    made(ordering.by_buyer("cancel", orders[0]))
    for order in orders[1:]:
        made(ordering.by_shop("accept", order))
        made(ordering.by_shop("hand-over", order))
        made(ordering.by_buyer("receive", order))
    with ordering.shop.market.writing() as session:  # too long ago to be returned
        past = {"ended_at": now() - timedelta(days=8)}
        session.execute(update(Order).where(Order.id == orders[1]["id"]).values(**past))
    paths = [f"/products/{product}/talk", *(f"/orders/{order['id']}/talk" for order in orders)]
    talks = [made(write(ordering, path, ordering.buyer))["id"] for path in paths]
    become(ordering, **values)
    for talk in talks[:3]:
        require_closed(ordering, talk, why, ordering.buyer, member)
    for headers in (member, ordering.buyer):
        assert made(write(ordering, f"/talks/{talks[3]}/messages", headers))["closed_reason"] is None
    found = {**dict.fromkeys(talks[:3], code), talks[3]: None}
    assert reasons(ordering, ordering.buyer) == found
    if code == "shop_suspended":  # of a closed shop nothing is listed
        assert reasons(ordering, member, f"/suppliers/{ordering.shop.id}/talks") == found


def test_a_suspended_shop_writes_about_a_paid_order_and_begins_no_talk_about_a_draft(
    ordering: Ordering, member: dict[str, str]
) -> None:
    product = ordering.shop.product(on_hand=9)
    order, draft = ordering.order({product: 1}), ordering.draft({product: 1})
    made(ordering.by_shop("accept", order))
    become(ordering, status="suspended")
    assert made(write(ordering, f"/orders/{order['id']}/talk", member))["side"] == "shop"
    assert refusal(write(ordering, f"/orders/{draft['id']}/talk", ordering.buyer)) == (409, _SUSPENDED)
    assert ordering.client.get("/api/talks", headers=ordering.buyer).json()[0]["order_id"] == order["id"]
    assert len(reasons(ordering, ordering.buyer)) == 1  # a refused message leaves no empty talk
