"""How somebody sees a page: on which screen, in which theme and language. Tests name what they look for by its message.

A test that is marked `@on_both_screens` runs twice, on a phone and on a desktop, and so in both themes and languages.
What is the same however it looks, such as what two tabs store, runs once: to open a page takes a core 1.5 seconds.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

import pytest

from tests.serving import REPOSITORY

SIZES = {"desktop": {"width": 1280, "height": 860}, "phone": {"width": 390, "height": 844}}
LOCALES = {"en": "en-US", "id": "id-ID"}
_MESSAGE = re.compile(r'^ +("[^"]+"|\w+): ("(?:\\.|[^"\\])*"),$', re.MULTILINE)


@cache
def messages(language: str) -> dict[str, str]:
    """Those of web/messages, by name."""
    files = sorted((REPOSITORY / "web" / "messages" / language).glob("*.js"))
    sources = "".join(file.read_text(encoding="utf-8") for file in files)
    return {name.strip('"'): json.loads(text) for name, text in _MESSAGE.findall(sources)}


@dataclass(frozen=True)
class PageLook:
    size: str
    theme: str
    language: str

    @property
    def is_phone(self) -> bool:
        return self.size == "phone"

    def t(self, name: str, /, **values: object) -> str:
        """A message, as `t` of web/app/words.js gives it."""
        return re.sub(r"\{(\w+)\}", lambda found: str(values[found[1]]), messages(self.language)[name])

    def pattern(self, name: str) -> re.Pattern[str]:
        """A message with any values."""
        parts = re.split(r"\{\w+\}", messages(self.language)[name])
        return re.compile(".+".join(map(re.escape, parts)))

    def number(self, value: float) -> str:
        """A whole number as the page writes it."""
        return f"{value:,.0f}".replace(",", "." if self.language == "id" else ",")

    def __str__(self) -> str:
        return f"{self.size}-{self.theme}-{self.language}"


DESKTOP = PageLook("desktop", "light", "en")
PHONE = PageLook("phone", "dark", "id")
DARK_DESKTOP = PageLook("desktop", "dark", "id")
LIGHT_PHONE = PageLook("phone", "light", "en")
ALL_LOOKS = [DESKTOP, PHONE, DARK_DESKTOP, LIGHT_PHONE]


def in_looks(*looks: PageLook) -> pytest.MarkDecorator:
    """`visitor` of the test opens pages in each of these, one after the other."""
    return pytest.mark.parametrize("look", looks, ids=str, indirect=True)


def with_a_database_each(
    fixture: str, *looks: PageLook, scope: Literal["function", "module"] = "module"
) -> pytest.MarkDecorator:
    """The first look on SQLite, the second on PostgreSQL: a page does not know which one its server has.

    `scope` is that of the fixture.
    """
    pairs = list(zip(("sqlite", "postgresql"), looks, strict=True))
    return pytest.mark.parametrize((fixture, "look"), pairs, ids=str, indirect=True, scope=scope)


on_both_screens = in_looks(DESKTOP, PHONE)
# The same with the other themes: so each screen is seen in each theme and language, by one file or another.
on_both_screens_too = in_looks(DARK_DESKTOP, LIGHT_PHONE)
