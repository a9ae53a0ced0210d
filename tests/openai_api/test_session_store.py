"""What clients are told of a store that is full, or that lost the end of their session."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.serving import served, settings_with
from tis.streaming.stores.sqlite import SqliteStore


@contextmanager
def server_on(path: Path, model: str = "echo", max_bytes: int | None = None) -> Iterator[httpx2.Client]:
    store = SqliteStore(path, max_bytes=max_bytes)
    with served(settings_with(model_repo_id=model), session_store=store) as server:
        with httpx2.Client(base_url=server.url, timeout=30) as http:
            yield http


def test_a_session_that_does_not_fit_into_the_store_says_so(tmp_path: Path) -> None:
    large: dict[str, Any] = said("large " * 5_000, session_id="large", stream=True)
    with server_on(tmp_path / "sessions.db", "echo?tokens_per_second=20", max_bytes=150_000) as http:
        with http.stream("POST", CHAT, json=large) as running:
            assert "X-Session-Durability" not in running.headers
            next(running.iter_lines())
            streamed = http.post(CHAT, json=said("Halo", session_id="streamed", stream=True))
            assert (streamed.status_code, streamed.headers["X-Session-Durability"]) == (200, "memory")
            assert http.get("/ready").json() == {"ok": True, "reason": None, "durability": "full", "ktp": "waiting"}
            folded = http.post(CHAT, json=said("Halo", session_id="folded"))
            assert (folded.status_code, folded.headers["X-Session-Durability"]) == (200, "memory")
            assert http.get("/v1/stream/streamed").headers["X-Session-Durability"] == "memory"
        http.post("/v1/cancel/large")
        later = http.post(CHAT, json=said("Halo", session_id="later"))
        assert later.status_code == 200 and "X-Session-Durability" not in later.headers
        assert http.get("/ready").json()["durability"] == "durable"


@pytest.mark.parametrize("index", [5, 6, 99])
def test_a_cursor_behind_what_was_stored_is_gone(tmp_path: Path, index: int) -> None:
    path = tmp_path / "sessions.db"
    with server_on(path) as http:
        http.post(CHAT, json=said("Halo, apa kabar?", session_id="cut"))
    with closing(sqlite3.connect(path)) as file:  # as the writer leaves a session that the file rejects
        file.execute("DELETE FROM events WHERE idx > 5")
        file.execute("UPDATE turns SET status = 'failed', last_index = 5, ended_at = 0, is_worth_repeating = 0")
        file.execute("UPDATE sessions SET is_cut = 1")
        file.commit()
    with server_on(path) as http:
        cursor = {"Last-Event-ID": f"cut:{index}"}
        body = said("Halo, apa kabar?", session_id="cut", stream=True)
        for gone in (http.get("/v1/stream/cut", headers=cursor), http.post(CHAT, json=body, headers=cursor)):
            assert (gone.status_code, gone.json()["error"]["code"]) == (410, "replay_gap")
        again = http.get("/v1/stream/cut").text
        assert "id: cut:5\n" in again and '"code":"replay_gap"' in again.split("id: cut:5\n")[1]
        assert http.post(CHAT, json=said("What else?", session_id="cut")).status_code == 410
