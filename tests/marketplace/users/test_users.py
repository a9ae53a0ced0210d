"""Users over HTTP, on every database."""

import json
import math
from typing import Any

import httpx2
import pytest

from tests.marketplace.accounts import (
    PASSWORD,
    bearer,
    made,
    new_email,
    register_admin,
    register_supplier,
    register_user,
    user_body,
)

SEED: dict[str, Any] = {
    "name": "Jane Smith",
    "phone": "+62856789012",
    "latitude": -6.2088,
    "longitude": 106.8456,
    "city": "Jakarta",
    "province": "DKI Jakarta",
    "ai_access_enabled": True,
}
CONTRACT = ["id", "name", "email", "phone", "latitude", "longitude", "city", "province", "ai_access_enabled"]


def test_the_documented_registration_works_in_open_mode(laptop: httpx2.Client) -> None:
    email = new_email()
    user = register_user(laptop, **{**SEED, "email": email})
    assert list(user)[: len(CONTRACT)] == CONTRACT
    assert (user["email"], user["ai_access_enabled"], user["role"]) == (email, True, "user")
    again = laptop.get(f"/api/users/{user['id']}").json()
    assert again == {name: user[name] for name in again} and again["email"] == email


def test_users_grant_themselves_ai_access_only_in_open_mode(internet: httpx2.Client, laptop: httpx2.Client) -> None:
    for client, is_taken in ((internet, False), (laptop, True)):
        user = register_user(client, ai_access_enabled=True)
        assert user["ai_access_enabled"] is is_taken
        other = register_user(client)
        changed = client.put("/api/users/me", json={"ai_access_enabled": True}, headers=bearer(other))
        assert (changed.status_code, changed.json()["ai_access_enabled"]) == (200, is_taken)


@pytest.mark.parametrize("path", ["/api/users/register", "/api/auth/register"])
def test_registration_with_a_role_is_refused(internet: httpx2.Client, laptop: httpx2.Client, path: str) -> None:
    for client in (internet, laptop):
        body = {**user_body(), "password": PASSWORD}
        for role in ("admin", "emperor"):
            refused = client.post(path, json={**body, "role": role})
            assert refused.status_code == 403 and "/grants" in refused.json()["detail"]
        for plain in (None, "user"):
            user = made(client.post(path, json={**body, "email": new_email(), "role": plain}))
            assert client.get("/api/auth/me", headers=bearer(user)).json()["role"] == "user"
        assert client.post(path, json=body).status_code == 200  # the refusals kept nothing


def test_registration_with_a_role_is_refused_for_admins_too(internet: httpx2.Client, strict_database_url: str) -> None:
    admin = register_admin(internet, strict_database_url)
    refused = internet.post("/api/users/register", json={**user_body(), "role": "admin"}, headers=bearer(admin))
    assert refused.status_code == 403


def test_users_cannot_change_their_own_role(internet: httpx2.Client, laptop: httpx2.Client) -> None:
    for client in (internet, laptop):
        user = register_user(client)
        for role in ("admin", "emperor"):
            refused = client.put("/api/users/me", json={"role": role, "city": "Medan"}, headers=bearer(user))
            assert refused.status_code == 403 and "/grants" in refused.json()["detail"]
        same = client.put("/api/users/me", json={"role": "user"}, headers=bearer(user)).json()
        assert (same["role"], same["city"], same["version"]) == ("user", None, user["version"])


def test_an_admin_can_give_up_the_role(internet: httpx2.Client, strict_database_url: str) -> None:
    register_admin(internet, strict_database_url)
    admin = register_admin(internet, strict_database_url)
    refused = internet.put("/api/users/me", json={"role": "emperor"}, headers=bearer(admin))
    assert (refused.status_code, refused.json()) == (400, {"detail": "role is one of: user, admin."})
    assert internet.put("/api/users/me", json={"role": "user"}, headers=bearer(admin)).json()["role"] == "user"


