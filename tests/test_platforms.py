"""All test modules can be imported without POSIX modules; markers skip tests only after the import."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.long]

HIDE = """
import os, sys
import huggingface_hub.utils._terminal, psutil  # on Linux they need what is hidden now
for name in ("pty", "resource", "termios"):
    sys.modules[name] = None
del os.geteuid, os.getpgid, os.setsid, os.mkfifo
"""


def test_every_test_module_is_collected_without_posix(tmp_path: Path) -> None:
    (tmp_path / "without_posix.py").write_text(HIDE)
    # Asserts as they are written: to rewrite those of all modules takes as long as to import them.
    options = ["--collect-only", "-q", "--no-header", "--assert=plain", "-p", "without_posix", "-p", "no:cacheprovider"]
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests"],
        cwd=REPOSITORY,
        env={"PYTHONPATH": str(tmp_path), "PATH": "", "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert collected.returncode == 0, collected.stdout[-3000:]
