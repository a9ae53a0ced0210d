"""A registration whose answer was lost, sent again with its `Idempotency-Key`."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from sqlalchemy import select

from tests.marketplace.accounts import all_at_once, bearer, registration_body
from tests.marketplace.shop import Shop
from tests.serving import settings_with
from tis.app import create_app
from tis.marketplace.tables import IdempotentRequest

PATHS = ("/api/auth/register", "/api/users/register", "/api/suppliers/register")


def send(client: httpx2.Client, path: str, body: dict[str, Any], key: str) -> httpx2.Response:
    return client.post(path, json=body, headers={"Idempotency-Key": key})


def own_id(client: httpx2.Client, answer: httpx2.Response) -> int:
    assert answer.status_code == 200, answer.text
    return int(client.get("/api/auth/me", headers=bearer(answer.json())).json()["id"])


@pytest.mark.parametrize("path", PATHS)
def test_a_repeated_registration_returns_the_same_account_with_tokens_that_work(
    internet: httpx2.Client, path: str
) -> None:
    body, key = registration_body(path), str(uuid4())
    first, again = send(internet, path, body, key), send(internet, path, body, key)
    assert own_id(internet, first) == own_id(internet, again)
    assert "idempotent-replayed" not in first.headers and again.headers["idempotent-replayed"] == "true"
    assert first.json()["access_token"] != again.json()["access_token"]
    assert first.json().keys() == again.json().keys()
    [session] = internet.get("/api/auth/sessions", headers=bearer(first.json())).json()
    assert session["is_current"] and session["signed_in_at"] < session["refreshed_at"]


def test_another_body_or_another_key_finds_no_account(internet: httpx2.Client) -> None:
    body, key = registration_body(PATHS[1]), str(uuid4())
    assert send(internet, PATHS[1], body, key).status_code == 200
    other = send(internet, PATHS[1], {**body, "password": "another long sentence"}, key)
    assert (other.status_code, other.json()["detail"]) == (422, "This Idempotency-Key was used for another request.")
    assert send(internet, PATHS[0], body, key).status_code == 422
    assert send(internet, PATHS[1], body, str(uuid4())).status_code == 400


def test_a_key_that_can_be_guessed_is_refused(internet: httpx2.Client) -> None:
    assert send(internet, PATHS[1], registration_body(PATHS[1]), "1").status_code == 422


def test_the_key_gives_no_tokens_after_the_first_session_ended(internet: httpx2.Client) -> None:
    body, key = registration_body(PATHS[1]), str(uuid4())
    first = send(internet, PATHS[1], body, key)
    assert internet.post("/api/auth/logout", headers=bearer(first.json())).status_code == 200
    again = send(internet, PATHS[1], body, key)
    assert again.status_code == 409 and "access_token" not in again.text


@pytest.mark.parametrize("path", PATHS)
def test_the_key_gives_no_tokens_after_the_password_changed(internet: httpx2.Client, path: str) -> None:
    """The session that changed it goes on, and the request that registered has the old password."""
    body, key = registration_body(path), str(uuid4())
    first = send(internet, path, body, key)
    change = {"password": "another long sentence", "old_password": body.get("password")}
    assert internet.post("/api/auth/password", json=change, headers=bearer(first.json())).status_code == 200
    again = send(internet, path, body, key)
    assert again.status_code == 409 and "access_token" not in again.text
    assert own_id(internet, first)


def test_neither_tokens_nor_keys_are_saved(internet: httpx2.Client, strict_shop: Shop) -> None:
    body, key = registration_body(PATHS[2]), str(uuid4())
    answer = send(internet, PATHS[2], body, key).json()
    with strict_shop.market.reading() as session:
        rows = session.scalars(select(IdempotentRequest).where(IdempotentRequest.actor == "registration")).all()
        assert f"supplier:{answer['id']}" in [row.answer["account"] for row in rows if row.answer]
        text = " ".join(f"{row.key} {row.answer}" for row in rows)
    assert key not in text and answer["refresh_token"] not in text and body["email"] not in text


def test_two_registrations_at_once_with_one_key_make_one_account(internet: httpx2.Client) -> None:
    body, key = registration_body(PATHS[1]), str(uuid4())
    answers = all_at_once(internet, *[lambda client: send(client, PATHS[1], body, key)] * 3)
    assert len({own_id(internet, answer) for answer in answers}) == 1


# They create nothing that a second request would create again.
WITHOUT_KEY = {
    "/api/products/{product_id}/pictures",  # a picture that the product has already changes nothing
    "/api/auth/login",
    "/api/auth/refresh",
    "/api/auth/logout",
    "/api/auth/password",
    "/api/auth/password/forgot",  # at most three links an hour
    "/api/auth/password/reset",
    "/api/auth/email",
    "/api/auth/email/confirmation",
    "/api/auth/email/confirm",
    "/api/auth/consent",
    "/api/chat/cancel/{session_id}",
    "/api/search/parse",
    # A payment is made once for an order; providers send their callbacks as often as they like.
    "/api/orders/{order_id}/payment",
    "/api/payments/callbacks/{provider}/{supplier_id}",
    "/api/suppliers/{supplier_id}/payment-methods/qris",
    "/api/products/{product_id}/restore",
    "/api/suppliers/{supplier_id}/restore",
    "/api/users/me/invitations/{supplier_id}/accept",
    "/api/reservations/{reservation_id}/commit",
    "/api/reservations/{reservation_id}/release",
    "/api/reservations/{reservation_id}/accept",
    "/api/reservations/{reservation_id}/refuse",
    *(
        f"/api/orders/{{order_id}}/{move}"
        for move in ("place", "accept", "refuse", "cancel", "paid", "hand-over", "ship", "receive", "return")
    ),
    "/api/orders/{order_id}/return-request",
    "/api/orders/{order_id}/return-refusal",
    "/api/promotions/{promotion_id}/end",
    "/api/talks/{talk_id}/pictures",  # the picture that was sent last changes nothing
    "/api/talks/{talk_id}/draft",
    "/api/talks/{talk_id}/messages/{number}/report",
    "/api/admin/search-preview",
    "/api/admin/data-requests/{request_id}/export",
    "/api/admin/data-requests/{request_id}/erase",
    "/api/admin/data-requests/{request_id}/refuse",
    "/api/notices/unsubscribe",
    "/api/suppliers/{supplier_id}/webhooks/{webhook_id}/test",
    "/api/suppliers/{supplier_id}/webhooks/{webhook_id}/deliveries/retry",
    # Its answer has a secret, which no table may hold; one token too many stands in the list, and is revoked.
    "/api/suppliers/{supplier_id}/tokens",
    "/api/suppliers/{supplier_id}/webhooks",
    "/api/suppliers/{supplier_id}/webhooks/{webhook_id}/secret",
}


def posts() -> Iterator[tuple[str, set[str]]]:
    for path, methods in create_app(settings_with()).openapi()["paths"].items():
        if path.startswith("/api/") and "post" in methods:
            yield path, {parameter["name"].lower() for parameter in methods["post"].get("parameters", [])}


def test_every_post_that_creates_takes_a_key() -> None:
    without = {path for path, names in posts() if "idempotency-key" not in names}
    assert without - WITHOUT_KEY == set()
