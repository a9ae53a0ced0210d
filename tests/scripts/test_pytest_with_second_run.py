"""Tests that fail on a busy machine alone do not refuse a change, and are named; all others do."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving import REPOSITORY

_TESTS = """
from pathlib import Path

def test_passes():
    Path("passed.txt").open("a").write("x")

def test_passes_the_second_time():
    first = not Path("tried.txt").exists()
    Path("tried.txt").touch()
    assert not first
"""
_FAILS = "\ndef test_fails_{number}():\n    Path('failed.txt').open('a').write('x')\n    assert False\n"

pytestmark = pytest.mark.slow


def _run(folder: Path, tests: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_some.py").write_text(tests)
    script = str(REPOSITORY / "scripts" / "pytest_with_second_run.py")
    command = [sys.executable, script, "-q", "-n", "2", "test_some.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_what_passes_when_run_alone_is_named_and_refuses_nothing(tmp_path: Path) -> None:
    ran = _run(tmp_path, _TESTS)
    assert ran.returncode == 0, ran.stdout
    assert "1 failed, 1 passed" in ran.stdout
    assert "PASSED ONLY WHEN RUN ALONE: test_some.py::test_passes_the_second_time" in ran.stdout
    assert (tmp_path / "passed.txt").read_text() == "x", "what passed is not run again"


def test_what_fails_twice_is_a_failure(tmp_path: Path) -> None:
    ran = _run(tmp_path, _TESTS + _FAILS.format(number=1))
    assert ran.returncode == 1
    assert "PASSED ONLY WHEN RUN ALONE: test_some.py::test_passes_the_second_time" in ran.stdout
    assert "FAILED TWICE: test_some.py::test_fails_1" in ran.stdout


def test_more_than_five_failures_are_not_tried_again(tmp_path: Path) -> None:
    ran = _run(tmp_path, _TESTS + "".join(_FAILS.format(number=number) for number in range(5)))
    assert ran.returncode == 1
    assert (tmp_path / "failed.txt").read_text() == "x" * 5
    assert "ALONE" not in ran.stdout
