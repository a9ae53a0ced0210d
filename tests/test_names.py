"""A name says one thing: no two classes share one, and bounds are called `max_` and `min_`."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.serving import REPOSITORY

_FOLDERS = ("tis", "tests", "benchmarks", "scripts", "deploy")


@cache
def sources() -> dict[Path, str]:
    paths = [path for folder in _FOLDERS for path in sorted((REPOSITORY / folder).rglob("*.py"))]
    ours = [path for path in paths if "node_modules" not in path.parts]
    return {path.relative_to(REPOSITORY): path.read_text(encoding="utf-8") for path in ours}


def identifiers(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            yield node.arg


def test_no_two_classes_have_one_name() -> None:
    # Only files that may have one of two are parsed: all of them take seconds. Texts of classes may stand in strings.
    written = {path: re.findall(r"^\s*class (\w+)", text, re.MULTILINE) for path, text in sources().items()}
    counted = Counter(name for names in written.values() for name in names)
    assert counted.total() > 300
    repeated = {name for name, count in counted.items() if count > 1}
    parsed = [ast.parse(sources()[path]) for path, names in written.items() if repeated.intersection(names)]
    defined = Counter(node.name for tree in parsed for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, count in defined.items() if count > 1] == []


def test_bounds_are_called_max_and_min() -> None:
    old = re.compile(r"(?i)\b_*(most|fewest)_")
    assert [
        f"{path}: {name}"
        for path, text in sources().items()
        if old.search(text)
        for name in sorted(set(identifiers(ast.parse(text))))
        if old.match(name) and not name.startswith("test_")
    ] == []
