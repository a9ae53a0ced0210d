"""What a shop does with reservations, what it learns of buyers, and how much an account may hold."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import update

from tests.marketplace.accounts import all_at_once
from tests.marketplace.conftest import SECRET
from tests.marketplace.shop import Shop
from tests.marketplace.stock.test_reservations import end, reserve
from tests.serving import served, settings_with
from tis.marketplace.auth.shop_tokens import new_shop_token
from tis.marketplace.columns import now
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import OWN_HOLD
from tis.marketplace.tables import Reservation, Supplier

DEWI = {"name": "Dewi Specimen", "email": "dewi@example.com", "phone": "+6281234567890"}
HIDDEN = {"name": "Dewi S.", "email": None, "phone": None}


def listed(client: httpx2.Client, shop: Shop, **params: Any) -> list[dict[str, Any]]:
    answer = client.get(f"/api/suppliers/{shop.id}/reservations", params=params, headers=seller(shop))
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()
    return rows


def seller(shop: Shop) -> dict[str, str]:
    return shop.auth_headers(f"supplier:{shop.id}")


def buyer(shop: Shop, **values: Any) -> dict[str, str]:
    return shop.auth_headers(f"user:{shop.user(**values)}")


def hold(client: httpx2.Client, product: int, headers: dict[str, str], quantity: int = 1) -> dict[str, Any]:
    answer = reserve(client, product, quantity, headers=headers)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_a_reservation_keeps_its_price(internet: httpx2.Client, strict_shop: Shop) -> None:
    product, who = strict_shop.product(price=100_000), buyer(strict_shop)
    held = hold(internet, product, who, 2)
    assert held["unit_price"] == 100_000
    internet.put(f"/api/products/{product}", json={"price": 150_000}, headers=seller(strict_shop))
    assert internet.get(f"/api/reservations/{held['id']}", headers=who).json()["unit_price"] == 100_000
    assert end(internet, "commit", held["id"], **seller(strict_shop)).json()["unit_price"] == 100_000
    assert hold(internet, product, who)["unit_price"] == 150_000


def test_the_shop_sees_who_reserves_and_how_to_reach_them_once_it_accepted(
    internet: httpx2.Client, strict_shop: Shop
) -> None:
    who, product = buyer(strict_shop, **DEWI), strict_shop.product(name="Kipas meja")
    held = hold(internet, product, who, 2)["id"]
    [asked] = listed(internet, strict_shop, status="held")
    assert (asked["id"], asked["product_name"], asked["quantity"]) == (held, "Kipas meja", 2)
    assert (asked["accepted_at"], asked["buyer"]) == (None, HIDDEN)
    accepted = end(internet, "accept", held, **seller(strict_shop))
    assert (accepted.status_code, accepted.json()["status"], accepted.json()["buyer"]) == (200, "held", DEWI)
    assert end(internet, "accept", held, **seller(strict_shop)).json() == accepted.json()
    assert internet.get(f"/api/reservations/{held}", headers=who).json()["accepted_at"] is not None
    assert listed(internet, strict_shop)[0]["buyer"] == DEWI
    end(internet, "commit", held, **seller(strict_shop))
    assert listed(internet, strict_shop)[0]["buyer"] == DEWI


def test_a_reservation_that_ended_without_a_sale_shows_no_contact_data(
    internet: httpx2.Client, strict_shop: Shop
) -> None:
    who, product = buyer(strict_shop, **DEWI), strict_shop.product()
    for how, by in (("refuse", seller(strict_shop)), ("release", who), ("release", seller(strict_shop))):
        held = hold(internet, product, who)["id"]
        end(internet, "accept", held, **seller(strict_shop))
        end(internet, how, held, **by)
        assert listed(internet, strict_shop, limit=1)[0]["buyer"] == HIDDEN
    late = hold(internet, product, who)["id"]
    end(internet, "accept", late, **seller(strict_shop))
    strict_shop.make_due(late)
    assert (
        listed(internet, strict_shop, limit=1)[0] | {"buyer": HIDDEN, "status": "expired"}
        == (listed(internet, strict_shop, limit=1)[0])
    )


def test_a_buyer_may_be_a_supplier_or_deleted(internet: httpx2.Client, strict_shop: Shop) -> None:
    product, rival = strict_shop.product(), strict_shop.supplier(business_name="Toko Rival")
    hold(internet, product, strict_shop.auth_headers(f"supplier:{rival}"))
    assert listed(internet, strict_shop)[0]["buyer"]["name"] == "Toko Rival"
    gone = buyer(strict_shop, name="Dewi")
    held = hold(internet, product, gone)["id"]
    end(internet, "commit", held, **seller(strict_shop))
    assert internet.delete("/api/users/me", headers=gone).status_code == 200
    assert listed(internet, strict_shop)[0]["buyer"] == {"name": "Deleted user", "email": None, "phone": None}


def test_a_refused_reservation_frees_its_units_once(internet: httpx2.Client, strict_shop: Shop) -> None:
    product, who = strict_shop.product(on_hand=5), buyer(strict_shop)
    held = hold(internet, product, who, 2)["id"]
    first, again = (end(internet, "refuse", held, **seller(strict_shop)) for _ in range(2))
    assert first.json() == again.json() and first.json()["status"] == "refused"
    assert strict_shop.stock_columns(product) == strict_shop.stock_ledger(product) == (5, 0)
    assert internet.get(f"/api/reservations/{held}", headers=who).json()["status"] == "refused"
    assert [one["id"] for one in listed(internet, strict_shop, status="refused")] == [held]
    for how in ("accept", "commit"):
        late = end(internet, how, held, **seller(strict_shop))
        assert (late.status_code, late.json()) == (409, {"detail": "This reservation was refused."})
    assert end(internet, "release", held, **who).json()["status"] == "refused"
    sold = hold(internet, product, who)["id"]
    end(internet, "commit", sold, **seller(strict_shop))
    assert end(internet, "refuse", sold, **seller(strict_shop)).status_code == 409
    assert strict_shop.stock_columns(product) == strict_shop.stock_ledger(product) == (4, 0)


def test_only_the_shop_accepts_or_refuses(internet: httpx2.Client, strict_shop: Shop) -> None:
    who, rival = buyer(strict_shop), strict_shop.auth_headers(f"supplier:{strict_shop.supplier()}")
    held = hold(internet, strict_shop.product(), who)["id"]
    for how in ("accept", "refuse"):
        assert end(internet, how, held).status_code == 401
        assert end(internet, how, held, **rival).status_code == 404
        refused = end(internet, how, held, **who)
        assert (refused.status_code, refused.json()) == (
            403,
            {"detail": "Only the shop accepts or refuses a reservation."},
        )
    path = f"/api/suppliers/{strict_shop.id}/reservations"
    assert [internet.get(path, headers=one).status_code for one in ({}, who, rival)] == [401, 403, 403]


@pytest.mark.parametrize("role", ["owner", "editor", "admin"])
def test_who_works_for_the_shop_by_now_answers_no_own_hold(
    internet: httpx2.Client, strict_shop: Shop, role: str
) -> None:
    buyer_id = strict_shop.user(role="admin" if role == "admin" else "user")
    who, product = strict_shop.auth_headers(f"user:{buyer_id}"), strict_shop.product()
    held = hold(internet, product, who)["id"]
    if role != "admin":
        strict_shop.employ(buyer_id, role)
    with strict_shop.market.writing() as session:
        maker = Principal(f"user:{buyer_id}", owned_ids=frozenset([strict_shop.id]))
        _, secret = new_shop_token(session, maker, strict_shop.id, "Kasir", ["read", "stock"], 1)
    for caller in (who, {"Authorization": f"Bearer {secret}"}):
        for how in ("accept", "commit", "refuse"):
            refused = end(internet, how, held, **caller)
            assert (refused.status_code, refused.json()) == (403, {"detail": OWN_HOLD})
    other = strict_shop.auth_headers(f"user:{strict_shop.editor()}")
    assert end(internet, "accept", held, **other).json()["status"] == "held"
    assert end(internet, "release", held, **who).json()["status"] == "released"
    assert strict_shop.stock_columns(product) == strict_shop.stock_ledger(product) == (5, 0)


def test_the_account_of_a_shop_sells_what_it_put_aside(internet: httpx2.Client, strict_shop: Shop) -> None:
    held = hold(internet, strict_shop.product(), seller(strict_shop))["id"]
    assert end(internet, "commit", held, **seller(strict_shop)).json()["status"] == "committed"


def test_a_suspended_shop_neither_sells_nor_learns_how_to_reach_buyers(
    internet: httpx2.Client, strict_shop: Shop
) -> None:
    """Its own sessions ended, and those of its members did not."""
    member = strict_shop.auth_headers(f"user:{strict_shop.editor()}")
    product, who = strict_shop.product(), buyer(strict_shop, **DEWI)
    held = hold(internet, product, who)["id"]
    with strict_shop.market.writing() as session:
        session.get_one(Supplier, strict_shop.id).status = "suspended"
    for how in ("accept", "commit"):
        refused = end(internet, how, held, **member)
        assert refused.status_code == 403 and "suspended" in refused.json()["detail"]
    assert end(internet, "refuse", held, **member).json()["buyer"] == HIDDEN
    assert strict_shop.stock_columns(product) == (5, 0)


def test_accepting_holds_for_longer_but_an_hour_at_most(internet: httpx2.Client, strict_shop: Shop) -> None:
    product, who = strict_shop.product(), buyer(strict_shop)
    short = reserve(internet, product, seconds=60, headers=who).json()
    longer = end(internet, "accept", short["id"], **seller(strict_shop)).json()
    assert timedelta(minutes=14) < until(longer) - until(short) < timedelta(minutes=16)
    old, begun = hold(internet, product, who)["id"], now() - timedelta(minutes=55)
    times = {"created_at": begun, "expires_at": begun + timedelta(minutes=56)}
    with strict_shop.market.writing() as session:
        session.execute(update(Reservation).where(Reservation.id == old).values(**times))
    ends = until(end(internet, "accept", old, **seller(strict_shop)).json())
    assert ends == begun + timedelta(hours=1)


def until(reservation: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(reservation["expires_at"])


@pytest.mark.parametrize("body", [{"quantity": "2"}, {"quantity": 2.0}, {"quantity": True}, {"seconds": 3601}])
def test_a_quantity_is_a_whole_number_and_a_reservation_lasts_an_hour_at_most(
    laptop: httpx2.Client, shop: Shop, body: dict[str, Any]
) -> None:
    answer = laptop.post(f"/api/products/{shop.product()}/reservations", json={"quantity": 1, **body})
    assert answer.status_code == 422
    assert reserve(laptop, shop.product(), seconds=3600).status_code == 200


def test_the_list_of_a_shop_has_pages_and_a_total(internet: httpx2.Client, strict_shop: Shop) -> None:
    product, who = strict_shop.product(on_hand=9), buyer(strict_shop)
    held = [hold(internet, product, who)["id"] for _ in range(3)]
    other = Shop(strict_shop.market)
    hold(internet, other.product(), who)
    path: str = f"/api/suppliers/{strict_shop.id}/reservations?limit=2"
    first = internet.get(path, headers=seller(strict_shop))
    last = internet.get(first.links["next"]["url"], headers=seller(strict_shop))
    assert [one["id"] for one in first.json() + last.json()] == held[::-1] and "next" not in last.links
    assert first.headers["X-Total-Count"] == "3"
    foreign = f"/api/suppliers/{other.id}/reservations?before={held[0]}"
    assert internet.get(foreign, headers=seller(other)).status_code == 404


@pytest.fixture(scope="module")
def capped(strict_database_url: str) -> Iterator[httpx2.Client]:
    settings = settings_with(
        database_url=strict_database_url,
        jwt_secret_key=SECRET,
        max_reservations_per_account=3,
        max_reserved_units_per_product=10,
    )
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        yield client


def test_an_account_holds_so_many_reservations_at_a_time(capped: httpx2.Client, strict_shop: Shop) -> None:
    who, products = buyer(strict_shop), [strict_shop.product() for _ in range(4)]
    held = [hold(capped, product, who)["id"] for product in products[:3]]
    refused = reserve(capped, products[3], headers=who)
    assert refused.status_code == 409 and "3 reservations" in refused.json()["detail"]
    assert strict_shop.stock_columns(products[3]) == (5, 0)
    strict_shop.make_due(held[0])
    assert reserve(capped, products[3], headers=who).status_code == 200
    assert reserve(capped, products[0], headers=buyer(strict_shop)).status_code == 200


def test_an_account_holds_so_many_units_of_a_product(capped: httpx2.Client, strict_shop: Shop) -> None:
    who, product = buyer(strict_shop), strict_shop.product(on_hand=50)
    hold(capped, product, who, 7)
    refused = reserve(capped, product, 4, headers=who)
    assert refused.status_code == 409 and "10 units" in refused.json()["detail"]
    assert hold(capped, product, who, 3)["available_quantity"] == 40
    assert reserve(capped, strict_shop.product(), headers=who).status_code == 200
    assert hold(capped, product, seller(strict_shop), 20)["quantity"] == 20  # its own goods


def test_reservations_at_once_do_not_pass_the_cap(capped: httpx2.Client, strict_shop: Shop) -> None:
    who, product = buyer(strict_shop), strict_shop.product(on_hand=50)
    sent = [lambda client: reserve(client, product, headers=who)] * 6
    statuses = sorted(answer.status_code for answer in all_at_once(capped, *sent))
    assert statuses == [200] * 3 + [409] * 3
    assert strict_shop.stock_columns(product) == strict_shop.stock_ledger(product) == (50, 3)


def let_go(shop: Shop, reservation_id: str, began: timedelta, held: timedelta, status: str = "expired") -> None:
    """As if it had ended without a sale: it began so long ago, and was held for so long."""
    begun = now() - began
    values = {"created_at": begun, "ended_at": begun + held, "expires_at": begun + held, "status": status}
    with shop.market.writing() as session:
        session.execute(update(Reservation).where(Reservation.id == reservation_id).values(**values))


def test_who_holds_a_product_again_and_again_without_buying_waits(internet: httpx2.Client, strict_shop: Shop) -> None:
    rival, product = buyer(strict_shop), strict_shop.product(on_hand=50)
    for hours in (20, 3):
        first = hold(internet, product, rival)["id"]
        let_go(strict_shop, first, timedelta(hours=hours), timedelta(hours=1))
    refused = reserve(internet, product, headers=rival)
    assert refused.status_code == 429 and "without buying" in refused.json()["detail"]
    assert timedelta(hours=3.9) < timedelta(seconds=int(refused.headers["retry-after"])) <= timedelta(hours=4)
    assert reserve(internet, strict_shop.product(), headers=rival).status_code == 200
    assert reserve(internet, product, headers=buyer(strict_shop)).status_code == 200
    assert reserve(internet, product, headers=seller(strict_shop)).status_code == 200  # its own goods
    let_go(strict_shop, first, timedelta(hours=25), timedelta(hours=1))
    assert reserve(internet, product, headers=rival).status_code == 200


@pytest.mark.parametrize("status", ["committed", "refused"])
def test_a_sale_and_a_refusal_are_no_holding(internet: httpx2.Client, strict_shop: Shop, status: str) -> None:
    customer, product = buyer(strict_shop), strict_shop.product(on_hand=50)
    for hours in (3, 5, 7):
        let_go(strict_shop, hold(internet, product, customer)["id"], timedelta(hours=hours), timedelta(hours=1), status)
    assert reserve(internet, product, headers=customer).status_code == 200
