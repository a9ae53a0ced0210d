"""Where an account is signed in: listed, and ended one by one or all together. No cache keeps tokens."""

from typing import Any

import httpx2
import pytest

from tests.marketplace.accounts import PASSWORD, bearer, made, register_supplier, register_user

PHONE = "Mozilla/5.0 (Android 16)"


def login(client: httpx2.Client, email: str, agent: str = PHONE) -> dict[str, Any]:
    body = {"email": email, "password": PASSWORD}
    return made(client.post("/api/auth/login", json=body, headers={"User-Agent": agent}))


def sessions(client: httpx2.Client, tokens: dict[str, Any]) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = client.get("/api/auth/sessions", headers=bearer(tokens)).json()
    return listed


@pytest.mark.parametrize("register", [register_user, register_supplier])
def test_sessions_are_listed_with_their_program_and_time(internet: httpx2.Client, register: Any) -> None:
    here = register(internet, password=PASSWORD)
    register(internet)  # somebody else's
    elsewhere = login(internet, here["email"], agent=f"{PHONE}\t{'x' * 500}")
    newest, oldest = sessions(internet, here)
    assert (newest["is_current"], oldest["is_current"]) == (False, True)
    assert newest["agent"].startswith(PHONE) and len(newest["agent"]) == 200 and "\t" not in newest["agent"]
    refreshed = made(internet.post("/api/auth/refresh", json={"refresh_token": elsewhere["refresh_token"]}))
    [again] = [one for one in sessions(internet, refreshed) if one["is_current"]]
    assert again["id"] == newest["id"] and again["signed_in_at"] == newest["signed_in_at"]
    assert again["refreshed_at"] > newest["refreshed_at"]
    internet.post("/api/auth/logout", headers=bearer(refreshed))
    assert [one["id"] for one in sessions(internet, here)] == [oldest["id"]]


def test_one_session_is_ended(internet: httpx2.Client) -> None:
    user = register_user(internet, password=PASSWORD)
    lost, stranger = login(internet, user["email"]), register_user(internet)
    [session_id] = [one["id"] for one in sessions(internet, user) if not one["is_current"]]
    path = f"/api/auth/sessions/{session_id}"
    assert internet.delete(path, headers=bearer(stranger)).status_code == 404
    assert internet.delete(path, headers=bearer(user)).status_code == 200
    assert internet.get("/api/auth/me", headers=bearer(lost)).status_code == 401
    assert internet.post("/api/auth/refresh", json={"refresh_token": lost["refresh_token"]}).status_code == 401
    assert internet.delete(path, headers=bearer(user)).status_code == 404
    assert internet.delete("/api/auth/sessions/x", headers=bearer(user)).status_code == 422


def test_all_other_sessions_are_ended(internet: httpx2.Client) -> None:
    user = register_user(internet, password=PASSWORD)
    others = [login(internet, user["email"]) for _ in range(2)]
    assert internet.delete("/api/auth/sessions", headers=bearer(user)).status_code == 200
    assert [one["is_current"] for one in sessions(internet, user)] == [True]
    assert [internet.get("/api/auth/me", headers=bearer(one)).status_code for one in others] == [401, 401]


def test_no_cache_keeps_tokens_or_personal_data(internet: httpx2.Client) -> None:
    user = {"name": "Jane", "email": "no-store@example.com", "password": PASSWORD}
    place = {"business_name": "Toko", "latitude": 0, "longitude": 0, "city": "Pontianak"}
    signed_in = internet.post("/api/auth/register", json=user)
    tokens = signed_in.json()
    supplier = internet.post("/api/suppliers/register", json={**user, **place})
    answers = [
        signed_in,
        supplier,
        internet.post("/api/users/register", json={**user, "email": "no-store-2@example.com"}),
        internet.post("/api/auth/login", json={"email": user["email"], "password": PASSWORD}),
        internet.post("/api/auth/refresh", json={"refresh_token": tokens["refresh_token"]}),
        *[
            internet.get(path, headers=bearer(tokens))
            for path in ("/api/auth/me", "/api/auth/sessions", "/api/users/me/export")
        ],
        internet.get(f"/api/suppliers/{supplier.json()['id']}/export", headers=bearer(supplier.json())),
    ]
    assert {(answer.status_code, answer.headers.get("cache-control")) for answer in answers} == {(200, "no-store")}
