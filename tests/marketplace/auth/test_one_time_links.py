"""Forgotten passwords, confirmed and changed e-mails: what the mail says, and that its link works once."""

from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import update

from tests.marketplace.accounts import (
    PASSWORD,
    all_at_once,
    bearer,
    made,
    new_email,
    register_supplier,
    register_user,
)
from tests.marketplace.conftest import SECRET
from tests.marketplace.mailbox import Mailbox, text_of
from tests.serving import served, settings_with
from tis.database.database import Database
from tis.marketplace.columns import now
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.tables import OneTimeLink

NEW = "another long sentence"


@pytest.fixture
def mailbox(mail_folder: Path) -> Mailbox:
    return Mailbox(mail_folder)


def login(client: httpx2.Client, email: str, password: str) -> int:
    return client.post("/api/auth/login", json={"email": email, "password": password}).status_code


def forgot(client: httpx2.Client, email: str, **more: str) -> httpx2.Response:
    return client.post("/api/auth/password/forgot", json={"email": email, **more})


def reset(client: httpx2.Client, secret: str, password: str = NEW) -> httpx2.Response:
    return client.post("/api/auth/password/reset", json={"token": secret, "password": password})


def confirm(client: httpx2.Client, secret: str) -> httpx2.Response:
    return client.post("/api/auth/email/confirm", json={"token": secret})


def account(client: httpx2.Client, tokens: dict[str, Any]) -> dict[str, Any]:
    return made(client.get("/api/auth/me", headers=bearer(tokens)))


def test_a_forgotten_password_is_reset_by_mail_and_all_sessions_end(
    internet: httpx2.Client, mailbox: Mailbox, caplog: pytest.LogCaptureFixture
) -> None:
    user = register_user(internet, password=PASSWORD)
    with caplog.at_level("INFO", "tis"):
        assert forgot(internet, user["email"].upper()).status_code == 200
        secret = mailbox.wait_for(user["email"], "reset")
    assert reset(internet, secret).status_code == 200
    assert internet.get("/api/auth/me", headers=bearer(user)).status_code == 401
    assert (login(internet, user["email"], PASSWORD), login(internet, user["email"], NEW)) == (401, 200)
    again = reset(internet, secret, "a third long sentence")
    assert (again.status_code, again.json()["detail"][:18]) == (400, "This link was used")
    assert user["email"] not in caplog.text and secret not in caplog.text


def test_the_answer_is_the_same_for_an_email_that_nobody_has(internet: httpx2.Client, mailbox: Mailbox) -> None:
    user, nobody = register_user(internet), new_email()
    unknown, known = forgot(internet, nobody), forgot(internet, user["email"])
    assert (unknown.status_code, unknown.json()) == (known.status_code, known.json()) == (200, known.json())
    mailbox.wait_for(user["email"], "reset")  # behind the other one in the queue
    assert mailbox.mails_to(nobody) == []


def test_a_user_and_a_supplier_with_one_email_get_a_link_each(internet: httpx2.Client, mailbox: Mailbox) -> None:
    user = register_user(internet)
    supplier = register_supplier(internet, email=user["email"], password=PASSWORD)
    forgot(internet, user["email"], kind="supplier")
    assert reset(internet, mailbox.wait_for(user["email"], "reset")).status_code == 200
    assert internet.get("/api/auth/me", headers=bearer(supplier)).status_code == 401
    assert internet.get("/api/auth/me", headers=bearer(user)).status_code == 200
    forgot(internet, user["email"])
    mailbox.wait_for(user["email"], "reset", number=3)


def test_nobody_gets_more_than_three_links_an_hour(internet: httpx2.Client, mailbox: Mailbox) -> None:
    user, last = register_user(internet), register_user(internet)
    for _ in range(5):
        assert forgot(internet, user["email"]).status_code == 200
    forgot(internet, last["email"])
    mailbox.wait_for(last["email"], "reset")
    assert len([mail for mail in mailbox.mails_to(user["email"]) if "Reset" in mail["Subject"]]) == 3


