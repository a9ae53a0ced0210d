"""`tis serve` as a process: what it serves and prints, and how it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.tis_process import TIS, environment, tis
from tests.serving import REPOSITORY, free_port, wait_until_live
from tests.test_status import until
from tis import __version__

pytestmark = [pytest.mark.slow, pytest.mark.long]
pty = pytest.importorskip("pty")  # Windows has none


@contextmanager
def on_a_terminal(*arguments: str, folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """The process and the terminal, to read what it shows."""
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [*TIS, *arguments], cwd=folder, env=environment(), stdin=end, stdout=end, stderr=end, start_new_session=True
    )
    os.close(end)
    try:
        yield process, terminal
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def read_until(terminal: int, text: str) -> str:
    shown = ""
    while text not in shown:
        shown += os.read(terminal, 4096).decode()
    return shown


def rest_of(terminal: int) -> str:
    shown = b""
    try:
        while data := os.read(terminal, 4096):
            shown += data
    except OSError:  # how Linux says that nobody writes to it any more
        pass
    return shown.decode()


def server_of(parent: int) -> int | None:
    """The process that serves; `tis serve` itself only starts it again after a fault."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(children[0]) if children else None


def is_importing(parent: int) -> bool:
    """pydantic's library is mapped long before the server is there."""
    server = server_of(parent)
    return server is not None and b"pydantic_core" in Path(f"/proc/{server}/maps").read_bytes()


def get(url: str) -> object:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)


def test_version_prints_the_version(tmp_path: Path) -> None:
    assert tis("--version", folder=tmp_path).stdout == f"tis {__version__}\n"


def test_without_a_command_it_shows_the_commands(tmp_path: Path) -> None:
    shown = tis(folder=tmp_path)
    assert shown.returncode == 2 and "serve" in shown.stdout and "seed" in shown.stdout


def test_it_loads_at_once_and_relative_paths_are_of_the_current_folder(tmp_path: Path) -> None:
    port = free_port()
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [*TIS, "serve", "echo", "--port", str(port), "--served-model-name", "parrot", "--persist-sessions"],
            cwd=tmp_path,
            env=environment(),
            stderr=log,
        )
    try:
        wait_until_live(url := f"http://127.0.0.1:{port}")
        until(lambda: get(f"{url}/health")["modelReady"])  # type: ignore[index]
        assert [model["id"] for model in get(f"{url}/v1/models")["data"]] == ["parrot"]  # type: ignore[index]
        assert (tmp_path / "sessions.db").exists()
        until((tmp_path / "marketplace.db").exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
    said = (tmp_path / "log").read_text()
    assert f"http://127.0.0.1:{port}/v1" in said and str(tmp_path / "sessions.db") in said
    assert "GET /live" not in said and "GET /health" not in said and "GET /v1/models 200" in said


@pytest.mark.parametrize("command", [("-m", "tis", "serve"), (str(REPOSITORY / "main.py"),)])
def test_an_eager_load_that_fails_is_one_line_and_exit_code_1(command: tuple[str, ...], tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, *command],
        cwd=tmp_path,
        env=environment(MODEL_REPO_ID="./nowhere", EAGER_LOAD_MODEL="1", PORT=str(free_port()), LOG_LEVEL="warning"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    *before, line = ended.stderr.splitlines()
    assert all(f"there was no database at {tmp_path}/marketplace.db" in one for one in before)
    assert line.startswith("Cannot start: nowhere could not be loaded: There is no folder './nowhere'")


def test_with_no_eager_the_server_runs_even_if_the_model_does_not_exist(tmp_path: Path) -> None:
    port = free_port()
    process = subprocess.Popen(
        [*TIS, "serve", "./nowhere", "--no-eager", "--port", str(port)],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_live(url := f"http://127.0.0.1:{port}")
        assert get(f"{url}/ready")["ok"] is True  # type: ignore[index]
    finally:
        process.kill()
        process.wait()


def test_a_terminal_shows_a_banner_and_ctrl_c_is_one_line(tmp_path: Path) -> None:
    port = free_port()
    with on_a_terminal("serve", "echo", "--port", str(port), folder=tmp_path) as (process, terminal):
        shown = read_until(terminal, "status, docs\r\n")
        banner = shown[shown.index("Transformers Inference Server") :].splitlines()
        assert len(banner) <= 8 and f"pid {server_of(process.pid)}" in banner[0]
        assert "\x1b[3" in shown  # levels in colour
        until(lambda: get(f"http://127.0.0.1:{port}/health")["marketplace"] == "ready")  # type: ignore[index]
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        lines = [line for line in rest_of(terminal).splitlines() if " tis.marketplace:" not in line]
        assert len(lines) == 1 and "stopping" in lines[0]


def test_ctrl_c_during_the_imports_is_one_line(tmp_path: Path) -> None:
    with on_a_terminal("serve", "echo", "--port", str(free_port()), folder=tmp_path) as (process, terminal):
        until(lambda: is_importing(process.pid))
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert rest_of(terminal).splitlines()[-1] == "Stopped."


@pytest.mark.model
def test_ctrl_c_during_a_load_leaves_no_bar(tmp_path: Path) -> None:
    demo = str(REPOSITORY / "models" / "demo")
    with on_a_terminal("serve", demo, "--port", str(free_port()), folder=tmp_path) as (process, terminal):
        read_until(terminal, "importing torch")
        process.send_signal(signal.SIGINT)
        process.wait(30)
        assert re.search(r"(\n|\x1b\[2K)$", rest_of(terminal))


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = tis("serve", "echo", "--port", str(port), "--log-level", "warning", folder=tmp_path)
    assert ended.returncode != 0 and ended.stderr.count("\n") == 1
    assert str(port) in ended.stderr and "already in use" in ended.stderr


def test_an_env_file_that_is_not_utf_8_is_one_line(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes("PORT=4000".encode("utf-16"))
    ended = tis("serve", "echo", folder=tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1) and ".env is not UTF-8" in ended.stderr


@pytest.mark.model
def test_a_terminal_shows_a_bar_while_the_weights_are_read(tmp_path: Path) -> None:
    demo = str(REPOSITORY / "models" / "demo")
    with on_a_terminal("serve", demo, "--port", str(free_port()), folder=tmp_path) as (_, terminal):
        shown = read_until(terminal, "status, docs\r\n")
        assert re.search(r"reading the weights \[#+\.*\] +\d+%", shown)
        assert "\r\x1b[2K" in shown and "cpu, float32" in shown
