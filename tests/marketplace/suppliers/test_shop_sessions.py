"""A removed owner cannot come back by the token of the shop, and a co-owner cannot erase the shop by ending it."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import update

from tests.marketplace.accounts import (
    PASSWORD,
    all_at_once,
    bearer,
    employ,
    made,
    new_email,
    register_admin,
    register_supplier,
    register_user,
)
from tests.marketplace.mailbox import Mailbox
from tis.database.database import Database
from tis.marketplace.columns import now
from tis.marketplace.tables import RefreshToken

NEW = "another long sentence"


@pytest.fixture
def mailbox(mail_folder: Path) -> Mailbox:
    return Mailbox(mail_folder)


def shop_with_two_owners(client: httpx2.Client, **shop: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The user who registered it, a co-owner by invitation, and the shop with its tokens and `path`."""
    first, second = register_user(client, name="Andi"), register_user(client, name="Budi")
    shop = register_supplier(client, bearer(first), **shop)
    shop["path"] = f"/api/suppliers/{shop['id']}"
    employ(client, first, shop["path"], second, "owner")
    return first, second, shop


def sign_in(client: httpx2.Client, shop: dict[str, Any], agent: str) -> dict[str, Any]:
    body = {"email": shop["email"], "password": PASSWORD, "kind": "supplier"}
    return made(client.post("/api/auth/login", json=body, headers={"User-Agent": agent}))


def delete_sessions(client: httpx2.Client, caller: dict[str, Any], shop: dict[str, Any]) -> httpx2.Response:
    return client.delete(f"{shop['path']}/sessions", headers=bearer(caller))


def end_all(client: httpx2.Client, caller: dict[str, Any], shop: dict[str, Any]) -> int:
    return delete_sessions(client, caller, shop).status_code


def listed(client: httpx2.Client, caller: dict[str, Any], shop: dict[str, Any]) -> list[dict[str, Any]]:
    answer = client.get(f"{shop['path']}/sessions", headers=bearer(caller))
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store"), answer.text
    sessions: list[dict[str, Any]] = answer.json()
    return sessions


def refresh(client: httpx2.Client, tokens: dict[str, Any]) -> httpx2.Response:
    return client.post("/api/auth/refresh", json={"refresh_token": tokens["refresh_token"]})


def invite(client: httpx2.Client, caller: dict[str, Any], path: str, user: dict[str, Any]) -> int:
    body = {"user_id": user["id"], "role": "owner"}
    return client.post(f"{path}/members", json=body, headers=bearer(caller)).status_code


def accept(client: httpx2.Client, shop: dict[str, Any], user: dict[str, Any]) -> int:
    return client.post(f"/api/users/me/invitations/{shop['id']}/accept", headers=bearer(user)).status_code


def is_signed_in(client: httpx2.Client, tokens: dict[str, Any]) -> bool:
    return client.get("/api/auth/me", headers=bearer(tokens)).status_code == 200


def test_a_removed_owner_cannot_come_back_by_the_token_of_the_shop(internet: httpx2.Client) -> None:
    removed, owner, shop = shop_with_two_owners(internet)
    members = f"{shop['path']}/members"
    assert internet.delete(f"{members}/{removed['id']}", headers=bearer(owner)).status_code == 200
    assert invite(internet, shop, shop["path"], removed) == 200  # this was the way back
    accomplice = register_user(internet)
    assert invite(internet, shop, shop["path"], accomplice) == 200
    [held] = listed(internet, owner, shop)
    assert held["is_current"] is False

    assert end_all(internet, owner, shop) == 200
    assert listed(internet, owner, shop) == []
    assert [accept(internet, shop, user) for user in (removed, accomplice)] == [404, 404]
    assert invite(internet, shop, shop["path"], removed) == 401  # its access token has not expired
    assert internet.delete(f"{members}/{owner['id']}", headers=bearer(shop)).status_code == 401
    assert refresh(internet, shop).status_code == 401
    assert end_all(internet, shop, shop) == 401 and end_all(internet, removed, shop) == 403
    assert [one["user_id"] for one in internet.get(members, headers=bearer(owner)).json()] == [owner["id"]]


