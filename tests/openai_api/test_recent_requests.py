"""GET /v1/requests/recent and GET /v1/machine over HTTP: times in order, no content, and whose requests a key sees."""

from typing import Any

import httpx2

from tests.http.keys import bearer
from tests.openai_api.test_chat import CHAT, said
from tests.serving import Served, served, settings_with
from tis.observability.recent_requests import MAX_RECENT, RecentRequests
from tis.observability.request_facts import RequestFacts

SECRET = "rahasia-yang-panjang"


def recent(server: Served, key: str | None = None) -> dict[str, Any]:
    answer = httpx2.get(f"{server.url}/v1/requests/recent", headers=bearer(key) if key else {}, timeout=30)
    assert SECRET not in answer.text
    body: dict[str, Any] = answer.raise_for_status().json()
    return body


def test_the_phases_of_a_request_follow_each_other_and_its_text_is_nowhere() -> None:
    with served(settings_with(model_repo_id="echo?tokens_per_second=40")) as server:
        assert recent(server) == {"object": "list", "data": [], "of": "all"}
        headers = {"X-Request-Id": "one-of-mine"}
        httpx2.post(server.url + CHAT, json=said(SECRET), headers=headers, timeout=30).raise_for_status()
        httpx2.post(server.url + CHAT, json=said(SECRET, temperature=9), timeout=30)
        refused, answered = recent(server)["data"]
        assert (refused["status"], refused["rounds"], refused["model"]) == (400, [], None)
        assert refused["error"] is not None and "key" not in refused
        assert (answered["id"], answered["route"], answered["status"]) == ("one-of-mine", CHAT, 200)
        assert (answered["completion_tokens"], answered["finish"]) == (len(SECRET), "stop")
        [times] = answered["rounds"]
        assert 0 < answered["loading"] <= times["queued"]  # the first request loads the model
        moments = [times[name] for name in ("queued", "started", "first_token", "last_token", "ended")]
        assert moments == sorted(moments) and 0 <= moments[0]
        assert moments[-1] <= answered["seconds"] + 0.05
        assert times["last_token"] - times["first_token"] > 0.3  # nineteen pauses of 25 ms


def test_a_key_sees_its_own_requests_and_the_admin_key_all_with_their_names() -> None:
    settings = settings_with(api_keys="sk-of-ani,sk-of-budi", admin_key="sk-of-the-admin")
    with served(settings) as server:
        for key in ("sk-of-ani", "sk-of-budi", "sk-of-nobody"):
            httpx2.post(server.url + CHAT, json=said("Halo"), headers=bearer(key), timeout=30)
        own, everybody = recent(server, "sk-of-budi"), recent(server, "sk-of-the-admin")
        assert (own["of"], len(own["data"])) == ("key", 1) and "key" not in own["data"][0]
        assert everybody["of"] == "all"
        assert [one["key"] for one in everybody["data"]] == ["env-2", "env-1"]
        assert own["data"][0]["id"] == everybody["data"][0]["id"]


def test_the_newest_are_kept_and_no_more() -> None:
    kept = RecentRequests()
    for number in range(MAX_RECENT + 5):
        line = {"id": f"req-{number}", "method": "POST", "route": CHAT, "status": 200, "key": None}
        kept.add(line, RequestFacts(model="demo"), "somebody", 0.1)
    kept.add({"id": "a probe", "method": "GET"}, RequestFacts(), "somebody", 0.1)
    found = [one.line["id"] for one in kept.newest()]
    assert (len(found), found[0], found[-1]) == (MAX_RECENT, f"req-{MAX_RECENT + 4}", "req-5")
    assert list(kept.newest("another")) == []


def test_the_machine_is_described_as_by_tis_doctor_and_without_paths() -> None:
    with served(settings_with(api_keys="sk-of-ani")) as server:
        assert httpx2.get(f"{server.url}/v1/machine").status_code == 401
        answer = httpx2.get(f"{server.url}/v1/machine", headers=bearer("sk-of-ani"), timeout=60)
        machine = answer.raise_for_status().json()
        about = {one["about"] for one in machine["findings"]}
        assert {"server", "packages", "cores", "kernels", "memory"} <= about
        assert all(one["code"] and one["verdict"] in ("ok", "slow", "bad") for one in machine["findings"])
        assert 0 < machine["memory_available_bytes"] <= machine["memory_bytes"]
        assert "/tmp" not in answer.text and "/root" not in answer.text and "/home" not in answer.text
