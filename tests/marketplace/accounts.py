"""Accounts for tests, registered over HTTP; admins get their role in the database, as from an operator."""

import itertools
import threading
from collections.abc import Callable
from typing import Any

import httpx2

from tis.database.database import Database
from tis.marketplace.tables import User

PASSWORD = "a long sentence"
_numbers = itertools.count(1)


def new_email() -> str:
    return f"person{next(_numbers)}@example.com"


def register_user(client: httpx2.Client, headers: dict[str, str] | None = None, **given: Any) -> dict[str, Any]:
    return made(client.post("/api/users/register", json={**user_body(), **given}, headers=headers or {}))


def register_supplier(client: httpx2.Client, headers: dict[str, str] | None = None, **given: Any) -> dict[str, Any]:
    return made(client.post("/api/suppliers/register", json={**supplier_body(), **given}, headers=headers or {}))


def user_body() -> dict[str, Any]:
    return {"name": "Jane Smith", "email": new_email()}


def supplier_body() -> dict[str, Any]:
    return {
        "name": "John Doe",
        "business_name": "Tech Store Jakarta",
        "email": new_email(),
        "latitude": -6.2088,
        "longitude": 106.8456,
        "city": "Jakarta",
    }


def registration_body(path: str) -> dict[str, Any]:
    return {**(supplier_body() if "suppliers" in path else user_body()), "password": PASSWORD}


def made(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def bearer(account: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {account['access_token']}"}


def register_admin(client: httpx2.Client, database_url: str, **given: Any) -> dict[str, Any]:
    user = register_user(client, **given)
    database = Database(database_url)
    with database.writing() as session:
        session.get_one(User, user["id"]).role = "admin"
    database.close()
    return user


def erase(client: httpx2.Client, headers: dict[str, str], password: str | None = None) -> httpx2.Response:
    """An account of these tests has no password, unless one was given."""
    return client.request("DELETE", "/api/users/me", json=password and {"password": password}, headers=headers)


def employ(client: httpx2.Client, owner: dict[str, Any], path: str, user: dict[str, Any], role: str = "editor") -> None:
    """Invites the user to the supplier at `path`, and accepts."""
    invitation = {"user_id": user["id"], "role": role}
    made(client.post(f"{path}/members", json=invitation, headers=bearer(owner)))
    supplier_id = path.rpartition("/")[2]
    made(client.post(f"/api/users/me/invitations/{supplier_id}/accept", headers=bearer(user)))


def all_at_once(client: httpx2.Client, *requests: Callable[[httpx2.Client], httpx2.Response]) -> list[httpx2.Response]:
    """Sends each request in its own thread and connection, all starting at the same moment."""
    answers: list[httpx2.Response] = []
    barrier = threading.Barrier(len(requests))

    def run(send: Callable[[httpx2.Client], httpx2.Response]) -> None:
        with httpx2.Client(base_url=client.base_url, timeout=30) as own:
            barrier.wait()
            answers.append(send(own))

    threads = [threading.Thread(target=run, args=(send,)) for send in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == len(requests)
    return answers