def test_the_key_of_the_registration_gives_no_new_token_of_the_shop(internet: httpx2.Client) -> None:
    """Whoever registered the shop can repeat the request."""
    user, co_owner = register_user(internet), register_user(internet)
    body = {"name": "a", "business_name": "b", "email": new_email(), "latitude": 0, "longitude": 0, "city": "Solo"}
    headers = {**bearer(user), "Idempotency-Key": "a name of my own 1"}
    shop = made(internet.post("/api/suppliers/register", json=body, headers=headers))
    shop["path"] = f"/api/suppliers/{shop['id']}"
    employ(internet, user, shop["path"], co_owner, "owner")
    again = made(internet.post("/api/suppliers/register", json=body, headers=headers))
    assert again["id"] == shop["id"] and end_all(internet, co_owner, shop) == 200
    assert [is_signed_in(internet, one) for one in (shop, again)] == [False, False]
    assert internet.post("/api/suppliers/register", json=body, headers=headers).status_code == 409


def test_a_refresh_at_the_same_moment_does_not_save_the_session(internet: httpx2.Client) -> None:
    for _ in range(3):
        _, owner, shop = shop_with_two_owners(internet)
        answers = all_at_once(
            internet, partial(delete_sessions, caller=owner, shop=shop), partial(refresh, tokens=shop)
        )
        assert 200 in [answer.status_code for answer in answers]
        for answer in answers:
            if "access_token" in answer.json():
                assert not is_signed_in(internet, answer.json()) and refresh(internet, answer.json()).status_code == 401
        assert listed(internet, owner, shop) == []


def test_one_session_of_the_shop_is_ended_and_the_others_stay(internet: httpx2.Client) -> None:
    _, owner, shop = shop_with_two_owners(internet, password=PASSWORD)
    till, stolen = sign_in(internet, shop, "till"), sign_in(internet, shop, "stolen phone")
    found = {one["agent"]: one["id"] for one in listed(internet, owner, shop)}
    path = f"{shop['path']}/sessions"
    assert internet.delete(f"{path}/{found['stolen phone']}", headers=bearer(owner)).status_code == 200
    assert [is_signed_in(internet, one) for one in (till, stolen)] == [True, False]
    again = internet.delete(f"{path}/{found['stolen phone']}", headers=bearer(owner))
    assert (again.status_code, again.json()) == (404, {"detail": "Session not found"})
    [own] = internet.get("/api/auth/sessions", headers=bearer(owner)).json()
    assert internet.delete(f"{path}/{own['id']}", headers=bearer(owner)).status_code == 404  # no session of the shop
    assert internet.delete(f"{path}/x", headers=bearer(owner)).status_code == 422


def test_the_shop_itself_ends_all_but_its_own_session_and_keeps_its_invitations(internet: httpx2.Client) -> None:
    _, owner, shop = shop_with_two_owners(internet, password=PASSWORD)
    till, user = sign_in(internet, shop, "till"), register_user(internet)
    assert invite(internet, shop, shop["path"], user) == 200
    assert end_all(internet, shop, shop) == 200
    assert [one["is_current"] for one in listed(internet, shop, shop)] == [True]
    assert [is_signed_in(internet, one) for one in (shop, till, owner)] == [True, False, True]
    assert accept(internet, shop, user) == 200


def test_only_owners_end_the_sessions_of_a_shop_and_the_audit_log_says_who(
    internet: httpx2.Client, strict_database_url: str
) -> None:
    _, owner, shop = shop_with_two_owners(internet)
    editor, stranger, other_shop = register_user(internet), register_user(internet), register_supplier(internet)
    admin = register_admin(internet, strict_database_url)
    employ(internet, owner, shop["path"], editor)
    [session] = listed(internet, owner, shop)
    for path in (f"{shop['path']}/sessions", f"{shop['path']}/sessions/{session['id']}"):
        refused = [internet.delete(path, headers=bearer(who)) for who in (editor, stranger, other_shop, admin)]
        assert [answer.status_code for answer in refused] == [403] * 4
        assert internet.delete(path).status_code == 401
    assert is_signed_in(internet, shop)
    assert end_all(internet, owner, {"path": "/api/suppliers/999999999"}) == 404
    assert end_all(internet, owner, shop) == 200
    lines = internet.get(f"/api/audit?entity=supplier&entity_id={shop['id']}", headers=bearer(admin)).json()
    assert [one["actor"] for one in lines if one["action"] == "supplier.sign_out"] == [f"user:{owner['id']}"]


def end_sessions(client: httpx2.Client, rogue: dict[str, Any], shop: dict[str, Any]) -> None:
    assert end_all(client, rogue, shop) == 200


def end_one_session(client: httpx2.Client, rogue: dict[str, Any], shop: dict[str, Any]) -> None:
    [session] = listed(client, rogue, shop)
    path = f"{shop['path']}/sessions/{session['id']}"
    assert client.delete(path, headers=bearer(rogue)).status_code == 200


