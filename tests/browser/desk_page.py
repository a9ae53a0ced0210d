"""The desk of a shop as a seller handles it, on this screen and in this language."""

from playwright.sync_api import Locator, Page, expect

from tests.browser.looks import PageLook

_HELD_FILE = """([name, text]) => {
  const held = new DataTransfer();
  held.items.add(new File([text], name));
  return held;
}"""
_DROP_AT_ONCE = """([name, text]) => {
  const held = new DataTransfer();
  held.items.add(new File([text], name));
  new MutationObserver((_, observer) => {
    const zone = document.querySelector(".sheet-drop");
    if (!zone) return;
    observer.disconnect();
    zone.dispatchEvent(new DragEvent("drop", { dataTransfer: held, bubbles: true, cancelable: true }));
  }).observe(document.body, { childList: true, subtree: true });
}"""


class DeskPage:
    def __init__(self, page: Page, look: PageLook) -> None:
        self.page, self.look, self.t = page, look, look.t
        self.main = page.get_by_role("main")
        self.dialog = page.get_by_role("dialog")
        self.grid = page.get_by_role("grid", name=self.t("desk.goods"), exact=True)
        self.undo_bar = page.locator(".undo-bar")

    def button(self, message: str, /, **values: object) -> Locator:
        return self.page.get_by_role("button", name=self.t(message, **values), exact=True)

    def sign_in(self, email: str, password: str) -> None:
        self.button("account.login").first.click()
        for field, value in (("email", email), ("password", password)):
            self.dialog.get_by_role("textbox", name=self.t(f"account.{field}"), exact=True).fill(value)
        self.dialog.get_by_role("button", name=self.t("account.login.do"), exact=True).click()
        expect(self.dialog).to_have_count(0)

    def go_to(self, part: str) -> None:
        self.page.get_by_role("link", name=self.t(f"desk.{part}"), exact=True).first.click()
        expect(self.page.get_by_role("heading", level=1, name=self.t(f"desk.{part}"), exact=True)).to_be_visible()

    def row(self, name: str) -> Locator:
        return self.grid.get_by_role("row").filter(has=self.page.get_by_text(name, exact=True))

    def cell(self, name: str, field: str) -> Locator:
        return self.row(name).locator(f".is-{field}")

    def edit(self, name: str, field: str, text: str) -> Locator:
        """Types into a cell as a finger or a keyboard does, and leaves it by Enter."""
        cell = self.cell(name, field)
        if self.look.is_phone:
            cell.locator(".goods-value").tap()
        else:
            cell.locator(".goods-value").click()
            self.page.keyboard.press("F2")
        field_of_cell = cell.locator("input")
        field_of_cell.fill(text)
        field_of_cell.press("Enter")
        return cell

    def find(self, words: str) -> None:
        self.page.get_by_role("searchbox", name=self.t("goods.search")).fill(words)

    def drop_sheet(self, name: str, text: str) -> None:
        held = self.page.evaluate_handle(_HELD_FILE, [name, text])
        self.page.dispatch_event(".sheet-drop", "drop", {"dataTransfer": held})

    def drop_sheet_at_once(self, name: str, text: str) -> None:
        """As soon as there is a place to drop it on."""
        self.page.evaluate(_DROP_AT_ONCE, [name, text])

    def sheet_cell(self, field: str, row: int) -> Locator:
        """A wrong one: it is a field."""
        name = self.t("sheets.cell", field=self.t(f"goods.field.{field}"), number=row)
        return self.page.get_by_role("textbox", name=name, exact=True)

    def rupiah(self, value: int) -> str:
        return f"Rp {self.look.number(value)}"
