"""Suppliers over HTTP, on every database."""

import json
from typing import Any, cast

import httpx2
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from tests.marketplace.accounts import (
    PASSWORD,
    bearer,
    new_email,
    register_admin,
    register_supplier,
    register_user,
    supplier_body,
)
from tis.database.database import Database
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.versions import IfMatch
from tis.marketplace.market import Market
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.suppliers.deletion import close_or_delete_supplier
from tis.marketplace.suppliers.schemas import SupplierRegistration
from tis.marketplace.suppliers.service import change_supplier, restore_supplier, set_status
from tis.marketplace.suppliers.service import register_supplier as add_supplier
from tis.marketplace.tables import AuditEntry

SEED: dict[str, Any] = {
    "name": "John Doe",
    "business_name": "Tech Store Jakarta",
    "phone": "+62812345678",
    "address": "Jl. Sudirman No. 123",
    "latitude": -6.2088,
    "longitude": 106.8456,
    "city": "Jakarta",
    "province": "DKI Jakarta",
}
CONTRACT = [
    *("id", "name", "business_name", "email", "phone", "address", "latitude", "longitude", "city", "province"),
    *("is_active", "registration_date"),
]


def test_the_documented_registration_works_in_open_mode(laptop: httpx2.Client) -> None:
    email = new_email()
    supplier = register_supplier(laptop, **{**SEED, "email": email})
    assert list(supplier)[: len(CONTRACT)] == CONTRACT
    assert {**SEED, "email": email}.items() <= supplier.items() and supplier["is_active"] is True
    assert supplier["access_token"] and supplier["refresh_token"]
    seen = laptop.get(f"/api/suppliers/{supplier['id']}").json()
    of_one = {"rating": None, "distance_km": None}
    assert seen == of_one | {name: supplier[name] for name in seen.keys() - of_one}
    again = laptop.post("/api/suppliers/register", json={**SEED, "email": email.title()})
    assert (again.status_code, again.json()) == (400, {"detail": "Email already registered"})


def test_user_and_supplier_may_have_the_same_email(laptop: httpx2.Client) -> None:
    email = new_email()
    assert register_user(laptop, email=email)["email"] == register_supplier(laptop, email=email)["email"]


def test_private_fields_of_a_supplier_are_hidden_from_others(internet: httpx2.Client) -> None:
    supplier = register_supplier(internet, **{**SEED, "email": new_email()})
    path = f"/api/suppliers/{supplier['id']}"
    seen = internet.get(path).json()
    assert (seen["name"], seen["business_name"], seen["city"]) == (*["Tech Store Jakarta"] * 2, "Jakarta")
    hidden = ("email", "phone", "address", "latitude", "longitude")
    assert [seen[name] for name in hidden] == [None] * 5
    own = internet.get(path, headers=bearer(supplier)).json()
    assert own["name"] == "John Doe" and [own[name] for name in hidden] == [supplier[name] for name in hidden]
    internet.put(path, json={"shows_place": True}, headers=bearer(supplier))
    assert internet.get(path).json()["latitude"] == -6.209


def test_pages_have_no_gaps_while_suppliers_register(laptop: httpx2.Client) -> None:
    city = "Pontianak"
    ids = [register_supplier(laptop, city=city, latitude=0, longitude=109.3)["id"] for _ in range(5)]
    page = laptop.get(f"/api/suppliers?city={city.upper()}&limit=2")
    assert page.headers["X-Total-Count"] == "5"
    seen = [one["id"] for one in page.json()]
    register_supplier(laptop, city="Kota Pontianak")
    while "next" in page.links:
        page = laptop.get(page.links["next"]["url"])
        seen += [one["id"] for one in page.json()]
    assert seen[:5] == ids and len(seen) == 6
    assert [one["id"] for one in laptop.get(f"/api/suppliers?city={city}&skip=1&limit=2").json()] == ids[1:3]


