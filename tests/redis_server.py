"""A real Redis for tests, on a port of its own, with its files in a temporary folder."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.serving import free_port

_START_SECONDS = 20


@dataclass
class RedisServer:
    folder: Path
    port: int
    options: Sequence[str] = ()
    password: str = ""
    _popen: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> Any:
        return redis.Redis(port=self.port, password=self.password or None, decode_responses=True)

    def ask(self, *command: str | int) -> Any:
        with self.client() as client:
            return client.execute_command(*command)

    def start(self) -> None:
        program = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            self._popen = subprocess.Popen([*program, "--save", "", *self.options], stdout=log, stderr=log)
        end = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._popen.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"Redis does not come up:\n{(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.01)

    def kill(self) -> None:
        assert self._popen
        self._popen.kill()
        self._popen.wait()

    def pause(self) -> None:
        assert self._popen
        self._popen.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._popen
        self._popen.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        try:
            return bool(self.ask("PING"))
        except redis.exceptions.RedisError:
            return False


def require_redis() -> None:
    if shutil.which("redis-server") is None:
        if os.environ.get("SERVICES") == "required":
            raise FileNotFoundError("Redis must be installed where SERVICES=required")
        pytest.skip("no Redis here: `apt-get install redis-server`")


@contextmanager
def running_redis(*options: str, password: str = "") -> Iterator[RedisServer]:
    """Fails or skips where there is none."""
    require_redis()
    with tempfile.TemporaryDirectory(prefix="tis-redis-") as name:
        server = RedisServer(Path(name), free_port(), options, password)
        server.start()
        try:
            yield server
        finally:
            server.kill()
