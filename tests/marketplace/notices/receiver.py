"""A program that webhooks call, as a process: each path behaves in its own way. `python -m` runs it.

It writes a line of JSON for each call into the file that its argument names.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock
from typing import Any

_REPOSITORY = Path(__file__).parents[3]  # this starts often: it imports no part of the server
_BIG = 30_000_000  # bytes, of an answer that nobody should read


class _Handler(BaseHTTPRequestHandler):
    """/status/503, /slow/5, /hang, /redirect, /big, /rest/30 (Retry-After), /once/500 (then 200), /one/N (fails it)."""

    lock = Lock()
    calls: dict[str, int] = {}
    file = Path()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        call = {"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "body": body}
        with self.lock:
            num = self.calls[self.path] = self.calls.get(self.path, 0) + 1
            with self.file.open("a") as opened:
                opened.write(json.dumps(call) + "\n")
        self._answer(num, body)

    def _answer(self, num: int, body: str) -> None:
        _, kind, value, *_ = [*self.path.split("/"), "", ""]
        if kind == "hang":
            Event().wait(60)
        if kind == "slow":
            time.sleep(float(value))
        status = {"status": value, "once": value if num == 1 else "200", "redirect": "307", "rest": "429"}.get(kind)
        if kind == "one" and json.loads(body)["number"] == int(value) and num < 3:
            status = "400"
        self.send_response(int(status or 200))
        if kind == "redirect":
            assert isinstance(self.server, ThreadingHTTPServer)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/stolen")
        if kind == "rest":
            self.send_header("Retry-After", value)
        size = _BIG if kind == "big" else 2
        self.send_header("Content-Length", str(size))
        self.end_headers()
        try:
            for _ in range(0, size, 1_000_000):
                self.wfile.write(b"x" * min(size, 1_000_000))
        except OSError:
            pass  # nobody reads on

    def log_message(self, *_: Any) -> None:
        pass


@dataclass(frozen=True)
class Receiver:
    port: int
    file: Path
    process: "subprocess.Popen[str]"

    def calls(self, path: str | None = None) -> list[dict[str, Any]]:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return [one for one in map(json.loads, lines) if path in (None, one["path"])]

    def events(self, path: str) -> list[str]:
        return [one["headers"]["webhook-id"] for one in self.calls(path)]

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [json.loads(one["body"]) for one in self.calls(path)]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def running_receiver(folder: Path) -> Iterator[Receiver]:
    file = folder / "calls.jsonl"
    command = [sys.executable, "-m", "tests.marketplace.notices.receiver", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_REPOSITORY) as process:
        assert process.stdout is not None
        yield Receiver(int(process.stdout.readline()), file, process)
        process.kill()


def _main() -> None:
    _Handler.file = Path(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    _main()
