"""`scripts/try_image.py` where it cannot run: it says why, and its exit code is neither success nor failure."""

import os
import sys
from pathlib import Path

import pytest

from scripts.image.tools import ImageFailed, ImageSkipped, find_tools, run
from scripts.try_image import health_command, main


def test_without_root_it_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    with pytest.raises(ImageSkipped, match="it needs root"):
        find_tools(tmp_path)


def test_the_script_says_why_it_was_skipped_and_exits_with_77(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr(sys, "argv", ["try_image.py", "--folder", str(tmp_path)])
    assert main() == 77
    assert capsys.readouterr().out == "SKIPPED: it needs namespaces of Linux.\n"


def test_a_machine_without_its_programs_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    with pytest.raises(ImageSkipped, match="there is no unshare, nsenter, chroot, mount"):
        find_tools(tmp_path)


def test_a_command_that_fails_is_named_with_its_last_line() -> None:
    with pytest.raises(ImageFailed, match=r"ended with 3: no room$"):
        run([sys.executable, "-c", "import sys; print('no room', file=sys.stderr); sys.exit(3)"])


def test_it_finds_the_health_check_of_the_dockerfile() -> None:
    assert health_command()[:2] == ["python", "-c"]
