"""Every page says the same in each language, and says nothing that has no message."""

import re
from collections import Counter

import pytest

from tests.browser.looks import LOCALES, messages
from tests.serving import REPOSITORY

WEB = REPOSITORY / "web"
FILES = sorted(file.name for file in (WEB / "messages" / "en").glob("*.js"))
_LINE = re.compile(r' {2}(?:"([^"]+)"|(\w+)): "(?:\\.|[^"\\])*",')
_ASKED = re.compile(r"""\b(?:t|counted)\(\s*["']([^"'$]+)["']\s*[,)]""")


def names_in(language: str, file: str) -> list[str]:
    lines = (WEB / "messages" / language / file).read_text(encoding="utf-8").splitlines()
    first, last = lines.index("export default {"), lines.index("};")
    assert last == len(lines) - 1
    found = [_LINE.fullmatch(line) for line in lines[first + 1 : last] if line.strip()]
    assert all(found), f"{language}/{file}: one message in a line"
    return [match[1] or match[2] for match in found if match]


@pytest.mark.parametrize("file", FILES)
def test_both_languages_have_the_same_messages(file: str) -> None:
    english, indonesian = names_in("en", file), names_in("id", file)
    assert english == indonesian
    for name in english:
        placeholders = [sorted(set(re.findall(r"\{\w+\}", messages(language)[name]))) for language in LOCALES]
        assert placeholders[0] == placeholders[1], name


def test_a_name_is_one_message() -> None:
    assert sorted(file.name for file in (WEB / "messages" / "id").glob("*.js")) == FILES
    count = Counter(name for file in FILES for name in names_in("en", file))
    assert not [name for name, times in count.items() if times > 1]
    assert len(count) == len(messages("en"))


def test_a_page_has_the_messages_that_its_modules_ask_for() -> None:
    known = messages("en")
    modules = [module for module in WEB.rglob("*.js") if not {"vendor", "messages"} & set(module.parts)]
    asked = {name: module for module in modules for name in _ASKED.findall(module.read_text())}
    assert len(asked) > 300
    assert not {name: module for name, module in asked.items() if name not in known}
