"""The modules of `web/` import downwards, as Python's do."""

import re
from pathlib import Path

from tests.serving import REPOSITORY

WEB = REPOSITORY / "web"
# Each folder imports from those after it, and from itself.
DRAWING = [
    "shop",
    "shop/assistant",
    "shop/product",
    "shop/orders",
    "shop/messages",
    "shop/search",
    "shop/goods",
    "shop/account",
    "shop/address",
    "desk",
    "desk/sheets",
    "desk/goods",
    "desk/holds",
    "desk/orders",
    "desk/messages",
    "desk/stock",
    "desk/reviews",
    "desk/numbers",
    "desk/shop",
    "desk/own_shop",
    "admin",
    "admin/shops",
    "admin/goods",
    "admin/words",
    "admin/people",
    "admin/log",
    "admin/lists",
    "card",
    "link",
    "chat",
    "chat/sidebar",
    "chat/composer",
    "chat/thread",
    "chat/settings",
    "chat/models",
    "chat/markdown",
    "chat/answers",
    "chat/conversations",
    "status",
    "styles",
    "docs",
    "market/map",
    "market/orders",
    "market/talks",
    "market",
    "design",
    "app",
    "messages/en",
    "messages/id",
    "vendor",
]
_IMPORT = re.compile(r"""(?:\bfrom|\bimport)\s*\(?\s*["'`](\.[^"'`]+)["'`]""")


def folder_of(module: Path) -> str:
    name = module.parent.relative_to(WEB).as_posix()
    return "vendor" if name.startswith("vendor") else name


def imports_of(module: Path) -> list[Path]:
    return [(module.parent / address).resolve() for address in _IMPORT.findall(module.read_text())]


def own_modules() -> list[Path]:
    return [module for module in sorted(WEB.rglob("*.js")) if folder_of(module) != "vendor"]


def test_imports_point_down() -> None:
    place = {name: number for number, name in enumerate(DRAWING)}
    upwards = [
        f"{module.relative_to(WEB)} imports {imported.relative_to(WEB)}"
        for module in own_modules()
        for imported in imports_of(module)
        if place[folder_of(imported)] < place[folder_of(module)]
    ]
    assert not upwards


def test_pages_do_not_import_each_other() -> None:
    pages = {"chat", "shop", "desk", "admin", "card", "link", "status", "styles", "docs"}
    across = [
        f"{module.relative_to(WEB)} imports {imported.relative_to(WEB)}"
        for module in own_modules()
        for imported in imports_of(module)
        if {(mine := folder_of(module).split("/")[0]), (other := folder_of(imported).split("/")[0])} <= pages
        and mine != other
    ]
    assert not across


def test_modules_that_import_each_other_are_one() -> None:
    inside = {module: {one for one in imports_of(module) if "vendor" not in one.parts} for module in own_modules()}
    while leaves := [module for module, imported in inside.items() if not imported & inside.keys()]:
        for module in leaves:
            del inside[module]
    assert not [str(module.relative_to(WEB)) for module in inside]


def test_every_module_is_used() -> None:
    pages = "".join(page.read_text() for page in WEB.glob("*.html"))
    used = {imported for module in own_modules() for imported in imports_of(module)}
    named = {module for module in own_modules() if module.relative_to(WEB).as_posix() in pages}
    assert not set(own_modules()) - used - named
