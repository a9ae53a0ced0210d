"""The way into an account: a closed part says how to get in, a form what is wrong, and links in mails are followed."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitor
from tests.browser.looks import on_both_screens, on_both_screens_too
from tests.browser.page_watch import require_accessible
from tests.browser.shop_page import ShopPage, sample_market
from tests.marketplace.conftest import SECRET
from tests.marketplace.mailbox import Mailbox
from tests.serving import Served, served, settings_with
from tis.marketplace.kit.signing import Signer
from tis.marketplace.notices.unsubscribing import unsubscribe_token

_OLD, _NEW = "a long sentence", "another long sentence"


@pytest.fixture(scope="module")
def mailbox(tmp_path_factory: pytest.TempPathFactory) -> Mailbox:
    return Mailbox(tmp_path_factory.mktemp("mails"))


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return sample_market(tmp_path_factory.mktemp("links"))


@pytest.fixture(scope="module")
def server(database: str, mailbox: Mailbox) -> Iterator[Served]:
    settings = settings_with(
        database_url=database, jwt_secret_key=SECRET, mail_folder=str(mailbox.folder), assistant_model="off"
    )
    with served(settings) as running:
        yield running


@on_both_screens
def test_a_part_that_needs_an_account_has_the_way_in(visitor: Visitor, server: Served) -> None:
    page, t = visitor.open(f"{server.url}/shop"), visitor.t
    door = page.locator(".door")
    for part in ("holds", "orders", "messages", "saved", "account"):
        page.goto(f"{server.url}/shop#/{part}")
        page.reload()  # as whoever opens the address
        expect(door.get_by_role("heading", level=2)).to_be_visible()
        require_accessible(page)
        visitor.picture(page, f"shop-door-{part}")
        door.get_by_role("button", name=t("account.login"), exact=True).click()
        email = page.get_by_role("dialog").get_by_role("textbox", name=t("account.email"), exact=True)
        expect(email).to_be_visible()


@on_both_screens_too
def test_a_password_that_everybody_tries_is_refused_at_its_field(visitor: Visitor, server: Served) -> None:
    visitor.expected = ("422",)
    page, t = visitor.open(f"{server.url}/shop#/account"), visitor.t
    shop = ShopPage(page, visitor.look)
    page.locator(".door").get_by_role("button").click()
    shop.dialog.get_by_role("button", name=t("account.register"), exact=True).click()
    for field, value in (("name", "Dewi Specimen"), ("email", "dewi@localhost"), ("password", "password")):
        shop.dialog.get_by_role("textbox", name=t(f"account.{field}"), exact=True).fill(value)
    shop.dialog.get_by_role("button", name=t("account.register.do"), exact=True).click()
    password = shop.dialog.get_by_role("textbox", name=t("account.password"), exact=True)
    expect(password).to_have_attribute("aria-invalid", "true")
    expect(shop.dialog.get_by_text(t("account.password.weak"), exact=True)).to_be_visible()
    expect(shop.dialog.get_by_text(t("account.email.wrong"), exact=True)).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "account-wrong-fields")


@on_both_screens
def test_who_forgot_the_password_sets_a_new_one_by_the_link_in_the_mail(
    visitor: Visitor, server: Served, mailbox: Mailbox
) -> None:
    email, t = f"forgetful-{visitor.look.size}@example.com", visitor.t
    _register(server, email)
    page = visitor.open(f"{server.url}/shop#/account")
    shop = ShopPage(page, visitor.look)
    page.locator(".door").get_by_role("button").click()
    shop.dialog.get_by_role("button", name=t("account.forgot"), exact=True).click()
    shop.dialog.get_by_role("textbox", name=t("account.email"), exact=True).fill(email)
    shop.dialog.get_by_role("button", name=t("account.forgot.do"), exact=True).click()
    expect(shop.dialog.get_by_text(t("account.sent"), exact=True)).to_be_visible()
    secret = mailbox.wait_for(email, "reset")

    visitor.expected = ("422", "400")
    mail = visitor.open(f"{server.url}/api/auth/link#reset={secret}")
    expect(mail).to_have_url(f"{server.url}/account/link")  # the secret is not in the history
    field = mail.get_by_label(t("account.password.new"), exact=True)
    submit = mail.get_by_role("button", name=t("link.reset.do"), exact=True)
    expect(field).to_be_focused()
    require_accessible(mail)
    visitor.picture(mail, "link-reset")
    field.fill("password")
    submit.click()
    expect(mail.get_by_text(t("account.password.weak"), exact=True)).to_be_visible()
    field.fill(_NEW)
    submit.click()
    expect(mail.get_by_text(t("link.reset.done"), exact=True)).to_be_visible()
    require_accessible(mail)
    answer = httpx2.post(f"{server.url}/api/auth/login", json={"email": email, "password": _NEW})
    assert answer.status_code == 200, answer.text
    again = visitor.open(f"{server.url}/api/auth/link#reset={secret}")
    again.get_by_label(t("account.password.new"), exact=True).fill(_OLD)
    again.get_by_role("button", name=t("link.reset.do"), exact=True).click()
    expect(again.get_by_text(t("link.void"), exact=True)).to_be_visible()


@on_both_screens_too
def test_an_email_is_confirmed_by_a_press_of_the_button(visitor: Visitor, server: Served, mailbox: Mailbox) -> None:
    email, t = f"new-{visitor.look.size}@example.com", visitor.t
    account = _register(server, email)
    mail = visitor.open(f"{server.url}/api/auth/link?utm_source=mail#confirm={mailbox.wait_for(email, 'confirm')}")
    expect(mail.get_by_role("heading", name=t("link.confirm"), exact=True)).to_be_visible()
    assert not _is_confirmed(server, account), "to follow a link is not to confirm: scanners of mails do it"
    mail.get_by_role("button", name=t("link.confirm.do"), exact=True).click()
    expect(mail.get_by_text(t("link.confirm.done"), exact=True)).to_be_visible()
    assert _is_confirmed(server, account)
    visitor.picture(mail, "link-confirmed")
    mail.reload()
    expect(mail.get_by_text(t("link.incomplete"), exact=True)).to_be_visible()
    require_accessible(mail)


@on_both_screens_too
def test_mails_are_stopped_by_a_press_of_the_button(visitor: Visitor, server: Served) -> None:
    email, t = f"tired-{visitor.look.size}@example.com", visitor.t
    account = _register(server, email)
    token = unsubscribe_token(Signer(SECRET.encode()), f"user:{account['id']}", ["orders"], email)
    mail = visitor.open(f"{server.url}/api/notices/unsubscribe?token={token}&utm_source=mail")
    stop = mail.get_by_role("button", name=t("link.unsubscribe.do"), exact=True)
    expect(stop).to_be_visible()
    assert "orders" in _mails(server, account)
    require_accessible(mail)
    visitor.picture(mail, "link-unsubscribe")
    stop.click()
    expect(mail.get_by_text(t("link.unsubscribe.done"), exact=True)).to_be_visible()
    assert "orders" not in _mails(server, account)
    visitor.expected = ("400",)
    other = visitor.open(f"{server.url}/api/notices/unsubscribe?token={token[:-1]}")
    other.get_by_role("button", name=t("link.unsubscribe.do"), exact=True).click()
    expect(other.get_by_text(t("link.unsubscribe.void"), exact=True)).to_be_visible()


def _register(server: Served, email: str) -> dict[str, Any]:
    given = {"name": "Dewi Specimen", "email": email, "password": _OLD}
    answer = httpx2.post(f"{server.url}/api/users/register", json=given)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


def _is_confirmed(server: Served, account: dict[str, Any]) -> bool:
    headers = {"Authorization": f"Bearer {account['access_token']}"}
    return bool(httpx2.get(f"{server.url}/api/auth/me", headers=headers).json()["email_confirmed"])


def _mails(server: Served, account: dict[str, Any]) -> list[str]:
    """The kinds of news that come by mail."""
    headers = {"Authorization": f"Bearer {account['access_token']}"}
    kinds: list[str] = httpx2.get(f"{server.url}/api/notices/preferences", headers=headers).json()["mail"]
    return kinds
