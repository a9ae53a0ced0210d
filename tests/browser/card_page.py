"""The page that reads identity cards as somebody handles it, and invented cards for it."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.browser.looks import PageLook
from tests.ktp.card_drawing import CardDrawing, draw_card
from tests.ktp.cards import SpecimenCard, make_card

# Whatever a page can leave behind in a browser.
_KEPT = """async () => ({
  local: { ...localStorage }, session: { ...sessionStorage }, cookies: document.cookie,
  databases: (await indexedDB.databases()).map((one) => one.name), caches: await caches.keys(),
})"""
_COUNT_ADDRESSES = """() => {
  window.addresses = new Set();
  const { createObjectURL, revokeObjectURL } = URL;
  URL.createObjectURL = (made) => {
    const url = createObjectURL.call(URL, made);
    window.addresses.add(url);
    return url;
  };
  URL.revokeObjectURL = (url) => { window.addresses.delete(url); revokeObjectURL.call(URL, url); };
}"""
NOTHING_KEPT: dict[str, Any] = {"local": {}, "session": {}, "cookies": "", "databases": [], "caches": []}


class CardPage:
    def __init__(self, page: Page, look: PageLook) -> None:
        self.page, self.look, self.t = page, look, look.t
        self.summary = page.locator(".card-summary")
        self.checks = page.locator(".card-check-list li")
        self.rows = page.locator(".card-table tbody tr")
        self.loupe = page.locator(".card-loupe")
        self.start = page.get_by_role("region", name=look.t("card.start"), exact=True)
        page.evaluate(_COUNT_ADDRESSES)

    def button(self, message: str, /, **values: object) -> Locator:
        return self.page.get_by_role("button", name=self.t(message, **values), exact=True)

    def choose(self, *pictures: Path) -> None:
        self.page.locator("input[type=file][multiple]").set_input_files([*pictures])

    def until_read(self) -> None:
        """Reading takes seconds, and longer on a busy machine."""
        expect(self.summary).to_be_visible(timeout=120_000)

    def field(self, name: str) -> Locator:
        return self.page.locator(f"[id='field-{name}']")

    def row_of(self, name: str) -> Locator:
        return self.page.locator(f"[data-field='{name}']")

    def box(self, name: str) -> Locator:
        return self.page.locator(f"[data-box='{name}']")

    def value(self, name: str) -> str:
        return self.field(name).input_value()

    def copied(self, message: str) -> str:
        """What is on the clipboard after this item of the menu."""
        self.page.locator(".card-actions .menu > button").click()
        nik = self.t("card.copy.nik.shown" if self.button("card.nik.hide").count() else "card.copy.nik.hidden")
        self.page.get_by_role("menuitem", name=self.t(message, nik=nik), exact=True).click()
        return str(self.page.evaluate("() => navigator.clipboard.readText()"))

    def kept(self) -> dict[str, Any]:
        return dict(self.page.evaluate(_KEPT))

    def num_addresses(self) -> int:
        return int(self.page.evaluate("() => window.addresses.size"))


def specimen(seed: int, **printed: str) -> SpecimenCard:
    """`printed` differs from what the NIK says."""
    card = make_card(seed)
    return replace(card, fields={**card.fields, **printed})


def drawn(card: SpecimenCard, path: Path) -> Path:
    draw_card(card, 1100).save(path, "JPEG", quality=90)
    return path


def on_a_table(card: SpecimenCard, size: tuple[int, int], width: int) -> Image.Image:
    """As a camera sees it that is held straight above."""
    table = Image.new("RGB", size, (104, 84, 66))
    flat = draw_card(card, width)
    table.paste(flat, ((size[0] - flat.width) // 2, (size[1] - flat.height) // 2))
    return table


def film(pictures: Sequence[Image.Image]) -> bytes:
    """Motion JPEG: one picture behind the other."""
    data = io.BytesIO()
    for picture in pictures:
        picture.save(data, "JPEG", quality=92)
    return data.getvalue()


def middle_on_card(card: SpecimenCard, field: str) -> tuple[float, float]:
    """Where the drawing prints a field, in parts of the card's width and height."""
    drawing = CardDrawing(card)
    boxes = drawing.characters[field]
    left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
    right, bottom = max(box[2] for box in boxes), max(box[3] for box in boxes)
    width, height = drawing.image.size
    return (left + right) / 2 / width, (top + bottom) / 2 / height
