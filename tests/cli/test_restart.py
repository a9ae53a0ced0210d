"""The parent of `tis serve`: what it starts again, and how it passes on that somebody stops it."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.test_serve import server_of
from tests.cli.tis_process import TIS, environment
from tests.serving import free_port, wait_until_live
from tests.test_status import until
from tis.cli.restart import Parent

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="signals of POSIX"), pytest.mark.long]


def ends(folder: Path, *codes: str) -> Parent:
    """A server that ends with one of these expressions after the other."""
    program = f"""
import os, pathlib, signal
starts = pathlib.Path({str(folder / "starts")!r})
number = len(starts.read_text()) if starts.exists() else 0
starts.write_text("x" * (number + 1))
[{", ".join(f"lambda: {code}" for code in codes)}][number]()
"""
    return Parent([sys.executable, "-c", program], first_pause_seconds=0.01)


def num_starts(folder: Path) -> int:
    return len((folder / "starts").read_text())


def test_it_starts_the_server_again_after_a_lost_device_and_after_a_crash(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    crash = "os.kill(os.getpid(), signal.SIGSEGV)"
    try:
        assert ends(tmp_path, "os._exit(70)", crash, "os._exit(0)").run() == 0
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])
    assert num_starts(tmp_path) == 3
    shown = capfd.readouterr().err
    assert "with code 70. It is started again in 0.01 s" in shown and "by signal 11" in shown and "0.02 s" in shown


@pytest.mark.parametrize(("end", "code"), [("os._exit(1)", 1), ("os.kill(os.getpid(), signal.SIGKILL)", 137)])
def test_it_does_not_start_what_cannot_start_or_was_killed(tmp_path: Path, end: str, code: int) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    try:
        assert ends(tmp_path, end, "os._exit(0)").run() == code
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])
    assert num_starts(tmp_path) == 1


def stream(url: str, path: str, body: dict[str, object] | None = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return bytes(answer.read())


def test_a_hung_step_ends_the_server_and_the_next_one_resumes_its_sessions(tmp_path: Path) -> None:
    """The echo model hangs after eight tokens of its first life; the variable of the second is read from .env."""
    port = free_port()
    settings = tmp_path / ".env"
    settings.write_text("MODEL_REPO_ID=echo?hang_after=8\n")
    more = {"PORT": str(port), "PERSIST_SESSIONS": "1", "GEN_STALL_SECONDS": "0.2", "SERVED_MODEL_NAME": "parrot"}
    with (tmp_path / "log").open("w") as log:
        parent = subprocess.Popen([*TIS, "serve"], cwd=tmp_path, env=environment(**more), stderr=log)
    try:
        wait_until_live(url := f"http://127.0.0.1:{port}")
        first = server_of(parent.pid)
        settings.write_text("MODEL_REPO_ID=echo\n")
        body = {"messages": [{"role": "user", "content": "twelve tokens"}], "stream": True, "session_id": "mine"}
        seen = stream(url, "/v1/chat/completions", body)
        assert b"[DONE]" not in seen and b'"error"' not in seen
        until(lambda: server_of(parent.pid) not in (first, None))
        wait_until_live(url)
        whole = stream(url, "/v1/stream/mine")
        assert whole.startswith(seen.rstrip()) and whole.endswith(b"data: [DONE]\n\n")
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(20) == 0
        with closing(sqlite3.connect(tmp_path / "sessions.db")) as file:
            assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        parent.kill()
        parent.wait()
    shown = (tmp_path / "log").read_text()
    assert "A step of parrot takes longer than 0.2 s." in shown and "ended with code 70" in shown


def test_without_restarts_it_ends_with_code_70(tmp_path: Path) -> None:
    port = free_port()
    server = subprocess.Popen(
        [*TIS, "serve", "echo?lose_device_after=3", "--port", str(port), "--no-restart"],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_live(url := f"http://127.0.0.1:{port}")
        body: dict[str, object] = {"messages": [{"role": "user", "content": "twelve tokens"}], "stream": True}
        assert b"server_shutting_down" in stream(url, "/v1/chat/completions", body)
        assert server.wait(20) == 70
    finally:
        server.kill()
        server.wait()


def test_the_server_does_not_outlive_its_parent(tmp_path: Path) -> None:
    port = free_port()
    parent = subprocess.Popen(
        [*TIS, "serve", "echo", "--port", str(port)], cwd=tmp_path, env=environment(), stderr=subprocess.DEVNULL
    )
    wait_until_live(f"http://127.0.0.1:{port}")
    server = server_of(parent.pid)
    parent.kill()
    parent.wait()
    until(lambda: not Path(f"/proc/{server}").exists() or "Z" in Path(f"/proc/{server}/stat").read_text().split()[2])
