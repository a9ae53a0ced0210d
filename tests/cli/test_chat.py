"""`tis chat` in a pseudo-terminal, with servers that are killed while they answer."""

import base64
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.tis_process import TIS, environment
from tests.serving import free_port, served, server_process, settings_with, wait_until_live
from tis.cli.chat import AnswerParts
from tis.cli.chat_tools import calculate, run_tool

pytestmark = [pytest.mark.slow, pytest.mark.long]
pty = pytest.importorskip("pty")  # Windows has none


class PtyTalk:
    def __init__(self, popen: "subprocess.Popen[bytes]", fd: int) -> None:
        self.popen, self._fd = popen, fd
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def wait_for(self, pattern: str, seconds: float = 40) -> str:
        """Returns everything up to the pattern, and forgets it."""
        end = time.monotonic() + seconds
        while not (match := re.search(pattern, self.seen)):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._fd], [], [], left)[0]:
                raise TimeoutError(f"{pattern!r} is not in {self.seen!r}")
            try:
                self.seen += os.read(self._fd, 65536).decode(errors="replace")
            except OSError:  # the other side is closed
                raise TimeoutError(f"{pattern!r} is not in {self.seen!r}") from None
        before, self.seen = self.seen[: match.end()], self.seen[match.end() :]
        return before


@contextmanager
def talk(folder: Path, *arguments: str, **variables: str) -> Iterator[PtyTalk]:
    ours, theirs = pty.openpty()
    popen = subprocess.Popen(
        [*TIS, "chat", *arguments],
        cwd=folder,
        env=environment(**variables),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: _take_terminal(theirs),
    )
    os.close(theirs)
    try:
        yield PtyTalk(popen, ours)
    finally:
        popen.kill()
        popen.wait()
        os.close(ours)


def _take_terminal(fd: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(fd, termios.TIOCSCTTY, 0)


def test_a_talk_with_a_picture_and_an_answer_that_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(base64.b64decode(_DOT))
    with served(settings_with(model_repo_id="echo?tokens_per_second=30", served_model_name="kopi")) as server:
        with talk(tmp_path, server.url) as terminal:
            terminal.wait_for(r"kopi at http\S+ /help lists the commands\.\s+> ")
            terminal.type("selamat pagi\n")
            terminal.wait_for(r"selamat pagi\r\n")  # what is typed comes back first
            terminal.wait_for(r"selamat pagi\r\n> ")
            terminal.type("/image nothing.png\n")
            terminal.wait_for(r"\[nothing.png cannot be read: No such file or directory\]\s+> ")
            terminal.type("/nonsense\n")
            terminal.wait_for(r"\[there is no /nonsense; /help lists the commands\]\s+> ")
            terminal.type("x" * 300 + "\n")
            terminal.wait_for(r"\nx{20}")
            terminal.type("\x03")
            stopped = terminal.wait_for(r"\[stopped\]\r\n> ")
            assert stopped.count("x") < 250
            terminal.type("masih di sana?\n")
            terminal.wait_for(r"masih di sana\?\r\nmasih di sana\?\r\n> ")
            terminal.type("\x04")
            assert terminal.popen.wait(20) == 0


_DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TEXT = "satu dua tiga empat lima enam tujuh delapan sembilan sepuluh sebelas dua belas tiga belas"


def test_an_answer_goes_on_before_ones_eyes_after_its_server_was_killed(tmp_path: Path) -> None:
    port = str(free_port())
    variables = {"PORT": port, "PERSIST_SESSIONS": "1", "SESSIONS_DB_PATH": str(tmp_path / "sessions.db")}
    variables |= {"MODEL_REPO_ID": "echo?tokens_per_second=25"}
    with server_process(**variables) as first:
        wait_until_live(first.url, 60)
        with talk(tmp_path, PORT=port) as terminal:
            terminal.wait_for("> ")
            terminal.type(TEXT + "\n")
            terminal.wait_for(re.escape(TEXT) + r"\r\n")
            begun = terminal.wait_for("tiga ")
            first.popen.send_signal(signal.SIGKILL)
            first.popen.wait()
            begun += terminal.wait_for(r"\[connection lost\] ")
            with server_process(**variables) as second:
                wait_until_live(second.url, 60)
                rest = terminal.wait_for(r"\r\n> ", 60)
    shown = (begun + rest).replace(" [connection lost] ", "").replace("[resumed] ", "").removesuffix("\r\n> ")
    assert shown == TEXT
    assert "[resumed] " in rest


def test_without_a_server_it_is_one_line(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    for target, said in ((url, "no server answers"), ("ftp://x", "is no URL of a server")):
        done = subprocess.run(
            [*TIS, "chat", target], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("Cannot chat: ") and said in done.stderr


def test_parts_of_a_call_become_one_call() -> None:
    parts = AnswerParts()
    for function in ({"name": "calculate", "arguments": ""}, {"arguments": '{"expression": '}, {"arguments": '"1+1"}'}):
        assert (
            parts.add({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c-1", "function": function}]}}]}) == ""
        )
    [call] = parts.message["tool_calls"]
    assert (call["id"], run_tool(call["function"]["name"], call["function"]["arguments"])) == ("c-1", "2")


@pytest.mark.parametrize(("expression", "value"), [("2*(3+4)", 14), ("-7 // 2", -4), ("10 % 4 + 1.5", 3.5)])
def test_the_calculator_calculates(expression: str, value: float) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize(
    "given", ["2**99", "__import__('os')", "1/0", "9" * 201, "x", "10**9 * 10**9 * 100", "", "True"]
)
def test_the_calculator_refuses_anything_else(given: str) -> None:
    assert run_tool("calculate", f'{{"expression": "{given}"}}').startswith("Cannot calculate this: ")
