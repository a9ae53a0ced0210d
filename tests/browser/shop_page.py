"""The shop as a buyer handles it, on this screen and in this language."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.looks import PageLook
from tests.marketplace.conftest import SECRET
from tests.serving import REPOSITORY, bare_environment, pictures_url


def sample_market(folder: Path) -> str:
    """The address of a database with the goods of `make demo`: a copy, as to make one takes 3 seconds."""
    shutil.copy(Path(_sample().name) / "market.db", folder)
    return f"sqlite:///{folder / 'market.db'}"


@cache
def _sample() -> "tempfile.TemporaryDirectory[str]":
    """Once in each process of the tests."""
    folder = tempfile.TemporaryDirectory(prefix="tis-tests-")
    fill_with_sample(f"sqlite:///{folder.name}/market.db")
    return folder


def fill_with_sample(url: str) -> str:
    variables = {"DATABASE_URL": url, "PICTURES_URL": pictures_url(), "JWT_SECRET_KEY": SECRET}
    command = [sys.executable, "seed_data.py"]
    subprocess.run(command, cwd=REPOSITORY, env={**bare_environment(), **variables}, check=True)
    return url


class ShopPage:
    def __init__(self, page: Page, look: PageLook) -> None:
        self.page, self.look, self.t = page, look, look.t
        self.field = page.get_by_role("combobox", name=look.t("shop.search"), exact=True)
        self.goods = page.locator(".results .goods > article")
        self.names = self.goods.locator(".product-name")
        self.dialog = page.get_by_role("dialog")

    def button(self, message: str, /, **values: object) -> Locator:
        return self.page.get_by_role("button", name=self.t(message, **values), exact=True)

    def search(self, text: str) -> None:
        self.field.fill(text)
        self.button("shop.search.do").click()

    def chip(self, label: str) -> Locator:
        """The button that takes a filter away."""
        return self.button("shop.chip.remove", name=label)

    def tick(self, group: str, value: str) -> None:
        """A filter; on a phone they are in a drawer."""
        if self.look.is_phone:
            self.button("shop.filters").click()
        filters = self.page.get_by_role("group", name=self.t(group), exact=True)
        filters.get_by_text(value, exact=True).click()
        if self.look.is_phone:
            self.button("shop.filters.done").click()

    def until_found(self, *names: str) -> None:
        """These goods and no others, in this order."""
        expect(self.names).to_have_text(list(names))

    def assistant(self) -> Locator:
        """Its panel, which stands open on a wide screen."""
        if self.look.is_phone:
            self.button("shop.assistant").click()
            return self.dialog
        return self.page.get_by_role("complementary", name=self.t("shop.assistant"), exact=True)

    def register(self, name: str, email: str, password: str, picture: Callable[[], None] = lambda: None) -> None:
        """In the form that asks to sign in."""
        self.dialog.get_by_role("button", name=self.t("account.register"), exact=True).click()
        for field, value in (("name", name), ("email", email), ("password", password)):
            self.dialog.get_by_role("textbox", name=self.t(f"account.{field}"), exact=True).fill(value)
        picture()
        self.dialog.get_by_role("button", name=self.t("account.register.do"), exact=True).click()
        expect(self.dialog).to_have_count(0)

    def account(self, message: str) -> None:
        """An item of the menu of whoever is signed in."""
        self.page.get_by_role("button", name=self.look.pattern("account.of")).click()
        self.page.get_by_role("menuitem", name=self.t(message), exact=True).click()