def test_for_strangers_there_are_no_users(internet: httpx2.Client, laptop: httpx2.Client) -> None:
    user = register_user(internet, **{**SEED, "email": new_email()})
    stranger, supplier = register_user(internet), register_supplier(internet)
    places = ("latitude", "longitude", "city", "province", "place_code")
    private = ("email", "phone", *places, "role", "ai_access_enabled")
    for headers in ({}, bearer(stranger), bearer(supplier)):
        for user_id in (user["id"], 999999999):
            hidden = internet.get(f"/api/users/{user_id}", headers=headers)
            assert (hidden.status_code, hidden.json()) == (404, {"detail": "User not found"})
            assert "ETag" not in hidden.headers
    assert laptop.get(f"/api/users/{register_user(laptop)['id']}").status_code == 200
    own = internet.get(f"/api/users/{user['id']}", headers=bearer(user)).json()
    assert own["name"] == "Jane Smith" and all(own[name] is not None for name in private)


def test_places_of_users_are_rounded_to_about_100_m(laptop: httpx2.Client) -> None:
    user = register_user(laptop, latitude=-6.208812, longitude=106.845599)
    assert (user["latitude"], user["longitude"]) == (-6.209, 106.846)


def test_zero_is_a_coordinate(laptop: httpx2.Client) -> None:
    user = register_user(laptop, latitude=0, longitude=109.3333)
    assert (user["latitude"], user["longitude"]) == (0, 109.333)


@pytest.mark.parametrize(
    "given",
    [
        {"name": ""},
        {"name": "x" * 200_000},
        {"name": None},
        {"name": "\x00\x00"},
        {"name": "\ud800"},
        {"name": 7},
        {"email": "nobody"},
        {"email": "a@b.example\x00"},
        {"email": "x" * 400 + "@example.com"},
        {"email": "\ufdfa" * 20 + "@example.com"},
        {"latitude": math.nan, "longitude": 1},
        {"latitude": 999, "longitude": 1},
        {"latitude": 1, "longitude": 180.5},
        {"latitude": 1},
        {"longitude": 1},
        {"phone": "call me"},
        {"phone": "+62"},
        {"phone": "123"},
        {"password": "short"},
        {"city": []},
    ],
    ids=lambda given: str(given)[:40],
)
def test_invalid_fields_are_a_422_that_does_not_repeat_the_value(laptop: httpx2.Client, given: dict[str, Any]) -> None:
    content = json.dumps({**user_body(), **given})
    answer = laptop.post("/api/users/register", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422 and len(answer.content) < 2000
    assert isinstance(answer.json()["detail"], list)


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("0812-3456-7890", "+6281234567890"),
        ("+62 812 3456 7890", "+6281234567890"),
        ("+62856789012", "+62856789012"),
        ("+1 650 253 0000", "+16502530000"),
    ],
)
def test_phone_numbers_are_stored_in_e164(laptop: httpx2.Client, typed: str, stored: str) -> None:
    assert register_user(laptop, phone=typed)["phone"] == stored


def test_an_email_in_other_letter_case_is_the_same_user(laptop: httpx2.Client) -> None:
    email = new_email()
    register_user(laptop, email=email)
    again = laptop.post("/api/users/register", json={**user_body(), "email": email.upper()})
    assert (again.status_code, again.json()) == (400, {"detail": "Email already registered"})


def test_an_unknown_user_is_a_404(laptop: httpx2.Client) -> None:
    missing = laptop.get("/api/users/999999999")
    assert (missing.status_code, missing.json()) == (404, {"detail": "User not found"})
    for odd in (str(2**63), "0", "-1", "one"):
        assert laptop.get(f"/api/users/{odd}").status_code == 422


def test_an_update_changes_only_the_sent_fields(internet: httpx2.Client) -> None:
    user = register_user(internet, **{**SEED, "email": new_email()})
    changed = internet.put("/api/users/me", json={"phone": None, "name": "Jane Doe"}, headers=bearer(user)).json()
    assert (changed["name"], changed["phone"], changed["city"]) == ("Jane Doe", None, "Jakarta")
    assert changed["version"] == user["version"] + 1
    placed = internet.put("/api/users/me", json={"latitude": None, "longitude": None}, headers=bearer(user)).json()
    assert (placed["latitude"], placed["longitude"]) == (None, None)


