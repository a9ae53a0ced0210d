"""The library of torch is loaded without Python's lock, so that a server answers meanwhile."""

import subprocess
import sys

import pytest

from tests.serving import REPOSITORY
from tis.engine.models.torch_preload import preload_torch

_PROGRAM = """
from pathlib import Path
from tis.engine.models.torch_preload import preload_torch
print(preload_torch(), "libtorch_cpu.so" in Path("/proc/self/maps").read_text())
import sys
print("torch" in sys.modules)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere `import torch` loads it")
def test_the_library_is_loaded_before_torch_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == "True True\nFalse\n"


def test_where_torch_is_imported_there_is_nothing_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", sys)
    assert not preload_torch()


def test_without_torch_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert not preload_torch()