def test_an_expired_or_unknown_link_is_a_400(
    internet: httpx2.Client, mailbox: Mailbox, strict_database_url: str
) -> None:
    user = register_user(internet)
    forgot(internet, user["email"])
    secret = mailbox.wait_for(user["email"], "reset")
    with closing(Market(Database(strict_database_url), MarketRules(jwt_secret=SECRET))) as market:
        with market.writing() as session:
            session.execute(update(OneTimeLink).values(expires_at=now() - timedelta(seconds=1)))
        for bad in (secret, "", "x", "\x00", "é", mailbox.wait_for(user["email"], "confirm")):
            refused = reset(internet, bad)
            assert (refused.status_code, refused.json()["detail"][:9]) == (400, "This link")
        market.delete_expired()
        with market.reading() as session:
            assert session.query(OneTimeLink).count() == 0


def test_of_concurrent_resets_with_one_link_one_wins(internet: httpx2.Client, mailbox: Mailbox) -> None:
    user = register_user(internet)
    forgot(internet, user["email"])
    secret = mailbox.wait_for(user["email"], "reset")
    answers = all_at_once(internet, *[lambda client: reset(client, secret)] * 4)
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400]


def test_a_weak_or_own_password_does_not_use_up_the_link(internet: httpx2.Client, mailbox: Mailbox) -> None:
    user = register_user(internet, name="Rangga Specimen")
    forgot(internet, user["email"])
    secret = mailbox.wait_for(user["email"], "reset")
    assert [reset(internet, secret, weak).status_code for weak in ("bismillah1", "ranggaspecimen")] == [422, 422]
    assert reset(internet, secret).status_code == 200


def test_a_registration_gets_a_mail_that_confirms_the_email(internet: httpx2.Client, mailbox: Mailbox) -> None:
    for register in (register_user, register_supplier):
        tokens = register(internet)
        assert account(internet, tokens)["email_confirmed"] is False
        assert confirm(internet, mailbox.wait_for(tokens["email"], "confirm")).status_code == 200
        assert account(internet, tokens)["email_confirmed"] is True
    sent = internet.post("/api/auth/email/confirmation", headers=bearer(tokens))
    assert sent.status_code == 200
    mailbox.wait_for(tokens["email"], "confirm", number=2)


def test_an_email_changes_when_the_new_address_follows_its_link(internet: httpx2.Client, mailbox: Mailbox) -> None:
    user, new = register_user(internet, password=PASSWORD), new_email()
    for wrong in ({}, {"password": "not that one"}):
        refused = internet.post("/api/auth/email", json={"email": new, **wrong}, headers=bearer(user))
        assert refused.status_code == 403
    forgot(internet, user["email"])
    old_link = mailbox.wait_for(user["email"], "reset")
    change = {"email": new, "password": PASSWORD}
    assert internet.post("/api/auth/email", json=change, headers=bearer(user)).status_code == 200
    secret = mailbox.wait_for(new, "change")
    assert account(internet, user)["email"] == user["email"]
    assert confirm(internet, secret).status_code == 200
    changed = account(internet, user)
    assert (changed["email"], changed["email_confirmed"]) == (new, True)
    assert (login(internet, user["email"], PASSWORD), login(internet, new, PASSWORD)) == (401, 200)
    assert reset(internet, old_link).status_code == 400  # the old mailbox has no more say
    assert any("change the e-mail address" in text_of(mail) for mail in mailbox.mails_to(user["email"]))


def test_whoever_takes_an_account_back_voids_its_links(internet: httpx2.Client, mailbox: Mailbox) -> None:
    """Somebody registered with another's e-mail and asked for a change to their own."""
    for take_back in (take_back_by_link, take_back_by_password):
        user, theirs = register_user(internet, password=PASSWORD), new_email()
        change = {"email": theirs, "password": PASSWORD}
        assert internet.post("/api/auth/email", json=change, headers=bearer(user)).status_code == 200
        secret = mailbox.wait_for(theirs, "change")
        take_back(internet, mailbox, user)
        assert confirm(internet, secret).status_code == 400
        assert login(internet, user["email"], NEW) == 200


