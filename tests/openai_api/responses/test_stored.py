"""Stored responses belong to their owner, are kept for their time, and are gone when they are deleted."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.openai_api.responses.response_requests import (
    CONVERSATIONS,
    LONG,
    RESPONSES,
    begun,
    create,
    refused,
    replay,
    text_of,
)
from tests.serving import served, settings_with


@pytest.fixture(params=["memory", "file"])
def persisted(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    if request.param == "memory":
        return {}
    return {"persist_sessions": True, "sessions_db_path": str(tmp_path / "sessions.db")}


@pytest.fixture
def owners(persisted: dict[str, Any]) -> Iterator[tuple[httpx2.Client, httpx2.Client]]:
    with served(settings_with(api_keys="mine,theirs", **persisted)) as running:
        clients = [
            httpx2.Client(base_url=running.url, headers={"Authorization": f"Bearer {key}"}, timeout=30)
            for key in ("mine", "theirs")
        ]
        with clients[0], clients[1]:
            yield clients[0], clients[1]


def test_a_response_does_not_exist_for_other_owners(owners: tuple[httpx2.Client, httpx2.Client]) -> None:
    mine, theirs = owners
    response = create(mine, "Halo")
    conversation = mine.post(CONVERSATIONS, json={"items": [{"role": "user", "content": "x"}]}).json()
    url, list_url = f"{RESPONSES}/{response['id']}", f"{CONVERSATIONS}/{conversation['id']}"
    item = mine.get(f"{list_url}/items").json()["first_id"]
    calls = [
        ("GET", url), ("GET", f"{url}?stream=true"), ("DELETE", url), ("POST", f"{url}/cancel"),
        ("GET", f"{url}/input_items"), ("GET", list_url), ("POST", list_url), ("DELETE", list_url),
        ("GET", f"{list_url}/items"), ("GET", f"{list_url}/items/{item}"), ("DELETE", f"{list_url}/items/{item}"),
    ]  # fmt: skip
    for method, path in calls:
        answer = theirs.request(method, path, json={} if method == "POST" else None)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found"), (method, path)
    for route in (RESPONSES, f"{RESPONSES}/input_tokens"):
        error = refused(theirs, {"input": "x", "previous_response_id": response["id"]}, url=route)
        assert error["code"] == "previous_response_not_found"
    refused(theirs, {"input": "x", "conversation": conversation["id"]}, 404)
    refused(theirs, {"input": [{"type": "item_reference", "id": response["output"][0]["id"]}]}, 404)
    assert mine.get(url).json() == response
    assert mine.get(f"{list_url}/items").json()["first_id"] == item


@pytest.mark.slow
def test_a_deleted_response_is_not_found(persisted: dict[str, Any], tmp_path: Path) -> None:
    with served(settings_with(**persisted)) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        response = create(client, "a secret question", metadata={"a": "secret label"})
        url = f"{RESPONSES}/{response['id']}"
        assert client.delete(url).json() == {"id": response["id"], "object": "response", "deleted": True}
        for answer in (
            client.get(url),
            client.delete(url),
            client.get(f"{url}/input_items"),
            client.post(f"{url}/cancel"),
        ):
            assert answer.status_code == 404
            assert answer.json()["error"]["message"] == f"Response with id '{response['id']}' not found."
        end = time.monotonic() + 20
        while any(b"secret" in part.read_bytes() for part in tmp_path.iterdir()):
            assert time.monotonic() < end, "it is still in the file"
            time.sleep(0.05)


def test_deleting_a_running_response_ends_it(slow_http: httpx2.Client) -> None:
    [first, *_] = begun(slow_http, LONG * 5)
    url = f"{RESPONSES}/{first['response']['id']}"
    assert slow_http.delete(url).status_code == 200
    assert slow_http.get(url).status_code == 404


@pytest.mark.slow
def test_responses_expire_after_their_last_use(persisted: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_with(responses_ttl_seconds=100, sessions_ttl_seconds=1, **persisted)
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        sessions = running.app.state.sessions
        real_now, ahead = sessions._store.now, [0.0]
        monkeypatch.setattr(sessions._store, "now", lambda: real_now() + ahead[0])
        used, unused = create(client, "used")["id"], create(client, "unused")["id"]
        assert sorted(session.id for session in sessions) == sorted([used, unused])
        ahead[0] = 60.0
        assert client.get(f"{RESPONSES}/{used}").status_code == 200
        ahead[0] = 120.0
        end = time.monotonic() + 30
        while unused in [session.id for session in sessions]:
            assert time.monotonic() < end, "it is still there"
            time.sleep(0.05)
        assert client.get(f"{RESPONSES}/{unused}").status_code == 404
        assert text_of(client.get(f"{RESPONSES}/{used}").json()) == "used"


def test_the_oldest_responses_are_evicted(persisted: dict[str, Any]) -> None:
    with (
        served(settings_with(max_responses=3, **persisted)) as running,
        httpx2.Client(base_url=running.url, timeout=30) as client,
    ):
        responses = [create(client, f"number {number}")["id"] for number in range(5)]
        found = [client.get(f"{RESPONSES}/{one}").status_code for one in responses]
        assert found == [404, 404, 200, 200, 200]


def test_a_graceful_restart_changes_nothing(tmp_path: Path) -> None:
    settings = settings_with(persist_sessions=True, sessions_db_path=str(tmp_path / "sessions.db"))
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        conversation = client.post(CONVERSATIONS, json={"metadata": {"a": "b"}}).json()
        first = create(client, "one", conversation=conversation["id"])
        events = replay(client, first["id"])
        items = client.get(f"{CONVERSATIONS}/{conversation['id']}/items").json()
        shown = client.get(f"{RESPONSES}/{first['id']}/input_items").json()
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        assert client.get(f"{RESPONSES}/{first['id']}").json() == first
        assert replay(client, first["id"]) == events
        assert client.get(f"{RESPONSES}/{first['id']}/input_items").json() == shown
        assert client.get(f"{CONVERSATIONS}/{conversation['id']}").json() == conversation
        assert client.get(f"{CONVERSATIONS}/{conversation['id']}/items").json() == items
        second = create(client, "two", conversation=conversation["id"])
        assert create(client, "three", previous_response_id=second["id"])["status"] == "completed"
        found = client.get(f"{CONVERSATIONS}/{conversation['id']}/items?order=asc").json()["data"]
        assert [item["content"][0]["text"] for item in found] == ["one", "one", "two", "two"]
