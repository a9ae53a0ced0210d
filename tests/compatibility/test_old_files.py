"""Files that version 0.1 left behind when it was killed open here; streams that were under way end as interrupted.

`files-of-0.1.tar.gz` has its session file and its marketplace with their logs, as commit 47dc909 wrote them: a stream
that ended, one that was cut by SIGKILL, a stored response; the sample, a user and a reservation. What its clients had
been shown is in `contents-of-0.1.json`.
"""

import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.serving import Process, server_process, wait_until_live
from tests.test_status import until

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent
CONTENTS: dict[str, Any] = json.loads((FOLDER / "contents-of-0.1.json").read_text())
_FOR_EVER = "3153600000"  # seconds: the files only get older


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(FOLDER / "files-of-0.1.tar.gz") as files:
        files.extractall(folder, filter="data")
    settings = {
        "MODEL_REPO_ID": "echo?tokens_per_second=25",
        "PERSIST_SESSIONS": "1",
        "SESSIONS_DB_PATH": str(folder / "sessions.db"),
        "DATABASE_URL": f"sqlite:///{folder}/marketplace.db",
        "SESSIONS_TTL_SECONDS": _FOR_EVER,
        "RESPONSES_TTL_SECONDS": _FOR_EVER,
        "CANCEL_AFTER_DISCONNECT_SECONDS": "0",
        "MARKETPLACE_AUTH": "open",
    }
    with server_process(**settings) as process:
        wait_until_live(process.url)
        until(lambda: httpx2.get(f"{process.url}/health").json()["marketplace"] == "ready")
        yield process


def text_of(stream: str) -> str:
    return "".join(
        json.loads(f'"{text}"') for text in re.findall(r'"delta":\{[^}]*"content":"((?:[^"\\]|\\.)*)"', stream)
    )


def test_a_finished_stream_is_replayed_byte_for_byte(server: Process) -> None:
    body = {"session_id": "finished", "messages": [{"role": "user", "content": "a stream that ended"}], "stream": True}
    replayed = httpx2.post(f"{server.url}/v1/chat/completions", json=body)
    assert replayed.text == CONTENTS["finished_stream"]


def test_a_stream_that_an_older_version_left_unfinished_ends_as_interrupted(server: Process) -> None:
    """Its events were made by other rules, so none is added to them but the error. A repeated POST answers anew."""
    cut = CONTENTS["cut_stream"]
    last = re.findall(r"^id: (\S+)$", cut["seen"], re.MULTILINE)[-1]
    rest = httpx2.get(f"{server.url}/v1/stream/cut", headers={"Last-Event-ID": last}, timeout=60)
    assert rest.status_code == 200
    error = json.loads(rest.text.rstrip().rpartition("data: ")[2])["error"]
    assert error["code"] == "generation_interrupted"
    whole = httpx2.get(f"{server.url}/v1/stream/cut", timeout=60)
    assert whole.text == cut["seen"] + rest.text
    body = {"session_id": "cut", "messages": [{"role": "user", "content": cut["prompt"]}], "stream": True}
    again = httpx2.post(f"{server.url}/v1/chat/completions", json=body, timeout=60).text
    assert text_of(again) == cut["prompt"] and again.rstrip().endswith("data: [DONE]")


def test_a_stored_response_is_there(server: Process) -> None:
    response = httpx2.get(f"{server.url}/v1/responses/{CONTENTS['response']['id']}").json()
    assert response["output"][0]["content"][0]["text"] == CONTENTS["response"]["text"]


def test_the_marketplace_is_as_it_was(server: Process) -> None:
    user, reservation = CONTENTS["user"], CONTENTS["reservation"]
    products = httpx2.get(f"{server.url}/api/products", params={"limit": 100}).json()
    assert len(products) == 14  # of 15, one is sold out
    signed_in = httpx2.post(
        f"{server.url}/api/auth/login", json={"email": user["email"], "password": user["password"]}
    ).json()
    token = {"Authorization": f"Bearer {signed_in['access_token']}"}
    assert httpx2.get(f"{server.url}/api/auth/me", headers=token).json()["id"] == user["id"]
    held = httpx2.get(f"{server.url}/api/reservations/{reservation['id']}").json()
    assert (held["product_id"], held["quantity"]) == (reservation["product_id"], reservation["quantity"])
    assert held["status"] in ("held", "expired")  # it was held for a day
