"""Whether a test or a fixture starts a server or a process: seen in the names that its code uses, however deep."""

import subprocess
from collections.abc import Iterator
from inspect import unwrap
from types import CodeType, FunctionType
from typing import Any

import pytest
import uvicorn

_STARTERS: tuple[Any, ...] = (subprocess, subprocess.Popen, subprocess.run, uvicorn)
_known: dict[FunctionType, bool] = {}


def starts_something(item: pytest.Function) -> bool:
    fixtures = [
        fixture.func for name in item.fixturenames for fixture in item._fixtureinfo.name2fixturedefs.get(name, ())
    ]
    return any(starts(part) for part in (item.function, *fixtures))


def starts(part: Any) -> bool:
    """Looks into functions and classes of the tests, not into those of the server: it is what they test."""
    if any(part is starter for starter in _STARTERS):
        return True
    if isinstance(part, type) and part.__module__.startswith("tests."):
        return any(starts(member) for member in vars(part).values())
    function = unwrap(part) if callable(part) else part
    if not isinstance(function, FunctionType) or not function.__module__.startswith("tests."):
        return False
    if function not in _known:
        _known[function] = False  # while it is looked into: functions may call each other
        _known[function] = any(starts(function.__globals__.get(name)) for name in _names(function.__code__))
    return _known[function]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
