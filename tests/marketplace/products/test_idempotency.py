"""`Idempotency-Key`: a repeated request gets the first response and creates nothing."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import func, select, update

from tests.marketplace.market_server import LAPTOP, MarketServer
from tests.marketplace.products.test_versions import at_once
from tis.marketplace.columns import now
from tis.marketplace.tables import IdempotentRequest, Product


def send(client: httpx2.Client, supplier_id: int, key: str, **values: Any) -> httpx2.Response:
    path = f"/api/suppliers/{supplier_id}/products"
    return client.post(path, json={**LAPTOP, **values}, headers={"idempotency-key": key})


def goods_of(server: MarketServer, supplier_id: int) -> int:
    with server.market.reading() as session:
        count = select(func.count()).select_from(Product).where(Product.supplier_id == supplier_id)
        return session.scalar(count) or 0


def test_a_repeated_request_gets_the_same_response_and_creates_nothing(
    server: MarketServer, anybody: httpx2.Client
) -> None:
    supplier = server.supplier()
    first, again = send(anybody, supplier, "k-same"), send(anybody, supplier, "k-same")
    assert "idempotent-replayed" not in first.headers and again.headers["idempotent-replayed"] == "true"
    assert (again.status_code, again.content, again.headers["etag"]) == (200, first.content, '"1"')
    assert goods_of(server, supplier) == 1


def test_the_first_response_is_replayed_even_if_the_product_was_changed(
    server: MarketServer, anybody: httpx2.Client
) -> None:
    supplier = server.supplier()
    first = send(anybody, supplier, "k-changed")
    anybody.put(f"/api/products/{first.json()['id']}", json={"price": 1})
    assert send(anybody, supplier, "k-changed").json() == first.json()


def test_a_key_is_refused_for_another_request(server: MarketServer, anybody: httpx2.Client) -> None:
    supplier, other = server.supplier(), server.supplier()
    send(anybody, supplier, "k-one")
    for answer in (send(anybody, supplier, "k-one", price=1), send(anybody, other, "k-one")):
        assert answer.status_code == 422
        assert answer.json() == {"detail": "This Idempotency-Key was used for another request."}
    assert (goods_of(server, supplier), goods_of(server, other)) == (1, 0)


def test_a_failed_request_can_be_repeated_with_the_same_key(server: MarketServer, anybody: httpx2.Client) -> None:
    supplier = server.supplier()
    first = send(anybody, supplier, "k-first", sku="S")
    assert send(anybody, supplier, "k-failed", sku="S").status_code == 400
    anybody.delete(f"/api/products/{first.json()['id']}")
    assert send(anybody, supplier, "k-failed", sku="S").status_code == 200


def test_keys_of_different_accounts_are_independent(server: MarketServer) -> None:
    one, other = server.supplier(), server.supplier()
    with server.as_(f"supplier:{one}") as first, server.as_(f"supplier:{other}") as second:
        assert send(first, one, "k-accounts").status_code == send(second, other, "k-accounts").status_code == 200
        assert send(second, one, "k-accounts").status_code == 422


def test_a_caller_without_an_account_gets_no_replayed_response(
    server: MarketServer, anybody: httpx2.Client, stranger: httpx2.Client
) -> None:
    supplier = server.supplier()
    send(anybody, supplier, "k-open")
    assert send(stranger, supplier, "k-open").status_code == 401


def test_concurrent_requests_with_one_key_create_one_product(server: MarketServer) -> None:
    supplier = server.supplier()

    def sent(number: int) -> tuple[int, bytes, bool]:
        with server.as_("open") as client:
            answer = send(client, supplier, "k-at-once")
            return answer.status_code, answer.content, "idempotent-replayed" in answer.headers

    answers = at_once(6, sent)
    assert goods_of(server, supplier) == 1
    assert len({(status, body) for status, body, _ in answers}) == 1
    assert sorted(replayed for _, _, replayed in answers) == [False, *[True] * 5]


@pytest.mark.long
def test_while_the_first_request_runs_the_second_gets_a_409(server: MarketServer, database_url: str) -> None:
    if not database_url.startswith("postgresql"):
        pytest.skip("SQLite lets one writer in: the second waits for its turn")
    supplier = server.supplier()
    with server.market.writing() as session:  # the first request, which takes its time
        key = IdempotentRequest(
            actor="anonymous", key="k-busy", request_digest="x", expires_at=now() + timedelta(hours=1)
        )
        session.add(key)
        session.flush()
        with server.as_("open") as client:
            answer = send(client, supplier, "k-busy")
    assert answer.status_code == 409 and "still running" in answer.json()["detail"]
    assert answer.headers["retry-after"] == "1" and goods_of(server, supplier) == 0


def test_a_key_can_be_used_again_after_a_day(server: MarketServer, anybody: httpx2.Client) -> None:
    supplier = server.supplier()
    send(anybody, supplier, "k-old")
    with server.market.writing() as session:
        session.execute(update(IdempotentRequest).values(expires_at=now() - timedelta(seconds=1)))
    assert send(anybody, supplier, "k-old", price=1).status_code == 200
    assert goods_of(server, supplier) == 2


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\there", "caf\xe9"])
def test_invalid_keys_are_refused(server: MarketServer, anybody: httpx2.Client, key: str) -> None:
    supplier = server.supplier()
    headers = [(b"idempotency-key", key.encode("latin-1"))]
    assert anybody.post(f"/api/suppliers/{supplier}/products", json=LAPTOP, headers=headers).status_code == 422
    assert goods_of(server, supplier) == 0


def test_a_key_may_be_long_and_contain_any_printable_ascii(server: MarketServer, anybody: httpx2.Client) -> None:
    assert send(anybody, server.supplier(), "a key, ~{}'\"%" + "x" * 241).status_code == 200
