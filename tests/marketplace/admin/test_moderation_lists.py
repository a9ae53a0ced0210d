"""What admins look through: reviews, suppliers by status, users by e-mail, and the audit log by action and time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from tests.marketplace.accounts import made, supplier_body
from tests.marketplace.market_server import MarketServer, new_product
from tis.marketplace.tables import User


def reviewed(server: MarketServer, anybody: httpx2.Client, title: str) -> dict[str, Any]:
    product = new_product(anybody, server.supplier())
    with server.as_(f"user:{server.user('Dewi Specimen')}") as buyer:
        return made(buyer.post(f"/api/products/{product['id']}/reviews", json={"rating": 1, "title": title}))


def reviews(admin: httpx2.Client, status: str = "hidden") -> dict[int, dict[str, Any]]:
    found = admin.get("/api/admin/reviews", params={"status": status, "limit": 100})
    assert found.status_code == 200, found.text
    return {one["id"]: one for one in found.json()}


def test_hidden_reviews_of_all_goods_are_in_one_list(
    server: MarketServer, anybody: httpx2.Client, stranger: httpx2.Client, admin: httpx2.Client
) -> None:
    first, second = reviewed(server, anybody, "Rude"), reviewed(server, anybody, "Fine")
    before = admin.get("/api/admin/overview").json()["hidden_reviews"]
    assert {first["id"], second["id"]} <= reviews(admin, "published").keys() and first["id"] not in reviews(admin)
    made(admin.put(f"/api/reviews/{first['id']}/status", json={"status": "hidden", "reason": "It insults."}))
    shown = reviews(admin)[first["id"]]
    assert (shown["title"], shown["author"], shown["product_name"]) == ("Rude", "Dewi S.", "Laptop ASUS ROG Strix G15")
    assert second["id"] not in reviews(admin) and first["id"] not in reviews(admin, "published")
    assert admin.get("/api/admin/overview").json()["hidden_reviews"] == before + 1
    [noted] = admin.get(
        "/api/audit", params={"entity": "review", "entity_id": first["id"], "action": "moderate"}
    ).json()
    assert noted["changes"] == {"status": ["published", "hidden"], "reason": "It insults."}
    assert stranger.get("/api/admin/reviews").status_code == 401


def test_the_list_of_reviews_has_pages(server: MarketServer, anybody: httpx2.Client, admin: httpx2.Client) -> None:
    made_ = [reviewed(server, anybody, f"Review {number}")["id"] for number in range(3)]
    seen, url = list[int](), "/api/admin/reviews?status=published&limit=2"
    while url and len(seen) < 4:
        answer = admin.get(url)
        seen += [one["id"] for one in answer.json()]
        url = answer.links.get("next", {}).get("url", "")
    assert seen[:3] == made_[::-1]


def suppliers(client: httpx2.Client, **query: Any) -> dict[int, dict[str, Any]]:
    found = client.get("/api/suppliers", params={"limit": 100, **query})
    assert found.status_code == 200, found.text
    return {one["id"]: one for one in found.json()}


def test_admins_find_suspended_and_closed_suppliers_with_their_places(
    server: MarketServer, stranger: httpx2.Client, admin: httpx2.Client
) -> None:
    active, suspended, closed = (
        made(stranger.post("/api/suppliers/register", json={**supplier_body(), "business_name": f"Ronggo {name}"}))[
            "id"
        ]
        for name in ("A", "B", "C")
    )
    before = admin.get("/api/admin/overview").json()["suspended_suppliers"]
    body = {"status": "suspended", "reason": "Sells what it does not have."}
    made(admin.put(f"/api/suppliers/{suspended}/status", json=body))
    made(admin.delete(f"/api/suppliers/{closed}?confirm=1"))
    for status, own in (("active", active), ("suspended", suspended), ("closed", closed)):
        listed, found = suppliers(admin, status=status), suppliers(admin, status=status, q="ronggo")
        assert {active, suspended, closed} & listed.keys() == found.keys() == {own}
        assert (found[own]["latitude"], found[own]["longitude"]) == (-6.2088, 106.8456)
    assert admin.get("/api/admin/overview").json()["suspended_suppliers"] == before + 1
    assert stranger.get("/api/suppliers?status=closed").status_code == 401
    with server.as_(f"supplier:{active}") as seller:
        assert seller.get("/api/suppliers?status=suspended").status_code == 403
    query = {"entity": "supplier", "entity_id": suspended, "action": "supplier.status"}
    [noted] = admin.get("/api/audit", params=query).json()
    assert noted["changes"] == {"status": ["active", "suspended"], "reason": "Sells what it does not have."}
    made(admin.put(f"/api/suppliers/{suspended}/status", json={"status": "active"}))
    assert suspended in suppliers(stranger)


def test_a_user_is_found_by_the_e_mail_or_how_it_begins(server: MarketServer, admin: httpx2.Client) -> None:
    ids = {}
    for email in ("Ronggo.Warsito@example.com", "ronggo_warsito@example.com", "ronggo@example.com"):
        ids[email] = server.user("Ronggo Specimen")
        with server.market.writing() as session:
            user = session.get_one(User, ids[email])
            user.email, user.email_key = email, email.lower()

    def found(email: str) -> set[str]:
        return {one["email"] for one in made_list(admin.get("/api/users", params={"email": email}))}

    assert found("ronggo") == set(ids)
    assert found("RONGGO.WARSITO@example.com") == {"Ronggo.Warsito@example.com"}
    assert found("ronggo_") == {"ronggo_warsito@example.com"}  # no sign stands for another
    assert found("nggo") == found("ronggo%") == set()
    first = admin.get("/api/users", params={"email": "ronggo", "limit": 2})
    assert first.headers["x-total-count"] == "3" and "next" in first.links
    [last] = admin.get(first.links["next"]["url"]).json()
    assert last["email"] == "ronggo@example.com"


def made_list(answer: httpx2.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return list(answer.json())


def test_the_audit_log_is_filtered_by_action_and_time(
    server: MarketServer, anybody: httpx2.Client, admin: httpx2.Client
) -> None:
    supplier = server.supplier()
    with server.as_(f"supplier:{supplier}") as owner:
        product = new_product(owner, supplier)
        middle = datetime.now(UTC)
        made(owner.put(f"/api/products/{product['id']}", json={"price": 1000}))

    def actions(**query: Any) -> list[str]:
        answer = admin.get("/api/audit", params={"actor": f"supplier:{supplier}", **query})
        return [one["action"] for one in made_list(answer)]

    assert actions() == ["change", "create"]
    assert actions(action="create") == ["create"]
    assert actions(since=middle.isoformat()) == ["change"]
    assert actions(until=middle.isoformat()) == ["create"]
    first = admin.get(
        "/api/audit", params={"actor": f"supplier:{supplier}", "limit": 1, "since": "2026-01-01T00:00:00Z"}
    )
    assert [one["action"] for one in made_list(first)] == ["change"]
    assert [one["action"] for one in made_list(admin.get(first.links["next"]["url"]))] == ["create"]
    yesterday = middle - timedelta(days=1)
    assert actions(since=yesterday.isoformat(), until=middle.isoformat(), action="change") == []
    for since in ("2026-11-28T00:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "yesterday"):
        assert admin.get("/api/audit", params={"since": since}).status_code == 422
