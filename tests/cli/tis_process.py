"""`python -m tis` with arguments, as a process."""

import subprocess
import sys
from pathlib import Path

from tests.serving import REPOSITORY, bare_environment

TIS = (sys.executable, "-m", "tis")


def environment(**variables: str) -> dict[str, str]:
    return {**bare_environment(), "PYTHONPATH": str(REPOSITORY), "TERM": "xterm", **variables}


def tis(*arguments: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*TIS, *arguments], cwd=folder, env=environment(**variables), capture_output=True, text=True, timeout=60
    )