def take_back_by_link(client: httpx2.Client, mailbox: Mailbox, user: dict[str, Any]) -> None:
    forgot(client, user["email"])
    reset(client, mailbox.wait_for(user["email"], "reset"))


def take_back_by_password(client: httpx2.Client, mailbox: Mailbox, user: dict[str, Any]) -> None:
    change = {"password": NEW, "old_password": PASSWORD}
    client.post("/api/auth/password", json=change, headers=bearer(user))


def test_an_account_that_asks_for_too_many_links_hears_so(internet: httpx2.Client) -> None:
    user = register_user(internet)  # which sent the first
    asked = [internet.post("/api/auth/email/confirmation", headers=bearer(user)) for _ in range(3)]
    assert [answer.status_code for answer in asked] == [200, 200, 429]
    assert int(asked[-1].headers["Retry-After"]) > 0


def test_an_email_that_was_registered_meanwhile_is_refused(internet: httpx2.Client, mailbox: Mailbox) -> None:
    user, new = register_user(internet), new_email()
    internet.post("/api/auth/email", json={"email": new}, headers=bearer(user))
    secret = mailbox.wait_for(new, "change")
    register_user(internet, email=new)
    refused = confirm(internet, secret)
    assert (refused.status_code, refused.json()["detail"]) == (400, "Email already registered")


def test_owners_change_the_email_of_their_supplier_by_a_link(internet: httpx2.Client, mailbox: Mailbox) -> None:
    owner, stranger, new = register_user(internet), register_user(internet), new_email()
    supplier = register_supplier(internet, bearer(owner))
    path = f"/api/suppliers/{supplier['id']}"
    refused = internet.put(path, json={"email": new}, headers=bearer(owner))
    assert refused.status_code == 409 and "/api/auth/email" in refused.json()["detail"]
    assert (
        internet.put(path, json={"email": supplier["email"], "phone": None}, headers=bearer(owner)).status_code == 200
    )
    body = {"email": new, "supplier_id": supplier["id"]}
    assert internet.post("/api/auth/email", json=body, headers=bearer(stranger)).status_code == 403
    assert internet.post("/api/auth/email", json=body, headers=bearer(owner)).status_code == 200
    assert confirm(internet, mailbox.wait_for(new, "change")).status_code == 200
    assert internet.get(path, headers=bearer(owner)).json()["email"] == new


def test_the_page_of_a_link_has_no_secret_and_loads_nothing_of_others(internet: httpx2.Client) -> None:
    way = internet.get("/api/auth/link?utm_source=mail", follow_redirects=False)
    assert way.status_code == 302 and way.headers["location"] == "../../account/link"
    assert way.headers["cache-control"] == "no-store" and way.headers["referrer-policy"] == "no-referrer"
    page = internet.get("/api/auth/link?utm_source=mail", follow_redirects=True)
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    assert page.headers["referrer-policy"] == "no-referrer" and "http" not in page.text
    assert "default-src 'none'; script-src 'self'" in page.headers["content-security-policy"]


def test_a_server_without_mails_says_so() -> None:
    with served(settings_with(jwt_secret_key=SECRET)) as running, httpx2.Client(base_url=running.url) as client:
        user = register_supplier(client)
        refused = forgot(client, user["email"])
        assert refused.status_code == 409 and "SMTP_HOST or MAIL_FOLDER" in refused.json()["detail"]
        assert client.post("/api/auth/email/confirmation", headers=bearer(user)).status_code == 409
        # Then the e-mail changes as ever.
        path, new = f"/api/suppliers/{user['id']}", new_email()
        assert client.put(path, json={"email": new}, headers=bearer(user)).json()["email"] == new
