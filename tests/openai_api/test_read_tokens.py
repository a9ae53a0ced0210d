"""Read tokens: how an EventSource, which sends no headers of a page, reads a stream of a server with keys."""

import hmac
import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import blocks_of
from tests.openai_api.test_resume import LONG
from tests.serving import MovedClock, Served, free_port, served, server_process, settings_with, wait_until_live
from tis.arguments.limits import session_limits_of
from tis.streaming.stores.memory import MemoryStore

ALPHA, BETA = {"Authorization": "Bearer alpha"}, {"Authorization": "Bearer beta"}
PAGE = {"Origin": "http://localhost:5173"}


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with(api_keys="alpha,beta")) as running:
        yield running


@pytest.fixture
def http(server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=30) as client:
        yield client


@pytest.fixture
def session_id(request: pytest.FixtureRequest) -> str:
    return "token-" + "".join(one if one.isalnum() else "-" for one in request.node.name)


def answered(http: httpx2.Client, session_id: str, text: str = "Halo", key: dict[str, str] = ALPHA) -> str:
    answer = http.post(CHAT, json=said(text, session_id=session_id, stream=True), headers=key)
    assert answer.status_code == 200, answer.text
    return answer.text


def token_of(http: httpx2.Client, session_id: str, key: dict[str, str] = ALPHA) -> dict[str, Any]:
    answer = http.post(f"/v1/stream/{session_id}/read_token", headers=key)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def read(http: httpx2.Client, session_id: str, token: str, **headers: str) -> httpx2.Response:
    return http.get(f"/v1/stream/{session_id}", params={"read_token": token}, headers={**PAGE, **headers})


def is_refused(answer: httpx2.Response, code: str = "invalid_read_token") -> bool:
    return (answer.status_code, answer.json()["error"]["code"]) == (401, code)


def test_an_event_source_reads_resumes_and_ends_with_the_token(http: httpx2.Client, session_id: str) -> None:
    whole = answered(http, session_id)
    given = token_of(http, session_id)
    assert given["session_id"] == session_id and given["expires_in"] == 600
    first = http.get(given["url"], headers=PAGE)
    assert first.text == whole and first.headers["content-type"].startswith("text/event-stream")
    assert first.headers["access-control-allow-origin"] == PAGE["Origin"]
    blocks = blocks_of(whole)
    rest = http.get(given["url"], headers={**PAGE, "Last-Event-ID": blocks[2].id})
    assert blocks_of(rest.text) == list(blocks[3:])
    assert http.get(given["url"], headers={**PAGE, "Last-Event-ID": blocks[-1].id}).status_code == 204
    assert http.get(given["url"].replace("?", "/?")).text == whole


