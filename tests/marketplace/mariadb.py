"""A real MariaDB for tests, on a socket of its own in a temporary folder."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql

from tests.databases import place_of_servers

_START_SECONDS = 60
# Listening nowhere but here, and promising nothing to the disk: it is gone after the tests.
_SMALL = "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M", "--innodb-use-native-aio=0"
_OPTIONS = (
    "--skip-networking",
    *_SMALL,
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--sync-frm=0",
    "--performance-schema=OFF",
    "--max-connections=300",
)


@dataclass
class MariaDB:
    folder: Path
    program: str
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def socket(self) -> str:
        return str(self.folder / "socket")

    def url(self, database: str = "") -> str:
        return f"mysql+pymysql://root@localhost/{database}?unix_socket={self.socket}"

    def new_database(self, name: str) -> str:
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE `{name}`")
        return self.url(name)

    def start(self) -> None:
        files = f"--datadir={self.folder / 'data'}", f"--socket={self.socket}", f"--pid-file={self.folder / 'pid'}"
        command = [self.program, "--no-defaults", *files, *_OPTIONS, f"--log-error={self.folder / 'log'}"]
        self._process = subprocess.Popen(command, cwd=self.folder, **_as_somebody())
        self._wait_for_answer()

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()

    def _connect(self) -> Any:
        return pymysql.connect(user="root", unix_socket=self.socket, autocommit=True)

    def _wait_for_answer(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                with socket.socket(socket.AF_UNIX) as knocking:
                    knocking.connect(self.socket)
                return
            except OSError:
                assert self._process and self._process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < deadline, "MariaDB does not start"
            time.sleep(0.05)


def program_of_mariadb() -> str | None:
    """Debian's is in /usr/sbin, which is not on the path of users."""
    return shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@contextmanager
def running_mariadb(program: str) -> Iterator[MariaDB]:
    with tempfile.TemporaryDirectory(prefix="tis-maria-", dir=place_of_servers()) as name:
        folder = Path(name)
        if os.getuid() == 0:
            shutil.chown(folder, "mysql")
        _install(folder)
        mariadb = MariaDB(folder, program)
        mariadb.start()
        try:
            yield mariadb
        finally:
            mariadb.kill()


def _install(folder: Path) -> None:
    """Makes the data folder. Without `--force` it needs a name server that knows this machine's name."""
    install = shutil.which("mariadb-install-db") or "mariadb-install-db"
    command = [install, "--no-defaults", f"--datadir={folder / 'data'}", "--auth-root-authentication-method=normal"]
    command += ["--skip-test-db", "--force", f"--tmpdir={folder}", *_SMALL]
    for is_last in (False, True):
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, **_as_somebody())
        if done.returncode == 0:
            return
        assert not is_last, f"{done.stdout}\n{done.stderr}"
        shutil.rmtree(folder / "data", ignore_errors=True)


def _as_somebody() -> dict[str, Any]:
    """MariaDB refuses to run as root."""
    return {"user": "mysql"} if os.getuid() == 0 else {}
