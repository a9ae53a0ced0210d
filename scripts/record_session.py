"""Records a stream that survives `kill -9`, and writes the session into the README, between its two markers.

`python scripts/record_session.py` runs the commands below against the real server and the demo model, in a temporary
folder. Two things are not shown: the waiting between commands, and what follows the first line of the banner.
The server runs on a pseudo-terminal, as it prints its banner on terminals only; so this needs POSIX.
"""

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
START, END = "<!-- session: start -->\n", "<!-- session: end -->\n"
PORT = 3000
URL = f"http://127.0.0.1:{PORT}"
WAIT_SECONDS = 120
BLOCKS_BEFORE_THE_KILL = 20
BANNER = re.compile(rb"Transformers Inference Server \S+, pid \d+")

SERVE = "tis serve models/demo --persist-sessions &"
CHAT = f"""curl -sN {URL}/v1/chat/completions -H "Content-Type: application/json" -d '{{
    "messages": [{{"role": "user", "content": "Tell me a short story."}}], "temperature": 0,
    "ignore_eos": true, "max_tokens": 300, "stream": true, "session_id": "story-1"}}' > first.txt &"""
LAST = "grep '^id:' first.txt | tail -n 1"
KILL = "kill -9 {pid}"
RESUME = f'curl -sN {URL}/v1/stream/story-1 -H "Last-Event-ID: {{last}}" > rest.txt'
WHOLE = f"curl -sN {URL}/v1/stream/story-1 > whole.txt"
COMPARE = "cat first.txt rest.txt | cmp - whole.txt && echo identical"
COUNT = "grep -c '^id:' first.txt rest.txt whole.txt"
# What the README must show, in this order; `{pid}` and `{last}` are of the recording.
COMMANDS = (SERVE, CHAT, KILL, LAST, SERVE, RESUME, WHOLE, COUNT, COMPARE)


class RecordingFailed(Exception):
    """The server did something else than it should; the message says what."""


class Recorder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self._output = b""
        self._server: subprocess.Popen[bytes] | None = None
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self._environment = {
            **inherited,
            "PORT": str(PORT),
            "SESSIONS_DB_PATH": str(folder / "sessions.db"),
            "DATABASE_URL": f"sqlite:///{folder / 'marketplace.db'}",
            "TMPDIR": str(folder),
        }

    def show(self, command: str) -> None:
        self.lines.append(f"$ {command}")

    def serve(self) -> None:
        """Starts the server, and shows the line of its banner that has the pid."""
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", PORT))
        arguments = [sys.executable, "-m", "tis", "serve", str(ROOT / "models" / "demo"), "--persist-sessions"]
        terminal, end = pty.openpty()
        self._output = b""
        self._server = subprocess.Popen(
            arguments,
            cwd=self.folder,
            env={**self._environment, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
            stdin=subprocess.DEVNULL,
            stdout=end,
            stderr=end,
        )
        os.close(end)
        threading.Thread(target=self._read_all, args=(terminal,), daemon=True).start()
        self.show(SERVE)
        self._wait(lambda: BANNER.search(self._output), "the server is not ready")
        self.lines.append(BANNER.search(self._output)[0].decode())  # type: ignore[index]
        self._pid = int(self.lines[-1].rpartition(" ")[2])  # of the server: `tis serve` itself is its small parent

    def _read_all(self, terminal: int) -> None:
        with open(terminal, "rb", buffering=0) as output:
            try:
                while data := output.read(4096):
                    self._output += data
            except OSError:  # how Linux says that the other end was closed
                return

    def chat(self) -> subprocess.Popen[bytes]:
        self.show(CHAT)
        client = subprocess.Popen(["bash", "-c", CHAT.removesuffix(" &")], cwd=self.folder, env=self._environment)
        first = self.folder / "first.txt"
        first.touch()
        self._wait(lambda: first.read_bytes().count(b"\n\n") >= BLOCKS_BEFORE_THE_KILL, "the stream does not begin")
        return client

    def kill(self) -> None:
        if self._server:
            self.show(KILL.format(pid=self._pid))
            os.kill(self._pid, signal.SIGKILL)
            self._server.wait()
            self._server = None

    def run(self, command: str) -> str:
        self.show(command)
        done = self._run(command)
        if done.returncode:
            raise RecordingFailed(f"{command!r} ended with {done.returncode}: {done.stderr}")
        self.lines += done.stdout.splitlines()
        return done.stdout.strip()

    def _run(self, command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
        )

    def _wait(self, is_so: Callable[[], object], failure: str) -> None:
        end = time.monotonic() + WAIT_SECONDS
        while not is_so():
            if time.monotonic() > end or (self._server and self._server.poll() is not None):
                raise RecordingFailed(f"{failure}\n{self._output[-2000:].decode(errors='replace')}")
            time.sleep(0.01)


def record(folder: Path) -> list[str]:
    recorder = Recorder(folder)
    try:
        recorder.serve()
        client = recorder.chat()
        recorder.kill()
        client.wait(WAIT_SECONDS)
        last = recorder.run(LAST).removeprefix("id: ")
        recorder.serve()
        recorder.run(RESUME.format(last=last))
        for command in (WHOLE, COUNT, COMPARE):
            recorder.run(command)
        return list(recorder.lines)
    finally:
        recorder.kill()


def with_session(readme: str, lines: list[str]) -> str:
    before, _, rest = readme.partition(START)
    _, _, after = rest.partition(END)
    if not after:
        raise RecordingFailed(f"{README} lacks the markers {START.strip()} and {END.strip()}")
    return before + START + "```console\n" + "\n".join(lines) + "\n```\n" + END + after


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="tis-session-", ignore_cleanup_errors=True) as folder:
        try:
            lines = record(Path(folder))
            README.write_text(with_session(README.read_text(encoding="utf-8"), lines), encoding="utf-8")
        except (RecordingFailed, OSError, subprocess.SubprocessError) as error:
            print(f"No session was recorded: {error}", file=sys.stderr)
            return 1
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