def test_an_update_without_changes_keeps_the_version(internet: httpx2.Client) -> None:
    user = register_user(internet, **{**SEED, "email": new_email()})
    for same in ({}, {"name": user["name"], "latitude": user["latitude"], "longitude": user["longitude"]}):
        changed = internet.put("/api/users/me", json=same, headers=bearer(user))
        assert changed.json()["version"] == user["version"]
    log = internet.get("/api/users/me/export", headers=bearer(user)).json()["audit_log"]
    assert [line["action"] for line in log] == ["user.register"]


@pytest.mark.parametrize("given", [{"name": None}, {"latitude": 1}, {"latitude": None}, {"role": None}, {"version": 0}])
def test_an_incomplete_place_or_empty_name_is_a_422(internet: httpx2.Client, given: dict[str, Any]) -> None:
    user = register_user(internet)
    assert internet.put("/api/users/me", json=given, headers=bearer(user)).status_code == 422


def test_of_two_updates_of_one_version_the_second_is_a_412(internet: httpx2.Client) -> None:
    user = register_user(internet)
    seen = internet.get(f"/api/users/{user['id']}", headers=bearer(user)).headers["ETag"]
    first = internet.put("/api/users/me", json={"city": "Bandung"}, headers={**bearer(user), "If-Match": seen})
    second = internet.put("/api/users/me", json={"city": "Medan"}, headers={**bearer(user), "If-Match": seen})
    assert (first.status_code, second.status_code) == (200, 412)
    body_too = internet.put("/api/users/me", json={"city": "Medan", "version": 1}, headers=bearer(user))
    assert body_too.status_code == 412
    fresh = internet.put(
        "/api/users/me", json={"city": "Medan"}, headers={**bearer(user), "If-Match": first.headers["ETag"]}
    )
    assert fresh.json()["city"] == "Medan"


def test_admins_page_through_all_users(internet: httpx2.Client, strict_database_url: str) -> None:
    admin = register_admin(internet, strict_database_url)
    for _ in range(3):
        register_user(internet)
    first = internet.get("/api/users?limit=2", headers=bearer(admin))
    ids = [user["id"] for user in first.json()]
    while "next" in first.links:
        first = internet.get(first.links["next"]["url"], headers=bearer(admin))
        ids += [user["id"] for user in first.json()]
    assert ids == sorted(set(ids)) and len(ids) == int(first.headers["X-Total-Count"]) >= 4


def test_reads_of_personal_data_by_admins_are_in_the_audit_log(
    internet: httpx2.Client, strict_database_url: str
) -> None:
    admin, user = register_admin(internet, strict_database_url), register_user(internet)
    for reader in (user, register_user(internet), admin):
        internet.get(f"/api/users/{user['id']}", headers=bearer(reader))
    internet.get("/api/users?limit=100", headers=bearer(admin))
    internet.get(f"/api/users/{admin['id']}", headers=bearer(admin))
    log = internet.get("/api/users/me/export", headers=bearer(user)).json()["audit_log"]
    reads = [line["actor"] for line in log if line["action"] == "user.read"]
    assert reads == [f"user:{admin['id']}"] * 2
    own = internet.get("/api/users/me/export", headers=bearer(admin)).json()["audit_log"]
    assert not [one for one in own if one["action"] == "user.read" and one["entity_id"] == str(admin["id"])]


def test_grants_by_admins_are_in_the_audit_log(internet: httpx2.Client, strict_database_url: str) -> None:
    admin, user = register_admin(internet, strict_database_url), register_user(internet)
    granted = internet.put(
        f"/api/users/{user['id']}/grants", json={"ai_access_enabled": True, "role": "admin"}, headers=bearer(admin)
    )
    assert (granted.json()["ai_access_enabled"], granted.json()["role"]) == (True, "admin")
    log = internet.get("/api/users/me/export", headers=bearer(user)).json()["audit_log"]
    [line] = [line for line in log if line["action"] == "user.grant"]
    assert line["actor"] == f"user:{admin['id']}"
    assert line["changes"] == {"ai_access_enabled": [False, True], "role": ["user", "admin"]}
    taken = internet.put(f"/api/users/{user['id']}/grants", json={"role": "user"}, headers=bearer(admin))
    assert taken.json()["role"] == "user"
