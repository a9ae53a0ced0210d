"""What serves one caller stands with it: a package has no public name that only one file of another package uses.

Its doors are the exceptions. The folders of the marketplace count as packages, as its rooms are as far apart.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

from tests.test_layers import Module, modules

# They put the parts together, each of which has this one caller by design.
WIRING = (
    "__main__",
    "app",
    "market_parts",
    "middlewares",
    "resume_sources",
    "lifetime",
    "arguments",
    "settings",
    "cli",
    "marketplace.market",
)
# Each with why it stands where it stands.
DOORS: dict[str, tuple[str, ...]] = {
    "an error stands with the errors of its family": ("errors.PreconditionFailed",),
    "one table of who may do what, one of all rows": (
        "marketplace.policy.order_roles",
        "marketplace.policy.require_own_user",
        "marketplace.policy.require_user_visible",
        "marketplace.policy.sees_buyer",
        "marketplace.policy.sees_order_contact",
        "marketplace.policy.talk_sides",
    ),
    "the description of errors stands with the handlers that make them": ("http.described_errors.describe_errors",),
    "a room alone reads and writes its rows; another room asks it": (
        "marketplace.auth.shop_tokens.list_shop_tokens",
        "marketplace.auth.shop_tokens.new_shop_token",
        "marketplace.auth.shop_tokens.revoke_shop_token",
        "marketplace.auth.tokens.has_session",
        "marketplace.kit.notice_outbox.forget_notices",
        "marketplace.kit.talk_erasure.delete_old_talks",
        "marketplace.kit.talk_erasure.erase_talks",
        "marketplace.orders.ending.end_orders_of",
        "marketplace.orders.ending.has_waiting_orders",
        "marketplace.kit.promotion_clock.promotion_for_hold",
        "marketplace.orders.moving.mark_paid",
        "marketplace.pictures.service.erase_pictures",
        "marketplace.pictures.service.exported_pictures",
        "marketplace.pictures.service.replace_pictures",
        "marketplace.products.service.correct_stock",
        "marketplace.reviews.answers.erase_answers",
        "marketplace.stock.counters.put_back_units",
        "marketplace.stock.ending.release_all",
        "marketplace.stock.ending.take_for_order",
        "marketplace.suppliers.deletion.has_login",
    ),
    "what a page shows beside the goods is a part of the search": (
        "marketplace.search.highlights.Highlighter",
        "marketplace.search.suggestions.suggest",
    ),
    "a statement is described in one way, whoever executes it": ("database.statement_spans.statement_span",),
    "it undoes, or begins, what its own package does": (
        "chat.media.MediumPlaceholder",
        "engine.text.markers.join_markers",
        "marketplace.payment_providers.credentials.seal",
        "marketplace.reading.measures.with_spaced_measures",
    ),
    "it knows what no caller should: sockets and addresses, the process, its limits and its numbers": (
        "network.url.redirected",
        "observability.collector.collect_exempt_objects",
        "observability.collector.exempt_living_objects",
        "observability.memory.resident_bytes",
        "observability.metrics.metrics_page",
    ),
}


def package_of(module: Module) -> str:
    parts = module.name.split(".")[1:]
    return ".".join(parts[: 2 if parts[0] == "marketplace" and len(parts) > 2 else 1])


def is_wiring(module: Module) -> bool:
    name = module.name.removeprefix("tis.")
    return any(name == one or name.startswith(f"{one}.") for one in WIRING)


def public_names(module: Module) -> Iterator[str]:
    """Of functions and classes, but for routes, which the framework calls."""
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not node.name.startswith("_") and not _is_route(node):
                yield node.name


def _is_route(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    return any(isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) for one in node.decorator_list)


def names_used(module: Module) -> tuple[set[tuple[str, str]], set[str]]:
    """Of other modules, imported or read through the module; and of its own, those that another definition mentions."""
    imported, used, own_used = dict[str, str](), set[tuple[str, str]](), set[str]()
    through = list[tuple[str, str]]()
    for statement in module.tree.body:
        own = getattr(statement, "name", None)
        for node in ast.walk(statement):
            match node:
                case ast.ImportFrom(module=str(source), names=names):
                    imported |= {alias.asname or alias.name: f"{source}.{alias.name}" for alias in names}
                    used |= {(source, alias.name) for alias in names}
                case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                    through.append((name, attribute))
                case ast.Name(id=name) | ast.Constant(value=str(name)) if name != own:
                    own_used.add(name)  # an annotation may be a text
    return used | {(imported[name], attribute) for name, attribute in through if name in imported}, own_used


def with_one_foreign_caller(every: Iterable[Module]) -> dict[str, str]:
    """The only file that uses each name, of those that no file of their own package uses."""
    users: dict[tuple[str, str], list[Module]] = defaultdict(list)
    public, found = list[tuple[Module, str]](), dict[str, str]()
    for module in every:
        used, own_used = names_used(module)
        public += [(module, name) for name in public_names(module) if name not in own_used]
        for one in used:
            users[one].append(module)
    for module, name in public:
        using = users[module.name, name]
        if len(using) == 1 and not is_wiring(using[0]) and package_of(using[0]) != package_of(module):
            found[f"{module.name.removeprefix('tis.')}.{name}"] = using[0].name.removeprefix("tis.")
    return found


@cache
def callers() -> dict[str, str]:
    return with_one_foreign_caller(modules())


def test_what_serves_one_caller_stands_with_it_or_is_a_door() -> None:
    doors = {name for names in DOORS.values() for name in names}
    assert {name: caller for name, caller in callers().items() if name not in doors} == {}


def test_no_door_is_listed_in_vain() -> None:
    assert {name for names in DOORS.values() for name in names} <= callers().keys()


def test_a_leaf_is_found_and_what_its_own_package_uses_is_not() -> None:
    leaf = Module("network/url.py", "def leaf(): ...\ndef shared(): return own()\ndef own(): ...\ndef _private(): ...")
    caller = Module("media/fetch.py", "from tis.network.url import leaf, shared, own")
    assert with_one_foreign_caller([leaf, caller]) == {
        "network.url.leaf": "media.fetch",
        "network.url.shared": "media.fetch",
    }
    beside = Module("network/dial.py", "from tis.network import url\nurl.leaf()")
    assert with_one_foreign_caller([leaf, caller, beside]) == {"network.url.shared": "media.fetch"}
    assert with_one_foreign_caller([leaf, Module("app.py", caller.source)]) == {}