def test_suppliers_are_listed_by_any_name_of_their_city_or_province(laptop: httpx2.Client) -> None:
    ids = {city: register_supplier(laptop, city=city)["id"] for city in ("Kota Ternate", "Tidore Kepulauan", "Ternate")}
    for city, found in (
        ("ternate", {"Kota Ternate", "Ternate"}),
        ("Kota Ternate", {"Kota Ternate", "Ternate"}),
        ("Maluku Utara", {*ids}),
        ("malut", {*ids}),
        ("north  MALUKU", {*ids}),
        ("tern", {"Kota Ternate", "Ternate"}),
        ("Maluku", set()),
    ):
        page = laptop.get("/api/suppliers", params={"city": city})
        assert {one["id"] for one in page.json()} == {ids[one] for one in found}, city
        assert page.headers["X-Total-Count"] == str(len(found))


def test_a_cursor_of_another_list_is_a_400(laptop: httpx2.Client) -> None:
    for _ in range(2):
        register_supplier(laptop, city="Solo")
    cursor = dict(httpx2.URL(laptop.get("/api/suppliers?city=Solo&limit=1").links["next"]["url"]).params)["cursor"]
    for query in ({"city": "Medan", "cursor": cursor}, {"cursor": "%%%"}, {"cursor": "éé"}, {"cursor": "MQ"}):
        assert laptop.get("/api/suppliers", params=query).status_code == 400


@pytest.mark.parametrize("query", ["limit=-1", "limit=0", "limit=101", "skip=-5", f"skip={2**63}", "limit=x"])
def test_limit_and_skip_have_bounds(laptop: httpx2.Client, query: str) -> None:
    assert laptop.get(f"/api/suppliers?{query}").status_code == 422


def test_sql_wildcards_in_a_city_are_plain_text(laptop: httpx2.Client) -> None:
    register_supplier(laptop)
    for city in ("%", "_akarta", "\\", "' OR 1=1 --"):
        assert laptop.get("/api/suppliers", params={"city": city}).json() == []


def test_an_unknown_supplier_is_a_404(laptop: httpx2.Client) -> None:
    missing = laptop.get("/api/suppliers/999999999")
    assert (missing.status_code, missing.json()) == (404, {"detail": "Supplier not found"})
    assert laptop.get(f"/api/suppliers/{2**63}").status_code == 422
    assert laptop.get("/api/suppliers", params={"city": "Mars\x00"}).json() == []


