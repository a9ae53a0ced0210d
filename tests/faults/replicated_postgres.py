"""A PostgreSQL and its standby, which has what the primary acknowledges (synchronous streaming replication)."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.databases import place_of_servers
from tests.marketplace.postgres import Postgres, as_somebody, required_postgres

_MAX_LOOKS = 1000


@dataclass(frozen=True)
class ReplicatedPostgres:
    primary: Postgres
    standby: Postgres

    def url(self, database: str) -> str:
        """Of whichever takes writes: libpq asks one host after the other."""
        hosts = f"{self.primary.folder},{self.standby.folder}"
        return f"postgresql://postgres@/{database}?host={hosts}&target_session_attrs=read-write"

    def wait_for_replication(self) -> None:
        """From now on the primary acknowledges nothing that the standby does not have."""
        with psycopg.connect(self.primary.url(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            for _ in range(_MAX_LOOKS):
                if connection.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'").fetchone():
                    return
                connection.execute("SELECT pg_sleep(0.02)")
        raise AssertionError(f"the standby does not follow:\n{(self.standby.folder / 'log').read_text()[-2000:]}")


@contextmanager
def replicated_postgres() -> Iterator[ReplicatedPostgres]:
    """Fails or skips where there is none."""
    place = place_of_servers()
    with required_postgres(place) as primary, tempfile.TemporaryDirectory(prefix="tis-pg-", dir=place) as name:
        folder = Path(name)
        if as_somebody():
            shutil.chown(folder, "postgres")
        source = ["--host", str(primary.folder), "--username", "postgres", "--checkpoint", "fast", "--no-sync"]
        subprocess.run(
            [primary.programs / "pg_basebackup", *source, "--write-recovery-conf", "--pgdata", folder / "data"],
            check=True,
            cwd=folder,
            **as_somebody(),
        )
        standby = Postgres(folder, primary.programs)
        standby.start()
        try:
            pair = ReplicatedPostgres(primary, standby)
            pair.wait_for_replication()
            yield pair
        finally:
            standby.stop()
            if not primary.is_running:  # its fixture stops it
                primary.start()
