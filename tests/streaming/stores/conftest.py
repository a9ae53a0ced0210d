"""Stores on real files."""

import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.marketplace.postgres import Postgres, required_postgres
from tests.streaming.stores.harness import FAST, StoreHarness
from tis.streaming.stores.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made on the way" / "sessions.db"


@pytest.fixture
async def harness(path: Path) -> AsyncIterator[StoreHarness]:
    harness = StoreHarness(SqliteStore(path, timeouts=FAST))
    await harness.open()
    harness.begin_turn()
    yield harness
    await harness.store.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with required_postgres() as running:
        yield running


@pytest.fixture
def empty_postgresql(postgres: Postgres, tmp_path: Path) -> str:
    return postgres.new_database(tmp_path.name)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """A disk of a megabyte, mounted at `tmp_path`, and how to change it."""

    def change(option: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{option}", tmp_path], check=True)

    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may mount a small disk; `test_a_full_file...` fills a file without one")
    yield change
    subprocess.run(["umount", "--lazy", tmp_path], check=True)