@pytest.mark.parametrize(
    "given",
    [
        {"latitude": None},
        {"longitude": 181},
        {"latitude": 1e400},
        {"city": "  "},
        {"business_name": "x" * 201},
        {"delivery_radius_km": -1},
        {"delivery_radius_km": float("nan")},
        {"pickup_enabled": "sometimes"},
        {"email": "x"},
    ],
    ids=str,
)
def test_invalid_fields_are_a_422(laptop: httpx2.Client, given: dict[str, Any]) -> None:
    content = json.dumps({**supplier_body(), **given})
    answer = laptop.post("/api/suppliers/register", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    made = register_supplier(laptop)
    whole = {"latitude": 1, "longitude": 1} if {"latitude", "longitude"} & given.keys() else {}
    content = json.dumps({**whole, **given})
    answer = laptop.put(f"/api/suppliers/{made['id']}", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422


def test_changes_are_partial_and_versioned(internet: httpx2.Client) -> None:
    supplier = register_supplier(internet, **{**SEED, "email": new_email()})
    path, own = f"/api/suppliers/{supplier['id']}", bearer(supplier)
    changed = internet.put(path, json={"city": "Bandung", "phone": None}, headers=own)
    assert (changed.json()["city"], changed.json()["phone"], changed.json()["name"]) == ("Bandung", None, "John Doe")
    assert changed.headers["ETag"] == f'"{changed.json()["version"]}"'
    late = internet.put(path, json={"city": "Medan"}, headers={**own, "If-Match": '"1"'})
    assert late.status_code == 412
    for city, tag in (("Medan", "{}"), ("Ambon", "*"), ("Bandung", '"9", W/{}')):
        headers = {**own, "If-Match": tag.format(changed.headers["ETag"])}
        changed = internet.put(path, json={"city": city}, headers=headers)
        assert changed.status_code == 200
    assert supplier["id"] in [one["id"] for one in internet.get("/api/suppliers?city=bandung").json()]


def test_an_update_without_changes_keeps_the_version(internet: httpx2.Client, strict_database_url: str) -> None:
    supplier = register_supplier(internet)
    path, own = f"/api/suppliers/{supplier['id']}", bearer(supplier)
    for same in ({}, {"city": supplier["city"], "name": supplier["name"]}, {"email": supplier["email"]}):
        assert internet.put(path, json=same, headers=own).json()["version"] == supplier["version"]
    assert internet.put(path, json={"city": "Medan"}, headers={**own, "If-Match": '"9"'}).status_code == 412
    assert audit_actions(strict_database_url, "supplier", supplier["id"]) == ["supplier.register"]


def test_the_audit_log_has_no_personal_data(internet: httpx2.Client, strict_database_url: str) -> None:
    supplier = register_supplier(internet)
    given = {"name": "Budi Rahardjo", "business_name": "Toko Budi"}
    internet.put(f"/api/suppliers/{supplier['id']}", json=given, headers=bearer(supplier))
    database = Database(strict_database_url)
    with database.reading() as session:
        changes = session.scalars(select(AuditEntry.changes).where(AuditEntry.action == "supplier.change")).all()
    database.close()
    assert changes[-1] == {"name": True, "business_name": ["Tech Store Jakarta", "Toko Budi"]}


def audit_actions(url: str, entity: str, number: int) -> list[str]:
    database = Database(url)
    with database.reading() as session:
        of_entity = (AuditEntry.entity == entity) & (AuditEntry.entity_id == str(number))
        actions = list(session.scalars(select(AuditEntry.action).where(of_entity)))
    database.close()
    return actions


def test_an_email_taken_by_another_supplier_is_refused(laptop: httpx2.Client) -> None:
    first, second = register_supplier(laptop), register_supplier(laptop)
    taken = laptop.put(f"/api/suppliers/{second['id']}", json={"email": first["email"]})
    assert (taken.status_code, taken.json()["detail"]) == (400, "Email already registered")
    assert laptop.put(f"/api/suppliers/{second['id']}", json={"email": second["email"]}).status_code == 200


def test_a_closed_supplier_is_hidden_until_it_is_restored(internet: httpx2.Client) -> None:
    owner = register_user(internet)
    supplier = register_supplier(internet, bearer(owner), city="Ambon")
    path = f"/api/suppliers/{supplier['id']}"
    assert internet.delete(path, headers=bearer(owner)).json()["is_active"] is False
    assert internet.get(path).status_code == 404
    assert internet.get("/api/suppliers?city=Ambon").json() == []
    assert internet.get(path, headers=bearer(owner)).status_code == 200
    assert internet.get("/api/auth/me", headers=bearer(supplier)).status_code == 401
    assert internet.post(f"{path}/restore", headers=bearer(owner)).json()["is_active"] is True
    assert internet.get(path).status_code == 200


def test_a_supplier_without_owners_that_closes_itself_is_deleted(
    internet: httpx2.Client, strict_database_url: str
) -> None:
    """Its account could never sign in again to restore it."""
    given: dict[str, Any] = {
        "email": new_email(),
        "name": "Budi Rahardjo",
        "phone": "+6281234567890",
        "address": "Jl. Melati 1",
    }
    supplier = register_supplier(internet, **given, password=PASSWORD)
    path = f"/api/suppliers/{supplier['id']}"
    for body in (None, {"password": "a wrong sentence"}):
        refused = internet.request("DELETE", path, json=body, headers=bearer(supplier))
        assert (refused.status_code, refused.json()["detail"]) == (403, "The password is missing or not right.")
    closed = internet.request("DELETE", path, json={"password": PASSWORD}, headers=bearer(supplier))
    assert closed.json()["is_active"] is False
    admin = register_admin(internet, strict_database_url)
    left = internet.get(path, headers=bearer(admin)).text
    assert not [value for value in given.values() if value in left] and "-6.2088" not in left
    assert internet.get("/api/auth/me", headers=bearer(supplier)).status_code == 401
    assert register_supplier(internet, email=given["email"])["id"] != supplier["id"]


def test_a_supplier_that_has_only_a_token_is_deleted_after_confirmation(internet: httpx2.Client) -> None:
    supplier = register_supplier(internet)
    path = f"/api/suppliers/{supplier['id']}"
    for unconfirmed in (path, f"{path}?confirm=0"):
        asked = internet.delete(unconfirmed, headers=bearer(supplier))
        assert asked.status_code == 409 and "?confirm=1" in asked.json()["detail"]
        assert internet.get(path).json()["is_active"] is True
    assert internet.delete(f"{path}?confirm=1", headers=bearer(supplier)).json()["is_active"] is False
    assert internet.get("/api/auth/me", headers=bearer(supplier)).status_code == 401


def test_closing_a_supplier_that_has_only_a_token_needs_confirmation_of_admins_too(
    internet: httpx2.Client, laptop: httpx2.Client, strict_database_url: str
) -> None:
    path, admin = f"/api/suppliers/{register_supplier(internet)['id']}", register_admin(internet, strict_database_url)
    assert internet.delete(path, headers=bearer(admin)).status_code == 409
    assert internet.delete(f"{path}?confirm=1", headers=bearer(admin)).status_code == 200
    assert internet.delete(path, headers=bearer(admin)).status_code == 200  # again: nothing new
    assert laptop.delete(f"/api/suppliers/{register_supplier(laptop)['id']}").status_code == 409


def test_an_owner_may_restore_a_supplier_that_closed_itself(internet: httpx2.Client) -> None:
    owner = register_user(internet)
    supplier = register_supplier(internet, bearer(owner), phone="+6281234567890")
    path = f"/api/suppliers/{supplier['id']}"
    assert internet.delete(path, headers=bearer(supplier)).status_code == 200
    assert internet.post(f"{path}/restore", headers=bearer(owner)).json()["phone"] == "+6281234567890"


def test_a_suspended_supplier_cannot_sign_in_until_an_admin_ends_it(
    internet: httpx2.Client, strict_database_url: str
) -> None:
    admin = register_admin(internet, strict_database_url)
    supplier = register_supplier(internet, password="a long sentence")
    path = f"/api/suppliers/{supplier['id']}"
    assert internet.put(f"{path}/status", json={"status": "suspended"}, headers=bearer(admin)).status_code == 200
    assert internet.get(path).status_code == 404
    login = {"email": supplier["email"], "password": "a long sentence"}
    assert internet.post("/api/auth/login", json=login).status_code == 401
    assert internet.put(path, json={}, headers=bearer(supplier)).status_code == 401
    refreshed = internet.post("/api/auth/refresh", json={"refresh_token": supplier["refresh_token"]})
    assert refreshed.status_code == 401
    internet.put(f"{path}/status", json={"status": "active"}, headers=bearer(admin))
    assert internet.get(path).status_code == 200 and internet.post("/api/auth/login", json=login).status_code == 200


class RecordingSearch:
    """Records which suppliers are re-indexed."""

    def __init__(self) -> None:
        self.refreshed: list[int] = []

    def refresh_supplier(self, session: Session, supplier_id: int) -> None:
        self.refreshed.append(supplier_id)

    def note_reopened(self, session: Session, supplier_id: int) -> None:
        """For alerts; its tests are there."""


def test_the_search_index_is_refreshed_after_every_visible_change(market: Market) -> None:
    search, principal = RecordingSearch(), Principal(is_open=True)
    index = cast(ProductSearch, search)
    with market.writing() as session:
        supplier = add_supplier(session, principal, SupplierRegistration(**supplier_body()), None)
        change_supplier(session, principal, index, supplier.id, {"city": "Ternate"}, IfMatch())
        change_supplier(session, principal, index, supplier.id, {"city": "Ternate", "phone": "+62812"}, IfMatch())
        close_or_delete_supplier(session, principal, index, supplier.id)
        restore_supplier(session, principal, index, supplier.id)
        set_status(session, Principal(is_admin=True), index, supplier.id, "suspended")
        assert search.refreshed == [supplier.id] * 4
        set_status(session, Principal(is_admin=True), index, supplier.id, "suspended")
        assert len(search.refreshed) == 4
