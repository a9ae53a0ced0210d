"""Accounts choose what comes by mail; the link in a mail turns it off without signing in, and no other link does."""

import base64
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.marketplace.accounts import bearer, employ, register_supplier, register_user
from tests.marketplace.shop import Shop
from tis.marketplace.columns import now
from tis.marketplace.notices.unsubscribing import PATH, unsubscribe_token

OWN = "/api/notices/preferences"
CHOSEN: dict[str, Any] = {
    "mail": ["holds", "orders"],
    "digest": "daily",
    "digest_hour": 8,
    "quiet_hours": {"from": "21:30", "until": "06:00"},
    "time_zone": "WITA",
    "language": "en",
    "low_stock_below": None,
}


@pytest.fixture
def reader(strict_shop: Shop) -> tuple[str, dict[str, str], str]:
    """An account with a mailbox: its name, its headers and its e-mail."""
    email = f"{uuid4().hex}@example.com"
    number = strict_shop.user(email=email, email_key=email, email_confirmed_at=now())
    return f"user:{number}", strict_shop.auth_headers(f"user:{number}"), email


def link(shop: Shop, account: str, email: str, *groups: str) -> str:
    with shop.market.reading():
        return f"{PATH}?token={unsubscribe_token(shop.market.signer, account, groups, email)}"


def test_an_account_has_defaults_and_replaces_them(
    internet: httpx2.Client, reader: tuple[str, dict[str, str], str]
) -> None:
    _, headers, _ = reader
    default = internet.get(OWN, headers=headers).json()
    assert default["mail"] == ["account", "messages", "orders", "prices", "stock"]
    assert (default["digest"], default["quiet_hours"], default["time_zone_in_use"]) == ("now", None, "WIB")
    assert default["email_confirmed"] is True
    for _ in range(2):
        changed = internet.put(OWN, json=CHOSEN, headers=headers)
        assert changed.status_code == 200, changed.text
    shown = internet.get(OWN, headers=headers).json()
    assert shown == changed.json() == {**CHOSEN, "time_zone_in_use": "WITA", "email_confirmed": True}
    assert internet.put(OWN, json={"mail": []}, headers=headers).json()["digest"] == "now"
    export = internet.get("/api/users/me/export", headers=headers).json()
    assert export["notice_preferences"][0]["mail"] == [] and export["notice_deliveries"] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"mail": ["gossip"]},
        {"mail": [], "digest": "weekly"},
        {"mail": [], "digest_hour": 24},
        {"mail": [], "quiet_hours": {"from": "25:00", "until": "06:00"}},
        {"mail": [], "quiet_hours": {"from": "21:00"}},
        {"mail": [], "time_zone": "CET"},
        {"mail": [], "language": "jv"},
        {"digest": "now"},
    ],
)
def test_what_is_no_preference_is_refused(
    internet: httpx2.Client, reader: tuple[str, dict[str, str], str], wrong: dict[str, Any]
) -> None:
    assert internet.put(OWN, json=wrong, headers=reader[1]).status_code == 422


def test_owners_choose_for_the_shop_and_editors_do_not(
    internet: httpx2.Client, reader: tuple[str, dict[str, str], str]
) -> None:
    owner, helper = register_user(internet), register_user(internet)
    shop = register_supplier(internet, bearer(owner))
    employ(internet, owner, f"/api/suppliers/{shop['id']}", helper)
    path = f"/api/suppliers/{shop['id']}/notices/preferences"
    chosen = internet.put(path, json={**CHOSEN, "low_stock_below": 3}, headers=bearer(owner))
    assert chosen.status_code == 200 and chosen.json()["low_stock_below"] == 3
    assert internet.get(path, headers=bearer(shop)).json()["low_stock_below"] == 3
    assert internet.get(OWN, headers=bearer(shop)).json()["low_stock_below"] == 3
    assert internet.get(OWN, headers=bearer(owner)).json()["low_stock_below"] is None
    for account in (helper, register_user(internet)):
        assert internet.put(path, json=CHOSEN, headers=bearer(account)).status_code == 403
    low = internet.put(OWN, json={**CHOSEN, "low_stock_below": 3}, headers=reader[1])
    assert low.status_code == 400 and "of a shop" in low.json()["detail"]


def test_the_link_of_a_mail_turns_off_what_the_mail_was_about(
    internet: httpx2.Client, strict_shop: Shop, reader: tuple[str, dict[str, str], str]
) -> None:
    account, headers, email = reader
    address = link(strict_shop, account, email, "orders", "stock")
    way = internet.get(f"{address}&utm_source=mail", follow_redirects=False)
    token = address.partition("token=")[2]
    assert (way.status_code, way.headers["location"]) == (302, f"../../account/link#unsubscribe={token}")
    assert internet.get(address, follow_redirects=True).status_code == 200
    assert "orders" in internet.get(OWN, headers=headers).json()["mail"], "to look at the page turns nothing off"
    for _ in range(2):  # as mail programs send it
        pressed = internet.post(f"{address}&utm_source=mail", data={"List-Unsubscribe": "One-Click"})
        assert pressed.status_code == 200 and pressed.json() == {"detail": "Such mails are off."}
    assert internet.get(OWN, headers=headers).json()["mail"] == ["account", "messages", "prices"]


def test_no_other_link_turns_anything_off(
    internet: httpx2.Client, strict_shop: Shop, reader: tuple[str, dict[str, str], str]
) -> None:
    account, headers, email = reader
    good = link(strict_shop, account, email, "orders").partition("token=")[2]
    head, _, signature = good.partition(".")
    said = base64.urlsafe_b64encode(f"{account} holds,orders".encode()).decode().rstrip("=")
    other = base64.urlsafe_b64encode(f"user:{int(account.partition(':')[2]) + 1} orders".encode()).decode().rstrip("=")
    nobody = base64.urlsafe_b64encode(b"user:999999999 orders").decode().rstrip("=")
    former = link(strict_shop, account, "former@example.com", "orders").partition("token=")[2]
    forged = [f"{said}.{signature}", f"{other}.{signature}", f"{nobody}.{signature}", former, head, f"{head}."]
    forged += [good[:-1], good + "a", "x", "é.é", f"{head}.{'0' * 40}", f"AAAA.{signature}", f"dXNlcjo.{signature}"]
    for token in forged:
        answer = internet.post(PATH, params={"token": token})
        assert (answer.status_code, "not complete" in answer.json()["detail"]) == (400, True), token
    assert internet.post(PATH).status_code == 422
    assert "orders" in internet.get(OWN, headers=headers).json()["mail"]
    evil = internet.get(PATH, params={"token": '"><script>#\r\nX-Evil: 1'}, follow_redirects=False)
    assert evil.headers["location"].endswith("#unsubscribe=%22%3E%3Cscript%3E%23%0D%0AX-Evil%3A%201")
