"""Rate limits of the routes, and a queue of their own for passwords."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from tests.marketplace.accounts import PASSWORD, bearer, register_supplier, register_user
from tests.marketplace.conftest import SECRET
from tests.marketplace.database_failures import wait_until_true
from tests.marketplace.market_server import new_product
from tests.serving import served, settings_with
from tis.errors import QueueFull
from tis.marketplace.kit.threads import PasswordQueue
from tis.marketplace.market import Market
from tis.marketplace.settings import RateSettings

LOGIN = {"email": "nobody@example.com", "password": PASSWORD}
NUM = 3


@pytest.fixture(scope="module")
def limited() -> Iterator[httpx2.Client]:
    """Three of everything, but as many registrations as the tests need."""
    rates = dict.fromkeys(RateSettings.model_fields, NUM) | {"registrations_per_hour": 100}
    settings = settings_with(jwt_secret_key=SECRET, **rates)
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        yield client


def from_address(address: str) -> dict[str, str]:
    """uvicorn trusts a proxy on this computer."""
    return {"X-Forwarded-For": address}


def statuses(client: httpx2.Client, method: str, path: str, headers: dict[str, str], json: object = None) -> list[int]:
    return [client.request(method, path, headers=headers, json=json).status_code for _ in range(NUM + 1)]


def test_one_login_too_many_is_a_429_that_says_when_to_retry(limited: httpx2.Client) -> None:
    here = from_address("192.0.2.1")
    for _ in range(NUM):
        assert limited.post("/api/auth/login", json=LOGIN, headers=here).status_code == 401
    refused = limited.post("/api/auth/login", json=LOGIN, headers=here)
    assert refused.status_code == 429 and 0 < int(refused.headers["retry-after"]) <= 60
    assert refused.json()["detail"].startswith("Too many logins: at most 3 per minute. Try again in ")
    assert limited.post("/api/auth/login", json=LOGIN, headers=from_address("192.0.2.2")).status_code == 401


def test_mails_and_passwords_by_link_are_counted_by_address(limited: httpx2.Client) -> None:
    here, forgotten = from_address("192.0.2.30"), {"email": "nobody@example.com"}
    assert statuses(limited, "POST", "/api/auth/password/forgot", here, forgotten) == [409] * NUM + [429]
    assert limited.post("/api/auth/email/confirmation", headers=here).status_code == 429
    assert limited.post("/api/auth/email", json=forgotten, headers=here).status_code == 429
    by_link = {"token": "of-no-mail", "password": PASSWORD}
    assert statuses(limited, "POST", "/api/auth/password/reset", here, by_link) == [400] * NUM + [429]


def test_another_account_gives_no_more_logins(limited: httpx2.Client) -> None:
    here = from_address("192.0.2.3")
    assert 429 not in statuses(limited, "POST", "/api/auth/login", here, LOGIN)[:NUM]
    account = register_user(limited, here)
    assert limited.post("/api/auth/login", json=LOGIN, headers={**here, **bearer(account)}).status_code == 429


def test_an_account_is_counted_wherever_it_is_and_apart_from_others(limited: httpx2.Client) -> None:
    account, other = register_user(limited), register_user(limited)
    for number in range(NUM):
        moving = {**bearer(account), **from_address(f"192.0.2.{10 + number}")}
        assert limited.get("/api/products/search?q=kipas", headers=moving).status_code == 200
    assert limited.get("/api/products/search?q=kipas", headers=bearer(account)).status_code == 429
    assert limited.get("/api/products/search?q=kipas", headers=bearer(other)).status_code == 200


def test_a_forged_token_is_no_account(limited: httpx2.Client) -> None:
    answers = [
        limited.get(
            "/api/products/search?q=a",
            headers={"Authorization": f"Bearer forged{number}", **from_address("192.0.2.20")},
        )
        for number in range(NUM + 1)
    ]
    assert [answer.status_code for answer in answers] == [401] * NUM + [429]


def test_reservations_reviews_imports_and_facets_have_limits(limited: httpx2.Client) -> None:
    shop, buyer = register_supplier(limited), register_user(limited)
    limited.headers.update(bearer(shop))
    product = new_product(limited, shop["id"])["id"]
    del limited.headers["authorization"]
    bought = statuses(limited, "POST", f"/api/products/{product}/reservations", bearer(buyer), {"quantity": 1})
    assert bought == [200] * NUM + [429]
    reviewed = statuses(limited, "POST", f"/api/products/{product}/reviews", bearer(buyer), {"rating": 5})
    assert reviewed == [200, 409, 409, 429]
    imported = statuses(limited, "POST", f"/api/suppliers/{shop['id']}/products/import", bearer(shop), {})
    assert imported[-1] == 429 and 429 not in imported[:-1]
    counted = statuses(limited, "GET", "/api/products/facets", bearer(buyer))
    assert counted == [200] * NUM + [429]
    with_search = limited.get("/api/products/search?q=a&facets=brand&envelope=1", headers=bearer(buyer))
    assert with_search.status_code == 429 and with_search.json()["detail"].startswith("Too many facets")


def test_lists_of_products_and_suppliers_have_limits(limited: httpx2.Client) -> None:
    for path, address in (("/api/products", "192.0.2.40"), ("/api/suppliers", "192.0.2.41")):
        assert statuses(limited, "GET", path, from_address(address)) == [200] * NUM + [429]


def test_an_open_server_limits_no_program_of_its_computer() -> None:
    rates = dict.fromkeys(RateSettings.model_fields, NUM)
    settings = settings_with(marketplace_auth="open", **rates)
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        assert statuses(client, "GET", "/api/products/search?q=a", {}) == [200] * (NUM + 1)
        for _ in range(NUM + 1):
            register_user(client)
        behind_a_proxy = from_address("192.0.2.50")
        assert statuses(client, "GET", "/api/products/search?q=a", behind_a_proxy) == [401] * NUM + [429]


def test_registrations_of_users_and_shops_are_counted_together() -> None:
    settings = settings_with(jwt_secret_key=SECRET, registrations_per_hour=2)
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        register_user(client)
        register_supplier(client)
        refused = client.post("/api/users/register", json={"name": "a", "email": "a@example.com"})
        assert refused.status_code == 429 and 3000 < int(refused.headers["retry-after"]) <= 3600


async def hold(queue: PasswordQueue, gate: threading.Event) -> bool:
    return await queue.run(gate.wait)


def test_requests_that_wait_for_passwords_leave_the_other_threads_free() -> None:
    """As many as FastAPI has threads for routes."""
    settings = settings_with(jwt_secret_key=SECRET)
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        register_user(client, email="taken@example.com")
        market: Market = running.app.state.marketplace.market
        gate, queue = threading.Event(), PasswordQueue(max_running=1)
        market.passwords = queue
        with ThreadPoolExecutor(41) as pool:
            holding = pool.submit(lambda: asyncio.run(hold(queue, gate)))
            try:
                wait_until_true(lambda: queue.num_requests == 1)
                body = {"name": "a", "email": "taken@example.com"}
                waiting = [pool.submit(client.post, "/api/users/register", json=body) for _ in range(40)]
                wait_until_true(lambda: queue.num_requests == 41)
                assert client.get("/api/products").status_code == 200
            finally:
                gate.set()
            assert {request.result().status_code for request in waiting} == {400} and holding.result()


def test_a_full_queue_refuses_at_once() -> None:
    async def crowd() -> None:
        queue, gate = PasswordQueue(max_running=1, max_waiting=2), threading.Event()
        waiting = [asyncio.create_task(hold(queue, gate)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFull) as refused:
            await queue.run(gate.wait)
        assert refused.value.status == 429 and refused.value.headers["Retry-After"] == "2"
        gate.set()
        assert await asyncio.gather(*waiting) == [True] * 3
        assert await queue.run(lambda: "room again") == "room again"
        queue.close()

    asyncio.run(crowd())
