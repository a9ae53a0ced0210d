"""An admin answers what people ask about their data who cannot sign in any more, and can prove it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from tests.marketplace.accounts import bearer, made, register_admin, register_user

REQUESTS = "/api/admin/data-requests"
REASON = "A letter, and a call to the number of the profile."


class Clerk:
    def __init__(self, client: httpx2.Client, database_url: str) -> None:
        self.client = client
        account = register_admin(client, database_url)
        self.id, self.headers = account["id"], bearer(account)

    def post(self, path: str, **body: Any) -> httpx2.Response:
        return self.client.post(f"{REQUESTS}{path}", json=body or None, headers=self.headers)

    def get(self, **filters: Any) -> list[dict[str, Any]]:
        answer = self.client.get(REQUESTS, params={"limit": 100, **filters}, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return list(answer.json())

    def record(self, user_id: int, kind: str, **more: Any) -> dict[str, Any]:
        return made(self.post("", user_id=user_id, kind=kind, reason=REASON, **more))

    def log(self, user_id: int) -> list[tuple[str, str, dict[str, Any]]]:
        """Newest first."""
        query: dict[str, Any] = {"entity": "user", "entity_id": user_id}
        entries = self.client.get("/api/audit", params=query, headers=self.headers).json()
        return [(one["action"], one["actor"], one["changes"]) for one in entries]


@pytest.fixture
def clerk(internet: httpx2.Client, strict_database_url: str) -> Clerk:
    return Clerk(internet, strict_database_url)


@pytest.fixture
def person(internet: httpx2.Client) -> dict[str, Any]:
    return register_user(internet, name="Dewi Specimen", city="Bandung")


def test_a_request_is_due_72_hours_after_it_came(clerk: Clerk, person: dict[str, Any]) -> None:
    came = datetime.now(UTC) - timedelta(days=4)
    late = clerk.record(person["id"], "export", received_at=came.isoformat())
    assert datetime.fromisoformat(late["due_at"]) - came == timedelta(hours=72)
    assert late["is_overdue"] and late["status"] == "open" and late["created_by"] == f"user:{clerk.id}"
    fresh = clerk.record(person["id"], "erase")
    assert not fresh["is_overdue"]
    assert [one["id"] for one in clerk.get(user_id=person["id"])] == [fresh["id"], late["id"]]
    overview = clerk.client.get("/api/admin/overview", headers=clerk.headers).json()
    assert overview["open_data_requests"] >= 2 and overview["overdue_data_requests"] >= 1
    assert datetime.fromisoformat(overview["next_due_at"]) <= datetime.fromisoformat(late["due_at"])


def test_a_request_that_is_sent_again_with_its_key_is_recorded_once(clerk: Clerk, person: dict[str, Any]) -> None:
    body = {"user_id": person["id"], "kind": "export", "reason": REASON}
    headers = {**clerk.headers, "Idempotency-Key": "the letter of Dewi"}
    first, second = (clerk.client.post(REQUESTS, json=body, headers=headers) for _ in range(2))
    assert made(first) == made(second) and second.headers["Idempotent-Replayed"] == "true"


def test_a_copy_has_what_the_person_would_export_and_both_are_in_the_log(
    internet: httpx2.Client, clerk: Clerk, person: dict[str, Any]
) -> None:
    own = made(internet.get("/api/users/me/export", headers=bearer(person)))
    request = clerk.record(person["id"], "export")
    copy = clerk.post(f"/{request['id']}/export")
    assert copy.headers["cache-control"] == "no-store"
    assert made(copy)["profile"] == own["profile"] and own["profile"]["name"] == "Dewi Specimen"
    assert copy.json().keys() == own.keys() and [one["id"] for one in copy.json()["data_requests"]] == [request["id"]]
    [ended] = clerk.get(user_id=person["id"])
    assert (ended["status"], ended["ended_by"], ended["is_overdue"]) == ("done", f"user:{clerk.id}", False)
    assert clerk.post(f"/{request['id']}/export").status_code == 200  # the first may be lost
    noted = ("user.export", f"user:{clerk.id}", {"data_request": request["id"], "reason": REASON})
    assert clerk.log(person["id"])[:2] == [noted, noted]


def test_an_erasure_ends_the_account_and_is_in_the_log_with_its_reason(
    internet: httpx2.Client, clerk: Clerk, person: dict[str, Any]
) -> None:
    request = clerk.record(person["id"], "erase")
    ended = made(clerk.post(f"/{request['id']}/erase"))
    assert (ended["status"], ended["user_id"]) == ("done", person["id"])
    assert internet.get("/api/auth/me", headers=bearer(person)).status_code == 401
    assert internet.get(f"/api/users/{person['id']}", headers=clerk.headers).status_code == 404
    noted = ("user.erase", f"user:{clerk.id}", {"data_request": request["id"], "reason": REASON})
    assert clerk.log(person["id"])[0] == noted
    again = clerk.post(f"/{request['id']}/erase")
    assert (again.status_code, again.json()["detail"]) == (409, "This request is done already.")
    assert clerk.post("", user_id=person["id"], kind="export", reason=REASON).status_code == 404


def test_who_also_wants_a_copy_is_not_erased_before(clerk: Clerk, person: dict[str, Any]) -> None:
    erasure, copy = clerk.record(person["id"], "erase"), clerk.record(person["id"], "export")
    refused = clerk.post(f"/{erasure['id']}/erase")
    assert refused.status_code == 409 and f"Data request {copy['id']}" in refused.json()["detail"]
    assert clerk.client.get(f"/api/users/{person['id']}", headers=clerk.headers).status_code == 200
    assert clerk.post(f"/{copy['id']}/export").status_code == 200
    assert clerk.post(f"/{erasure['id']}/erase").status_code == 200


def test_a_refused_request_says_why_and_does_nothing(clerk: Clerk, person: dict[str, Any]) -> None:
    request = clerk.record(person["id"], "erase")
    again = clerk.post("", user_id=person["id"], kind="erase", reason=REASON)
    assert (again.status_code, again.json()["detail"]) == (
        409,
        f"Data request {request['id']} of this user is open already.",
    )
    ended = made(clerk.post(f"/{request['id']}/refuse", reason="Nobody could tell who wrote."))
    assert (ended["status"], ended["ended_reason"]) == ("refused", "Nobody could tell who wrote.")
    assert clerk.post(f"/{request['id']}/erase").status_code == 409
    assert clerk.post(f"/{request['id']}/refuse", reason="Again").status_code == 409
    assert clerk.client.get(f"/api/users/{person['id']}", headers=clerk.headers).status_code == 200
    assert clerk.get(status="refused", user_id=person["id"])[0]["id"] == request["id"]
    assert clerk.get(status="open", user_id=person["id"]) == []


def test_invalid_requests_are_refused(clerk: Clerk, person: dict[str, Any]) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    given = {"user_id": person["id"], "kind": "export", "reason": REASON}
    bodies = [
        {**given, "received_at": tomorrow},
        {**given, "received_at": "0001-01-01T00:00:00+14:00"},
        {**given, "kind": "sell"},
        {**given, "reason": " "},
        {"kind": "erase"},
    ]
    assert [clerk.post("", **body).status_code for body in bodies] == [422] * 5
    request = clerk.record(person["id"], "export")
    assert clerk.post(f"/{request['id']}/erase").json()["detail"] == "This request is one to export."
    assert clerk.post(f"/{2**40}/export").status_code == 404
    assert clerk.client.get(REQUESTS, headers=bearer(person)).status_code == 403
