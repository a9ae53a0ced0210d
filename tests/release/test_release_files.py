"""Files that the release left behind when it was killed open here, and its streams go on.

`files.tar.xz` has its session file and its marketplace with their logs; what clients had been shown is in
`contents.json`. `write_files.py` made both.
"""

import json
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.release.write_files import CONTENTS, CUT, FILES, FINISHED, NUM_ROWS, release_server, wait_until_ready
from tests.serving import Process

pytestmark = pytest.mark.long

WRITTEN: dict[str, Any] = json.loads(CONTENTS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder: Path = tmp_path_factory.mktemp("release")
    with tarfile.open(FILES) as files:
        files.extractall(folder, filter="data")
    with release_server(folder, tokens_per_second=100) as process:
        wait_until_ready(process)
        yield process


def test_a_finished_stream_is_replayed_byte_for_byte(server: Process) -> None:
    assert httpx2.post(f"{server.url}/v1/chat/completions", json=FINISHED).text == WRITTEN["finished_stream"]


def test_a_stream_that_was_cut_goes_on(server: Process) -> None:
    seen = WRITTEN["cut_stream"]
    whole = httpx2.get(f"{server.url}/v1/stream/cut", timeout=60).text
    assert whole.startswith(seen) and whole.rstrip().endswith("data: [DONE]")
    texts = [json.loads(line[6:]) for line in whole.splitlines() if line.startswith("data: {")]
    answer = "".join(one["choices"][0]["delta"].get("content") or "" for one in texts)
    assert [answer] == [message["content"] for message in CUT["messages"]]  # type: ignore[attr-defined]
    last = f"cut:{seen.count(chr(10) + 'id: ')}"
    rest = httpx2.get(f"{server.url}/v1/stream/cut", headers={"Last-Event-ID": last}, timeout=60).text
    assert seen + rest == whole


def test_a_response_and_its_conversation_are_there(server: Process) -> None:
    response = httpx2.get(f"{server.url}/v1/responses/{WRITTEN['response']['id']}").json()
    assert response["output"][0]["content"][0]["text"] == WRITTEN["response"]["text"]
    items = httpx2.get(f"{server.url}/v1/conversations/{WRITTEN['conversation']}/items?order=asc").json()["data"]
    assert [item["content"][0]["text"] for item in items][:2] == ["Nama saya SPECIMEN.", "Apa kabar?"]
    more = {"conversation": WRITTEN["conversation"], "input": "Dan kamu?"}
    assert httpx2.post(f"{server.url}/v1/responses", json=more).json()["status"] == "completed"


def test_the_marketplace_is_as_it_was(server: Process) -> None:
    user, held = WRITTEN["user"], WRITTEN["reservation"]
    with httpx2.Client(base_url=server.url) as http:
        signed_in = http.post("/api/auth/login", json={"email": user["email"], "password": user["password"]}).json()
        http.headers["Authorization"] = f"Bearer {signed_in['access_token']}"
        assert http.get("/api/auth/me").json()["id"] == user["id"]
        found = http.get("/api/products/search", params={"q": "kopi gayo"}).json()
        assert [one["id"] for one in found] == [WRITTEN["product"]]
        weighed = http.get("/api/products", params={"attr.berat_g.gte": "200"}).json()
        assert [one["id"] for one in weighed] == [WRITTEN["product"]]
        [review] = http.get(f"/api/products/{WRITTEN['product']}/reviews").json()
        assert (review["rating"], review["title"]) == (4, "Wangi")
        reservation = http.get(f"/api/reservations/{held['id']}").json()
        assert (reservation["product_id"], reservation["quantity"]) == (held["product_id"], held["quantity"])
        assert http.get("/api/users/me/preferences").json()["brands"] == ["gayo"]
        talk = http.get(f"/api/chat/conversations/{WRITTEN['talk']}").json()
        assert [one["content"] for one in talk if one["role"] == "user"] == ["kopi di Bandung"]
        again = {"user_id": user["id"], "query": "yang paling murah", "session_id": WRITTEN["talk"]}
        assert http.post("/api/chat/search", json=again).json()["session_id"] == WRITTEN["talk"]


def test_an_import_that_was_cut_goes_on(server: Process) -> None:
    while (progress := httpx2.get(f"{server.url}{WRITTEN['import']}").json())["status"] in ("waiting", "running"):
        time.sleep(0.1)
    assert (progress["status"], progress["created"], progress["errors"]) == ("done", NUM_ROWS, [])
