"""A real PostgreSQL for tests, on a socket of its own in a temporary folder."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # comes with accelerate
import psycopg
import pytest

from tis.database.database import Database
from tis.marketplace.market import migrate


@dataclass(frozen=True)
class Postgres:
    folder: Path
    programs: Path
    options: str = ""

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def new_database(self, name: str, template: str = "template1") -> str:
        """An empty one, or a copy."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.url(name)

    def new_market(self, name: str) -> str:
        """With the tables of the market: a copy of a database that was migrated."""
        return self.new_database(name, self._migrated)

    @cached_property
    def _migrated(self) -> str:
        database = Database(self.new_database("migrated"))
        migrate(database)
        database.close()
        return "migrated"

    def start(self) -> None:
        # Listening nowhere but here, and promising nothing to the disk: it is gone after the tests.
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off -c max_connections=200 {self.options}"
        self._control("start", "-o", options, "-l", str(self.folder / "log"))

    def stop(self, mode: str = "immediate") -> None:
        self._control("stop", "-m", mode)

    def kill(self) -> None:
        """As a machine does that loses its power: nobody is asked."""
        psutil.wait_procs(self._signal(signal.SIGKILL), timeout=30)

    def promote(self) -> None:
        """From a standby to one that takes writes."""
        self._control("promote")

    @property
    def is_running(self) -> bool:
        try:
            pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        except FileNotFoundError:
            return False
        return bool(psutil.pid_exists(pid))

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> list[psutil.Process]:
        """To all of its processes, the first one before those that it starts."""
        postmaster = psutil.Process(int((self.folder / "data" / "postmaster.pid").read_text().split()[0]))
        processes = [postmaster, *postmaster.children()]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        return processes

    def _control(self, *arguments: str) -> None:
        command: list[str | Path] = [self.programs / "pg_ctl", "-D", self.folder / "data", "-w", *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **as_somebody())


def programs_of_postgres() -> Path | None:
    """Where `initdb` is: on the path, or where Debian puts it."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    return max((path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")), default=None)


@contextmanager
def running_postgres(programs: Path, place: str = "/tmp", options: str = "") -> Iterator[Postgres]:
    with tempfile.TemporaryDirectory(prefix="tis-pg-", dir=place) as name:
        folder = Path(name)
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
        subprocess.run(
            [programs / "initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=folder,
            **as_somebody(),
        )
        postgres = Postgres(folder, programs, options)
        postgres.start()
        try:
            yield postgres
        finally:
            postgres.stop()


@contextmanager
def required_postgres(place: str = "/tmp", options: str = "") -> Iterator[Postgres]:
    """Fails or skips where there is none."""
    programs = programs_of_postgres()
    if programs is None:
        if os.environ.get("SERVICES") == "required":
            raise FileNotFoundError("PostgreSQL must be installed where SERVICES=required")
        pytest.skip("no PostgreSQL here: `apt-get install postgresql`")
    with running_postgres(programs, place, options) as running:
        yield running


def as_somebody() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    return {"user": "postgres"} if os.getuid() == 0 else {}