def close_and_restore(client: httpx2.Client, rogue: dict[str, Any], shop: dict[str, Any]) -> None:
    assert client.delete(shop["path"], headers=bearer(rogue)).status_code == 200
    assert client.post(f"{shop['path']}/restore", headers=bearer(rogue)).status_code == 200


@pytest.mark.parametrize("end", [end_sessions, end_one_session, close_and_restore])
def test_a_co_owner_who_ends_the_sessions_of_the_shop_cannot_erase_it(
    end: Callable[..., None], internet: httpx2.Client, strict_database_url: str
) -> None:
    founder, rogue, shop = shop_with_two_owners(internet, business_name="Toko Andi")
    assert internet.delete(f"{shop['path']}/members/{founder['id']}", headers=bearer(rogue)).status_code == 200
    end(internet, rogue, shop)
    assert refresh(internet, shop).status_code == 401  # as an app does: it uses up the newest token
    assert internet.delete("/api/users/me", headers=bearer(rogue)).status_code == 200
    admin = register_admin(internet, strict_database_url)
    left = internet.get(shop["path"], headers=bearer(admin)).json()
    assert (left["business_name"], left["email"]) == ("Toko Andi", shop["email"])


def test_an_ended_session_protects_the_shop_as_long_as_it_would_have_lasted(
    internet: httpx2.Client, strict_database_url: str
) -> None:
    """The one owner who is left may erase everything, once nobody else can be signed in."""
    removed, owner, shop = shop_with_two_owners(internet)
    assert internet.delete(f"{shop['path']}/members/{removed['id']}", headers=bearer(owner)).status_code == 200
    assert end_all(internet, owner, shop) == 200
    database = Database(strict_database_url)
    with database.writing() as session:
        of_shop = RefreshToken.account == f"supplier:{shop['id']}"
        session.execute(update(RefreshToken).where(of_shop).values(expires_at=now() - timedelta(seconds=1)))
    database.close()
    assert internet.delete("/api/users/me", headers=bearer(owner)).status_code == 200
    assert internet.get(shop["path"]).status_code == 404


def test_a_changed_or_reset_password_of_the_shop_ends_its_other_sessions(
    internet: httpx2.Client, mailbox: Mailbox
) -> None:
    _, owner, shop = shop_with_two_owners(internet, password=PASSWORD)
    till = sign_in(internet, shop, "till")
    change = {"password": NEW, "old_password": PASSWORD}
    assert internet.post("/api/auth/password", json=change, headers=bearer(till)).status_code == 200
    assert [is_signed_in(internet, one) for one in (shop, till)] == [False, True]
    internet.post("/api/auth/password/forgot", json={"email": shop["email"]})
    link = mailbox.wait_for(shop["email"], "reset")
    reset = {"token": link, "password": PASSWORD}
    assert internet.post("/api/auth/password/reset", json=reset).status_code == 200
    assert not is_signed_in(internet, till) and listed(internet, owner, shop) == []


def test_owners_take_back_a_shop_whose_password_and_mailbox_somebody_else_has(
    internet: httpx2.Client, mailbox: Mailbox
) -> None:
    """As docs/marketplace.md says: the e-mail first, as links to the old one are void then; then the password."""
    removed, owner, shop = shop_with_two_owners(internet)
    internet.delete(f"{shop['path']}/members/{removed['id']}", headers=bearer(owner))
    assert internet.post("/api/auth/password", json={"password": PASSWORD}, headers=bearer(shop)).status_code == 200
    theirs, ours = new_email(), new_email()
    change = {"email": theirs, "password": PASSWORD}
    assert internet.post("/api/auth/email", json=change, headers=bearer(shop)).status_code == 200
    their_link = mailbox.wait_for(theirs, "change")
    assert end_all(internet, owner, shop) == 200
    assert internet.post("/api/auth/email/confirm", json={"token": their_link}).status_code == 400

    body = {"email": ours, "supplier_id": shop["id"]}
    assert internet.post("/api/auth/email", json=body, headers=bearer(owner)).status_code == 200
    link = mailbox.wait_for(ours, "change")
    assert internet.post("/api/auth/email/confirm", json={"token": link}).status_code == 200
    internet.post("/api/auth/password/forgot", json={"email": ours})
    reset = {"token": mailbox.wait_for(ours, "reset"), "password": NEW}
    assert internet.post("/api/auth/password/reset", json=reset).status_code == 200
    for email in (shop["email"], ours):
        body = {"email": email, "password": PASSWORD, "kind": "supplier"}
        assert internet.post("/api/auth/login", json=body).status_code == 401
