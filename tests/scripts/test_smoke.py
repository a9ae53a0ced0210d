"""`make smoke`, as a newcomer runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.long]


def run_smoke(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "scripts/smoke.py", *arguments],
        cwd=REPOSITORY,
        # A setting of whoever runs it must not reach the server.
        env={"PATH": "", "TMPDIR": str(folder), "API_KEYS": "nobody-knows"},
        capture_output=True,
        text=True,
        timeout=170,
    )


def processes_in(folder: Path) -> list[str]:
    """Command lines of processes whose current folder was below this one."""
    links = [process / "cwd" for process in Path("/proc").glob("[0-9]*")]
    return [str(link.parent) for link in links if link.is_symlink() and str(folder) in _target(link)]


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:  # it has ended, or is somebody else's
        return ""


def test_every_step_passes_and_nothing_stays_behind(tmp_path: Path) -> None:
    ended = run_smoke(tmp_path)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    lines = ended.stdout.splitlines()
    assert len(lines) == 9 and all(line.startswith("[ok] ") for line in lines)
    assert not list(tmp_path.iterdir()) and not processes_in(tmp_path)


def test_a_failed_step_says_why_and_shows_the_log_of_the_server(tmp_path: Path) -> None:
    """A model that repeats the question knows no sum."""
    ended = run_smoke(tmp_path, "echo")
    assert ended.returncode == 1
    failed = ended.stdout.partition("[failed] ")[2]
    assert failed.startswith("chat: 12 + 7 is 'What is 12 + 7?'\n") and "tis.cli: Address " in failed
    assert not list(tmp_path.iterdir()) and not processes_in(tmp_path)
