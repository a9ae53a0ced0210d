"""Settings, routes and documents say the same, or a test says where they do not."""

import ast
import re
import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.serving import REPOSITORY, settings_with
from tis.app import create_app
from tis.setting_types import as_written, variable_name
from tis.settings import AREAS, Settings

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
SETTINGS_PAGE = (REPOSITORY / "docs" / "settings.md").read_text(encoding="utf-8")
PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")])
ARCHITECTURE = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
DECISIONS_FOLDER = REPOSITORY / "docs" / "decisions"
DECISIONS = sorted(DECISIONS_FOLDER.glob("*.md"))
PACKAGES = sorted((REPOSITORY / "tis").rglob("__init__.py"))
ENV_EXAMPLE = (REPOSITORY / ".env.example").read_text(encoding="utf-8")
PATH = re.compile(r"`((?:tis|tests|scripts|benchmarks|configs|docs)/[\w./-]+)`")
NAME = re.compile(r"`([A-Za-z_]\w*)(?:\.(\w+))?`")  # an identifier, or a class and its member


def routes() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in create_app(settings_with()).openapi()["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


ROUTES = list(routes())


@cache
def classes() -> dict[str, ast.ClassDef]:
    return {node.name: node for tree in _trees() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


@cache
def known_names() -> set[str]:
    """All names that the code defines, assigns or imports, its words in quotes, its files, folders and settings."""
    files = [*_sources(), *REPOSITORY.glob("*.py")]
    names = {part.removesuffix(".py") for path in files for part in path.relative_to(REPOSITORY).parts}
    for tree in _trees():
        for node in ast.walk(tree):
            names |= _defined_by(node)
    return names | set(Settings.variables().values())


def _sources() -> list[Path]:
    return sorted((REPOSITORY / "tis").rglob("*.py"))


@cache
def _trees() -> list[ast.Module]:
    return [ast.parse(path.read_text(encoding="utf-8")) for path in _sources()]


def _defined_by(node: ast.AST) -> set[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {node.name}
    if isinstance(node, ast.ImportFrom):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
        return {node.id if isinstance(node, ast.Name) else node.attr}
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.islower():
        return {node.value}
    return set()


def members_of(class_name: str) -> set[str]:
    node = classes()[class_name]
    own = {name for inner in ast.walk(node) for name in _defined_by(inner)}
    bases = [base.id for base in node.bases if isinstance(base, ast.Name) and base.id in classes()]
    return own.union(*(members_of(base) for base in bases))


def unknown_names(text: str) -> list[str]:
    """Names between backticks that the code does not have: files, classes, their members, functions, settings."""
    wrong = missing_files(text)
    for name, member in NAME.findall(text):
        if name not in known_names():
            wrong.append(name)
        elif member and name in classes() and member not in members_of(name):
            wrong.append(f"{name}.{member}")
    return wrong


def missing_files(text: str) -> list[str]:
    return [path for path in PATH.findall(text) if not (REPOSITORY / path).exists()]


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_in_env_example_and_on_the_settings_page(name: str) -> None:
    field, variable = Settings.model_fields[name], variable_name(name)
    assert f"# {field.description}\n#{variable}={as_written(field.default)}\n" in ENV_EXAMPLE
    default = f"`{as_written(field.default)}`" if as_written(field.default) else "–"
    assert f"| `{variable}` | {default} | {field.description} |\n" in SETTINGS_PAGE


def test_no_document_names_a_setting_that_is_none() -> None:
    known = set(Settings.variables().values())
    assert set(re.findall(r"^#([A-Z_0-9]+)=", ENV_EXAMPLE, re.MULTILINE)) == known
    assert set(re.findall(r"^\| `([A-Z_0-9]+)`", SETTINGS_PAGE, re.MULTILINE)) == known


def test_settings_have_the_headings_of_their_areas() -> None:
    headings = [str(area.__doc__) for area in AREAS]
    assert re.findall(r"^# === (.+) ===$", ENV_EXAMPLE, re.MULTILINE) == headings
    assert re.findall(r"^## (.+)$", SETTINGS_PAGE, re.MULTILINE) == headings


def test_copying_the_example_file_changes_nothing() -> None:
    copied = Settings.from_env({}, env_file=REPOSITORY / ".env.example")
    assert (copied, copied.model_fields_set) == (Settings(), set())


def test_the_example_file_is_the_default_when_every_line_is_taken() -> None:
    taken = dict(re.findall(r"^#([A-Z_0-9]+)=(.*)$", ENV_EXAMPLE, re.MULTILINE))
    assert Settings.from_env(taken, env_file=None) == Settings()


@pytest.mark.parametrize(("method", "path", "operation"), ROUTES, ids=lambda value: str(value)[:40])
def test_every_endpoint_is_described_and_has_an_example(method: str, path: str, operation: dict[str, Any]) -> None:
    assert operation["description"] if path.startswith("/v1") else operation["summary"]
    answers = operation["responses"]
    contents = (answers.get("200") or answers["501"])["content"]
    texts = [one for kind, one in contents.items() if (one.get("schema") or {}).get("format") != "binary"]
    assert all("example" in one for one in texts) or "application/yaml" in contents


def test_the_page_of_endpoints_is_as_the_app_has_them() -> None:
    """`python scripts/write_endpoints.py` writes it."""
    page = (REPOSITORY / "docs" / "endpoints.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `([A-Z]+ /[^`]*)` \| (.+) \|$", page, re.MULTILINE)
    described = [
        (f"{method} {path}", " ".join(operation["description"].partition("\n\n")[0].split()))
        for method, path, operation in ROUTES
    ]
    assert sorted(named) == sorted(described)


def test_the_readme_is_short() -> None:
    assert len(README.encode()) <= 8192


def test_the_readme_shows_the_session_that_its_script_records() -> None:
    """`python scripts/record_session.py` records it."""
    session = README.partition("<!-- session: start -->\n")[2].partition("<!-- session: end -->\n")[0]
    shown = re.sub(r"kill -9 \d+", "kill -9 PID", re.sub(r"story-1:\d+", "story-1:LAST", session))
    pytest.importorskip("pty")  # Windows has none
    script = runpy.run_path(str(REPOSITORY / "scripts" / "record_session.py"))
    commands = [one.replace("{pid}", "PID").replace("{last}", "story-1:LAST") for one in script["COMMANDS"]]
    place = 0
    for command in commands:
        place = shown.index(f"$ {command}\n", place) + 1
    assert shown.count("\n$ ") == len(commands)
    assert shown.endswith("\nidentical\n```\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.is_relative_to(REPOSITORY) and target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}, link


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "docs/install.md"])
def test_every_make_target_of_a_document_is_there(document: str) -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    named = set(re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+)", text, re.MULTILINE))
    assert named
    for target in {one or other for one, other in named}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    assert missing_files(page.read_text(encoding="utf-8")) == []


def test_architecture_names_code_and_files_that_are_there() -> None:
    assert len(NAME.findall(ARCHITECTURE)) > 20
    assert unknown_names(ARCHITECTURE) == []
    assert not re.search(r"\.py:\d+", ARCHITECTURE)


def test_architecture_is_short() -> None:
    assert len(ARCHITECTURE.encode()) <= 10_240
    assert ARCHITECTURE.count("\n```mermaid\n") == 2
    glossary = ARCHITECTURE.partition("| word | meaning |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()
    assert 1 <= len(glossary) <= 12


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.parent.relative_to(REPOSITORY).as_posix())
def test_the_docstring_of_a_package_names_code_and_files_that_are_there(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring
    assert unknown_names(docstring) == []
    assert len(docstring.splitlines()) <= 40


@pytest.mark.parametrize("document", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_names_files_that_are_there(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert missing_files(text) == []
    assert [one for one in re.findall(r"\d{4}-[\w-]+\.md", text) if not (DECISIONS_FOLDER / one).exists()] == []
