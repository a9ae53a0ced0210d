"""Holds the drawing in ARCHITECTURE.md: imports point down, packages of one layer do not import each other.

Inside a package, its files and folders form no circle.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.serving import REPOSITORY

PACKAGE = REPOSITORY / "tis"
LAYERS = [
    {"__main__"},
    {"cli"},
    {"app"},
    {"market_parts", "middlewares", "resume_sources"},
    {"lifetime"},
    {"arguments"},
    {"lazy_marketplace", "settings"},
    {"anthropic_api", "ollama_api", "audio_api"},
    {"openai_api", "ktp", "marketplace", "mcp_server", "status", "pages"},
    {"chat", "http"},
    {"upstream"},
    {"engine", "streaming", "media", "mcp_client"},
    {"sandbox", "cancellation", "admission", "database"},
    {"setting_types", "errors", "bounds", "json_bytes", "observability", "shutdown", "network"},
]
# Libraries that only these packages import.
HOMES = {
    "fastapi": {
        "cli",
        "app",
        "middlewares",
        "lazy_marketplace",
        "openai_api",
        "ktp",
        "marketplace",
        "mcp_server",
        "status",
        "pages",
    }
    | {"http", "anthropic_api", "ollama_api", "audio_api"},
    "torch": {"engine"},
    "transformers": {"engine"},
    "openpyxl": {"marketplace"},
    "rapidocr": {"ktp"},
    "onnxruntime": {"ktp"},
    "cv2": {"ktp", "marketplace"},
    "segno": {"marketplace"},
    "sqlalchemy": {"database", "marketplace", "streaming"},
    "redis": {"streaming", "http"},
    "limits": {"http"},
    "opentelemetry": {"observability"},
    "mcp": {"mcp_client", "mcp_server"},
    "mcp_types": {"mcp_client", "mcp_server"},
    "httpx2": {"mcp_client", "marketplace"},
    "httpcore2": {"mcp_client", "upstream"},
}
# Folders of a package, from the top: each imports those below it only.
FOLDERS = {"openai_api": ["routes", "wire", "store"]}
START_PROGRAMS = ["main.py", "seed_data.py"]


@dataclass(frozen=True)
class Module:
    """A file of the server: where it is, the package it belongs to, and its source."""

    path: str
    source: str

    @property
    def package(self) -> str:
        return Path(self.path).parts[0].removesuffix(".py")

    @property
    def layer(self) -> int:
        return layer_of(self.package)

    @property
    def name(self) -> str:
        return ".".join(["tis", *Path(self.path).with_suffix("").parts])

    @property
    def tree(self) -> ast.Module:
        return _parsed(self.source)

    @property
    def imports(self) -> set[str]:
        return set(_imports(self.tree))

    @property
    def imported_names(self) -> set[str]:
        """With what each import takes out of its module, as that may be a module, too."""
        names = self.imports
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
        return names


@cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from tis import status` names its packages behind the import.
            names = [f"{node.module}.{alias.name}" for alias in node.names if alias.name != "__version__"]
            yield from names if node.module == "tis" else [node.module]


@cache
def modules() -> list[Module]:
    paths = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
    return [Module(path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def layer_of(package: str) -> int:
    [layer] = [number for number, packages in enumerate(LAYERS) if package in packages]
    return layer


# Each rule returns its offenders, a line each.


def imports_of_higher_layers(modules: Iterable[Module]) -> list[str]:
    return [
        f"{module.path} imports {name}"
        for module in modules
        for name in sorted(module.imports)
        if name.startswith("tis.")
        and (other := name.split(".")[1]) != module.package
        and layer_of(other) <= module.layer
    ]


def imports_of_higher_folders(modules: Iterable[Module]) -> list[str]:
    found = []
    for module in modules:
        order = FOLDERS.get(module.package, [])
        folder = Path(module.path).parts[1] if len(Path(module.path).parts) > 2 else ""
        for higher in order[: order.index(folder)] if folder in order else []:
            prefix = f"tis.{module.package}.{higher}"
            found += [f"{module.path} imports {name}" for name in sorted(module.imports) if name.startswith(prefix)]
    return found


def libraries_imported_elsewhere(modules: Iterable[Module]) -> list[str]:
    return [
        f"{module.path} imports {name}"
        for module in modules
        for name in sorted(module.imports)
        if (library := name.split(".")[0]) in HOMES and module.package not in HOMES[library]
    ]


def imports_of_start_programs(modules: Iterable[Module]) -> list[str]:
    programs = {Path(program).stem for program in START_PROGRAMS}
    return [f"{module.path} imports {program}" for module in modules for program in sorted(programs & module.imports)]


def machines_that_read_settings_or_environment(modules: Iterable[Module]) -> list[str]:
    """They get plain arguments: their `settings.py` is for `tis/settings.py` alone."""
    return [
        module.path
        for module in modules
        if module.layer in (layer_of("engine"), layer_of("upstream"))
        and (any(name.endswith(".settings") for name in module.imports) or reads_environment(module))
    ]


def reads_environment(module: Module) -> bool:
    """`os` itself is welcome: machines have files and processes."""
    names = {"environ", "environb", "getenv", "getenvb"}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and node.attr in names:
            return True
        if isinstance(node, ast.ImportFrom) and node.module == "os" and names & {alias.name for alias in node.names}:
            return True
    return False


def circles(modules: Iterable[Module]) -> list[str]:
    """Per folder, among its files and folders: a module counts for the one it lies in."""
    by_name = {module.name: module for module in modules}
    imported: dict[str, dict[str, set[str]]] = {}
    for name, module in by_name.items():
        for other in module.imported_names & by_name.keys() - {name}:
            here, there = name.split("."), other.split(".")
            depth = next(i for i, (one, two) in enumerate(zip(here, there, strict=False)) if one != two)
            imported.setdefault(".".join(here[:depth]), {}).setdefault(here[depth], set()).add(there[depth])
    found = []
    for folder, graph in imported.items():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            found.append(f"{folder}: {' <- '.join(error.args[1])}")
    return found


Rule = Callable[[Iterable[Module]], list[str]]
RULES: list[Rule] = [
    imports_of_higher_layers,
    imports_of_higher_folders,
    libraries_imported_elsewhere,
    imports_of_start_programs,
    machines_that_read_settings_or_environment,
]


def test_the_files_of_the_server_are_read() -> None:
    """Without any, no rule could be broken."""
    assert (
        {package for layer in LAYERS for package in layer}
        >= {module.package for module in modules()}
        > {"app", "engine"}
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_nobody_breaks_the_rule(rule: Rule) -> None:
    assert rule(modules()) == []


def test_no_folder_has_a_circle_of_imports() -> None:
    assert circles(modules()) == []


def test_a_circle_names_those_in_it() -> None:
    one = Module("engine/text/a.py", "from tis.engine.batching import b")
    other = Module("engine/batching/b.py", "import tis.engine.request")
    back = Module("engine/request.py", "def late():\n    from tis.engine.text.a import x")
    assert circles([one, other]) == []
    [circle] = circles([one, other, back])
    assert circle.startswith("tis.engine: ") and {"text", "batching", "request"} <= set(circle.split()[1::2])


def test_start_programs_are_thin() -> None:
    programs = [Module(program, (REPOSITORY / program).read_text(encoding="utf-8")) for program in START_PROGRAMS]
    assert not [program.path for program in programs if HOMES.keys() & {name.split(".")[0] for name in program.imports}]


@pytest.mark.parametrize(
    ("rule", "path", "line"),
    [
        (imports_of_higher_layers, "engine/worker.py", "from tis.openai_api.routes.chat import routes"),
        (imports_of_higher_layers, "engine/worker.py", "from tis import status"),
        (imports_of_higher_layers, "engine/worker.py", "def late():\n    import tis.streaming.session"),
        (imports_of_higher_layers, "setting_types.py", "import tis.errors"),
        (imports_of_higher_layers, "chat/run.py", "from tis.http.error_handlers import error_body"),
        (imports_of_higher_folders, "openai_api/store/items.py", "from tis.openai_api.wire import fields"),
        (imports_of_higher_folders, "openai_api/wire/sse.py", "from tis.openai_api.routes.chat import router"),
        (libraries_imported_elsewhere, "marketplace/search/sql.py", "import torch.nn.functional as F"),
        (libraries_imported_elsewhere, "engine/worker.py", "from fastapi import FastAPI"),
        (imports_of_start_programs, "app.py", "from main import app"),
        (imports_of_start_programs, "marketplace/seed/commands.py", "import seed_data"),
        (machines_that_read_settings_or_environment, "engine/worker.py", "from tis.settings import Settings"),
        (
            machines_that_read_settings_or_environment,
            "engine/worker.py",
            "import tis.engine.settings",
        ),
        (machines_that_read_settings_or_environment, "engine/worker.py", "import os; os.environ['A']"),
        (machines_that_read_settings_or_environment, "engine/worker.py", "import os as o; o.getenv('A')"),
        (machines_that_read_settings_or_environment, "media/loader.py", "from os import environ"),
        (machines_that_read_settings_or_environment, "media/loader.py", "from os import getenv as g"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_broken_rule_names_the_offender(rule: Rule, path: str, line: str) -> None:
    [offender] = rule([Module("pages/fine.py", "import os"), Module(path, line)])
    assert offender.startswith(path)


def test_what_is_allowed_offends_nobody() -> None:
    allowed = [
        Module("app.py", "from tis.engine import worker\nimport fastapi, tis.settings, os\nos.environ"),
        Module("engine/worker.py", "import torch, os\nfrom tis.engine.request import Request\nfrom tis import errors"),
        Module("media/loader.py", "import os; from os import open; os.open; environ = 1"),
    ]
    assert [rule(allowed) for rule in RULES] == [[] for _ in RULES]