def test_a_stranger_makes_the_server_sign_once_however_many_keys_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signature for each of 1000 keys held up the event loop for 10 ms, without a key."""
    signed: list[bytes] = []
    digest = hmac.digest

    def counted(key: bytes, message: bytes, kind: Any) -> bytes:
        signed.append(message)
        return digest(key, message, kind)

    monkeypatch.setattr(hmac, "digest", counted)
    with served(settings_with(api_keys=",".join(f"key-{number}" for number in range(200)))) as running:
        mine = {"Authorization": "Bearer key-100"}
        httpx2.post(running.url + CHAT, json=said("Halo", session_id="s", stream=True), headers=mine)
        token = httpx2.post(f"{running.url}/v1/stream/s/read_token", headers=mine).json()["read_token"]
        statuses = []
        for session_id in ("s", "nobody-has-it"):
            signed.clear()
            statuses.append(httpx2.get(f"{running.url}/v1/stream/{session_id}?read_token={token}").status_code)
            assert [one.startswith(b"read token") for one in signed].count(True) == 1
        assert statuses == [200, 401]


def test_a_page_gets_the_token_with_its_key(http: httpx2.Client, session_id: str) -> None:
    answered(http, session_id)
    path = f"/v1/stream/{session_id}/read_token"
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    assert http.options(path, headers={**PAGE, **preflight}).status_code == 200
    answer = http.post(path, headers={**PAGE, **ALPHA})
    assert answer.headers["access-control-allow-origin"] == PAGE["Origin"]
    assert answer.headers["cache-control"] == "no-store"


def test_no_token_without_a_key_and_none_for_a_session_of_others(http: httpx2.Client, session_id: str) -> None:
    answered(http, session_id)
    path = f"/v1/stream/{session_id}/read_token"
    assert is_refused(http.post(path), "invalid_api_key")
    assert http.post(path, headers=BETA).json()["error"]["code"] == "session_not_found"
    token = token_of(http, session_id)["read_token"]
    assert is_refused(http.post(path, params={"read_token": token}), "invalid_api_key")


def test_it_reads_this_session_only_and_does_nothing_else(http: httpx2.Client, session_id: str) -> None:
    other = f"{session_id}-other"
    for name in (session_id, other):
        answered(http, name)
    query = {"read_token": token_of(http, session_id)["read_token"]}
    assert is_refused(http.get(f"/v1/stream/{other}", params=query))
    requests = [
        ("GET", "/v1/models"),
        ("GET", f"/v1/stream/{session_id}/read_token"),
        ("POST", f"/v1/stream/{session_id}"),
        ("POST", f"/v1/cancel/{session_id}"),
        ("POST", CHAT),
        ("DELETE", f"/v1/responses/{session_id}"),
    ]
    for method, path in requests:
        assert is_refused(http.request(method, path, params=query), "invalid_api_key")


def test_the_session_of_another_key_under_the_same_id_stays_closed(http: httpx2.Client, session_id: str) -> None:
    answered(http, session_id, "of alpha", ALPHA)
    answered(http, session_id, "of beta", BETA)
    alpha, beta = (token_of(http, session_id, key)["read_token"] for key in (ALPHA, BETA))
    assert (
        '"content":"a"' in read(http, session_id, alpha).text
        and '"content":"b"' not in read(http, session_id, alpha).text
    )
    assert '"content":"b"' in read(http, session_id, beta).text


@pytest.mark.parametrize(
    "change", ["time", "turn", "owner", "answer", "signature", "cut", "nothing", "unicode", "long"]
)
def test_a_changed_token_is_refused(http: httpx2.Client, session_id: str, change: str) -> None:
    answered(http, session_id)
    token = token_of(http, session_id)["read_token"]
    issued_at, turn, owner, answer, signature = token.split(".")
    changed = {
        "time": f"{int(issued_at) + 1}.{turn}.{owner}.{answer}.{signature}",
        "turn": f"{issued_at}.{int(turn) + 1}.{owner}.{answer}.{signature}",
        "owner": f"{issued_at}.{turn}.{owner[::-1]}.{answer}.{signature}",
        "answer": f"{issued_at}.{turn}.{owner}.{answer[::-1]}.{signature}",
        "signature": f"{issued_at}.{turn}.{owner}.{answer}.{signature[::-1]}",
        "cut": token[:-1],
        "nothing": "",
        "unicode": f"٣.٠.{owner}.{answer}.{signature}",
        "long": token + "x" * 1000,
    }
    assert is_refused(read(http, session_id, changed[change]))


def test_a_key_wins_over_a_token(http: httpx2.Client, session_id: str) -> None:
    answered(http, session_id)
    assert read(http, session_id, "no token", **ALPHA).status_code == 200


def test_it_is_valid_while_the_answer_runs_and_until_the_ttl_after_it() -> None:
    clock = MovedClock()
    settings = settings_with(api_keys="alpha", model_repo_id="echo?tokens_per_second=20", sessions_ttl_seconds=100)
    rules = replace(session_limits_of(settings), sweep_seconds=1000)
    with (
        served(settings, session_store=MemoryStore(clock), session_limits=rules) as one,
        httpx2.Client(base_url=one.url, timeout=30) as http,
    ):
        with http.stream("POST", CHAT, json=said(LONG, session_id="s", stream=True), headers=ALPHA) as running:
            pieces = running.iter_text()
            next(pieces)
            token = token_of(http, "s")["read_token"]
            clock.move(1000)
            with http.stream("GET", f"/v1/stream/s?read_token={token}") as reading:
                assert reading.status_code == 200
            assert list(pieces)
        clock.move(90)
        assert read(http, "s", token).status_code == 200
        clock.move(20)  # reading with the token has not made it last longer, only the session
        assert is_refused(read(http, "s", token))
        assert read(http, "s", token_of(http, "s")["read_token"]).status_code == 200


class TestAcrossRestarts:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "sessions.db"

    def test_a_token_outlives_the_process_as_its_session_does(self, path: Path) -> None:
        settings = settings_with(api_keys="alpha,beta", persist_sessions=True, sessions_db_path=str(path))
        with served(settings) as one, httpx2.Client(base_url=one.url) as http:
            whole = answered(http, "s")
            token = token_of(http, "s")["read_token"]
        key = path.with_name("sessions.db.key")
        if sys.platform != "win32":
            assert key.stat().st_mode & 0o777 == 0o600
        with served(settings) as one, httpx2.Client(base_url=one.url) as http:
            assert read(http, "s", token).text == whole
        with served(settings.model_copy(update={"api_keys": settings.api_keys[1:]})) as one:
            with httpx2.Client(base_url=one.url) as http:
                assert is_refused(read(http, "s", token))  # the key that made it is withdrawn
        key.write_text("damaged")
        with served(settings) as one, httpx2.Client(base_url=one.url) as http:
            assert is_refused(read(http, "s", token))
            assert read(http, "s", token_of(http, "s")["read_token"]).text == whole


class TestLogs:
    def test_our_own_lines_have_no_query(self, session_id: str, caplog: pytest.LogCaptureFixture) -> None:
        with (
            caplog.at_level(logging.DEBUG),
            served(settings_with(api_keys="alpha", log_level="debug")) as one,
            httpx2.Client(base_url=one.url) as http,
        ):
            answered(http, session_id)
            token = token_of(http, session_id)["read_token"]
            assert read(http, session_id, token).status_code == 200
            assert read(http, session_id, token, **{"Last-Event-ID": "x:y:z"}).status_code == 400
            assert is_refused(read(http, f"{session_id}-other", token))
        ours = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
        assert any("GET /v1/stream/" in line for line in ours) and not any(token in line for line in ours)

    @pytest.mark.parametrize("level", ["info", "trace"])
    def test_uvicorn_writes_a_url_without_the_token(self, level: str) -> None:
        port = str(free_port())
        command = (sys.executable, "-m", "uvicorn", "main:app", "--port", port, "--log-level", level)
        with server_process(*command, PORT=port, API_KEYS="alpha") as process:
            wait_until_live(process.url)
            with httpx2.Client(base_url=process.url) as http:
                answered(http, "s")
                token = token_of(http, "s")["read_token"]
                assert urlsplit(str(read(http, "s", token).url)).query == f"read_token={token}"
                assert read(http, "s", token[:-1]).status_code == 401
            process.popen.terminate()
            assert process.popen.stdout
            log = process.popen.stdout.read()
        assert "GET /v1/stream/s?read_token=[redacted] HTTP/1.1" in log
        assert token[:-1] not in log


def test_a_token_of_a_stored_response_reads_its_events_and_nothing_else(http: httpx2.Client) -> None:
    body = {"model": "m", "input": "Halo", "instructions": "Be brief.", "stream": True}
    whole = http.post("/v1/responses", json=body, headers=ALPHA).text
    first = json.loads(whole.partition("data: ")[2].partition("\n")[0])
    response_id = first["response"]["id"]
    token = token_of(http, response_id)["read_token"]
    assert read(http, response_id, token).text == whole
    rest = read(http, response_id, token, **{"Last-Event-ID": f"{response_id}:3"}).text
    assert whole.endswith(rest) and rest.startswith(f"id: {response_id}:4\n")
    query = {"read_token": token}
    assert http.get(f"/v1/responses/{response_id}", params=query).status_code == 401
    assert http.post(f"/v1/stream/{response_id}/read_token", headers=BETA).status_code == 404
    assert http.delete(f"/v1/responses/{response_id}", headers=ALPHA).status_code == 200
    assert is_refused(read(http, response_id, token))
    unstored = http.post("/v1/responses", json={**body, "store": False}, headers=ALPHA).text
    unstored_id = json.loads(unstored.partition("data: ")[2].partition("\n")[0])["response"]["id"]
    assert http.post(f"/v1/stream/{unstored_id}/read_token", headers=ALPHA).status_code == 404
