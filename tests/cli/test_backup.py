"""`tis backup` beside a server that records streams, and a server that starts from the copies."""

import shutil
import stat
import threading
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.cli.tis_process import tis
from tests.databases import new_sqlite
from tests.serving import served, settings_with
from tis.cli import backup

pytestmark = pytest.mark.slow
_TEXT = "satu dua tiga empat lima "


def variables(folder: Path) -> dict[str, str]:
    return {"SESSIONS_DB_PATH": str(folder / "sessions.db"), "DATABASE_URL": f"sqlite:///{folder}/market.db"}


@contextmanager
def server_on(folder: Path) -> Iterator[httpx2.Client]:
    settings = settings_with(
        model_repo_id="echo?tokens_per_second=500",
        persist_sessions=True,
        sessions_db_path=str(folder / "sessions.db"),
        database_url=f"sqlite:///{folder}/market.db",
        sessions_ttl_seconds=3600,
    )
    with served(settings) as server, httpx2.Client(base_url=server.url, timeout=30) as client:
        yield client


@contextmanager
def streaming(client: httpx2.Client) -> Iterator[dict[str, list[str]]]:
    """Three clients stream all the time; the dictionary has what they have received whole. Yields after ten."""
    received: dict[str, list[str]] = {}
    begun, stop = threading.Event(), threading.Event()

    def stream(worker: int) -> None:
        number = 0
        while not stop.is_set():
            session_id = f"s-{worker}-{number}"
            body = {"messages": [{"role": "user", "content": _TEXT * 5}], "stream": True, "session_id": session_id}
            answer = client.post("/v1/chat/completions", json=body).raise_for_status()
            received[session_id] = events(answer)
            number += 1
            if len(received) >= 10:
                begun.set()

    threads = [threading.Thread(target=stream, args=(worker,)) for worker in range(3)]
    for thread in threads:
        thread.start()
    try:
        assert begun.wait(30)
        yield received
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def events(answer: httpx2.Response) -> list[str]:
    return [line for line in answer.text.splitlines() if line.startswith(("id:", "data:"))]


@pytest.mark.long
def test_a_server_started_from_the_copies_has_all_that_was_acknowledged_before(tmp_path: Path) -> None:
    live, copies, restored = (tmp_path / name for name in ("live", "copies", "restored"))
    live.mkdir()
    new_sqlite(live)
    with server_on(live) as client, streaming(client) as received:
        before = dict(received)
        done = tis("backup", str(copies), folder=tmp_path, **variables(live))
        assert done.returncode == 0, done.stderr
        after = len(received)
    assert after > len(before), "nothing was written while the copy was made"
    assert {path.name for path in copies.iterdir()} >= {"sessions.db", "market.db"}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in copies.iterdir())
    shutil.copytree(copies, restored)
    with server_on(restored) as client:
        assert client.get("/ready").json()["durability"] == "durable"
        for session_id, seen in before.items():
            assert events(client.get(f"/v1/stream/{session_id}").raise_for_status()) == seen


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That of the settings of this process."""
    for name, value in variables(tmp_path).items():
        monkeypatch.setenv(name, value)
    return tmp_path


def failure_of_backup(target: Path) -> str:
    with pytest.raises(SystemExit) as exit:
        backup.run(Namespace(folder=target))
    return str(exit.value)


def test_a_copy_is_never_written_over(folder: Path) -> None:
    new_sqlite(folder)
    backup.run(Namespace(folder=folder / "copies"))
    assert "market.db is there already" in failure_of_backup(folder / "copies")


def test_without_a_file_it_says_so(folder: Path) -> None:
    assert "there is no SQLite file" in failure_of_backup(folder / "copies")
    (folder / "market.db").write_bytes(b"this is no database" * 100)
    assert "market.db: file is not a database" in failure_of_backup(folder / "copies")
    assert not list((folder / "copies").glob("*.db"))
