"""Buyers and shops hear what becomes of a reservation, from the number where they stopped, at whichever server."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx2
import pytest
from sqlalchemy import func, select, update

from tests.marketplace.accounts import all_at_once
from tests.marketplace.conftest import SECRET
from tests.marketplace.shop import Shop
from tests.marketplace.stock.test_reservations import end, reserve
from tests.serving import served, settings_with
from tis.marketplace.admin.retention import RetentionRules, delete_old_rows
from tis.marketplace.columns import now
from tis.marketplace.kit.news import News
from tis.marketplace.kit.notice_outbox import MAX_KEPT, notify
from tis.marketplace.tables import Notice, NoticeCounter

PATH = "/api/notices/stream"
FROM_START = {"Last-Event-ID": "notices:0"}


class HeardStream:
    """An open stream: gives events as they come."""

    def __init__(self, answer: httpx2.Response) -> None:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        self._lines = answer.iter_lines()
        self.last_id = ""

    def next(self) -> dict[str, Any]:
        event: dict[str, Any] | None = None
        for line in self._lines:
            name, _, value = line.partition(": ")
            if name == "id":
                self.last_id = value
            elif name == "data":
                event = json.loads(value)
            elif not line and event:
                return event
        raise AssertionError("the stream has ended")

    def types(self, number: int) -> list[str]:
        return [self.next()["type"] for _ in range(number)]


@contextmanager
def listening(client: httpx2.Client, headers: dict[str, str]) -> Iterator[HeardStream]:
    with client.stream("GET", PATH, headers=headers) as answer:
        yield HeardStream(answer)


def kept(client: httpx2.Client, headers: dict[str, str]) -> list[dict[str, Any]]:
    """All that is there now."""
    answer = client.get(PATH, params={"once": True}, headers={**FROM_START, **headers})
    assert answer.status_code == 200, answer.text
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines]


def heard(client: httpx2.Client, headers: dict[str, str]) -> list[tuple[str, str, str]]:
    return [(one["type"], one["role"], one["reservation_id"]) for one in kept(client, headers)]


@pytest.fixture
def seller(strict_shop: Shop) -> dict[str, str]:
    return strict_shop.auth_headers(f"supplier:{strict_shop.id}")


@pytest.fixture
def buyer(strict_shop: Shop) -> dict[str, str]:
    return strict_shop.auth_headers(f"user:{strict_shop.user()}")


def hold(client: httpx2.Client, product: int, headers: dict[str, str]) -> str:
    answer = reserve(client, product, headers=headers)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def test_a_buyer_who_listens_hears_that_the_shop_accepted_and_sold(
    internet: httpx2.Client, strict_shop: Shop, seller: dict[str, str], buyer: dict[str, str]
) -> None:
    product = strict_shop.product()
    with listening(internet, buyer) as stream:
        assert stream.next() == {"type": "connected"}
        held = hold(internet, product, buyer)
        made = stream.next()
        end(internet, "accept", held, **seller)
        end(internet, "commit", held, **seller)
        accepted, sold = stream.next(), stream.next()
    assert made.pop("at") < accepted["at"] < sold["at"]
    said = {"reservation_id": held, "product_id": product, "supplier_id": strict_shop.id, "quantity": 1}
    assert made == {"type": "hold.made", **said, "role": "buyer"}
    assert (accepted["type"], sold["type"]) == ("hold.accepted", "hold.sold")


def test_members_of_the_shop_hear_what_is_held_and_what_is_given_back(
    internet: httpx2.Client, strict_shop: Shop, seller: dict[str, str], buyer: dict[str, str]
) -> None:
    editor = strict_shop.auth_headers(f"user:{strict_shop.editor()}")
    with listening(internet, editor) as stream:
        stream.next()
        held = hold(internet, strict_shop.product(), buyer)
        made = stream.next()
        end(internet, "release", held, **buyer)
        assert (made["type"], made["role"], made["reservation_id"]) == ("hold.made", "shop", held)
        assert stream.next()["type"] == "hold.released"
    assert heard(internet, seller) == [("hold.made", "shop", held), ("hold.released", "shop", held)]


def test_each_way_to_end_is_named(
    internet: httpx2.Client, strict_shop: Shop, seller: dict[str, str], buyer: dict[str, str]
) -> None:
    product = strict_shop.product(on_hand=9)
    refused, released, due = (hold(internet, product, buyer) for _ in range(3))
    end(internet, "refuse", refused, **seller)
    end(internet, "release", released, **buyer)
    strict_shop.make_due(due)
    end(internet, "release", due, **buyer)  # too late: it has expired
    ended = heard(internet, buyer)[3:]
    assert ended == [
        ("hold.refused", "buyer", refused),
        ("hold.released", "buyer", released),
        ("hold.expired", "buyer", due),
    ]


def test_a_request_that_changes_nothing_is_no_news(
    internet: httpx2.Client, strict_shop: Shop, seller: dict[str, str], buyer: dict[str, str]
) -> None:
    product = strict_shop.product(on_hand=1)
    key = {"Idempotency-Key": "once"}
    held = hold(internet, product, {**buyer, **key})
    hold(internet, product, {**buyer, **key})
    assert reserve(internet, product, headers=buyer).status_code == 409
    for _ in range(2):
        end(internet, "accept", held, **seller)
    for _ in range(2):
        end(internet, "commit", held, **seller)
    assert [kind for kind, _, _ in heard(internet, buyer)] == ["hold.made", "hold.accepted", "hold.sold"]


def test_a_reader_that_comes_back_misses_nothing_and_gets_nothing_twice(
    internet: httpx2.Client, strict_shop: Shop, seller: dict[str, str], buyer: dict[str, str]
) -> None:
    product = strict_shop.product(on_hand=9)
    with listening(internet, buyer) as stream:
        stream.next()
        connected = stream.last_id
        first = hold(internet, product, buyer)
        assert stream.next()["reservation_id"] == first
        cursor = stream.last_id
    second = hold(internet, product, buyer)
    end(internet, "accept", first, **seller)
    with listening(internet, {**buyer, "Last-Event-ID": cursor}) as stream:
        news = [stream.next() for _ in range(2)]
        assert [(one["type"], one["reservation_id"]) for one in news] == [
            ("hold.made", second),
            ("hold.accepted", first),
        ]
        assert [connected, cursor, stream.last_id] == ["notices:0", "notices:1", "notices:3"]


def test_nobody_hears_of_the_holds_of_others(
    internet: httpx2.Client, strict_shop: Shop, seller: dict[str, str], buyer: dict[str, str]
) -> None:
    stranger = strict_shop.auth_headers(f"user:{strict_shop.user()}")
    other_shop = Shop(strict_shop.market)
    other_seller = other_shop.auth_headers(f"supplier:{other_shop.id}")
    with listening(internet, stranger) as stream:
        stream.next()
        held = hold(internet, strict_shop.product(), buyer)
        end(internet, "accept", held, **seller)
        own = hold(internet, other_shop.product(), stranger)
        assert stream.next()["reservation_id"] == own, "the first that a stranger hears is of its own"
    assert {one for _, _, one in heard(internet, other_seller)} == {own}
    assert {one for _, _, one in heard(internet, stranger)} == {own}


def test_without_a_token_or_with_a_session_that_ended_there_is_no_stream(
    internet: httpx2.Client, strict_shop: Shop, buyer: dict[str, str]
) -> None:
    for headers in ({}, {"Authorization": "Bearer nonsense"}):
        assert internet.get(PATH, headers=headers).status_code == 401
    with listening(internet, buyer) as stream:
        stream.next()
        internet.post("/api/auth/logout", headers=buyer).raise_for_status()
        _tell(strict_shop, _account_of(strict_shop, buyer))
        failed = stream.next()
    assert (failed["type"], failed["status"]) == ("failed", 401)


@pytest.mark.parametrize(("cursor", "status"), [("notices:7", 400), ("else:1", 400), ("notices:-1", 400), ("x", 400)])
def test_a_cursor_that_nobody_gave_is_refused(
    internet: httpx2.Client, buyer: dict[str, str], cursor: str, status: int
) -> None:
    assert internet.get(PATH, headers={**buyer, "Last-Event-ID": cursor}).status_code == status


def test_notices_are_bounded_and_a_reader_that_slept_too_long_is_told(
    internet: httpx2.Client, strict_shop: Shop, buyer: dict[str, str]
) -> None:
    account = _account_of(strict_shop, buyer)
    hold(internet, strict_shop.product(), buyer)
    _tell(strict_shop, account, MAX_KEPT)
    gone = internet.get(PATH, headers={**buyer, **FROM_START})
    assert (gone.status_code, "read your reservations anew" in gone.json()["detail"]) == (410, True)
    all_kept = kept(internet, {**buyer, "Last-Event-ID": "notices:1"})
    assert len(all_kept) == MAX_KEPT
    with strict_shop.market.writing() as session:
        past = now().replace(year=2020)
        session.execute(update(Notice).where(Notice.account == account).values(created_at=past))
    delete_old_rows(strict_shop.market.writing, RetentionRules())
    with strict_shop.market.reading() as session:
        assert session.scalar(select(func.count()).where(Notice.account == account)) == 0
    assert internet.get(PATH, headers={**buyer, "Last-Event-ID": "notices:5"}).status_code == 410
    assert kept(internet, {**buyer, "Last-Event-ID": f"notices:{MAX_KEPT + 1}"}) == []


def test_news_that_another_server_wrote_come_here_too(
    internet: httpx2.Client, strict_database_url: str, strict_shop: Shop, seller: dict[str, str], buyer: dict[str, str]
) -> None:
    settings = settings_with(database_url=strict_database_url, jwt_secret_key=SECRET)
    product = strict_shop.product()
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as elsewhere:
        with listening(internet, buyer) as stream:
            stream.next()
            held = hold(elsewhere, product, buyer)
            assert stream.next()["type"] == "hold.made"
            end(elsewhere, "accept", held, **seller)
            assert stream.next()["type"] == "hold.accepted"
            cursor = stream.last_id
        end(internet, "commit", held, **seller)
        with listening(elsewhere, {**buyer, "Last-Event-ID": cursor}) as stream:
            assert stream.next()["type"] == "hold.sold"


def test_numbers_have_no_holes_however_many_write_at_once(
    internet: httpx2.Client, strict_shop: Shop, seller: dict[str, str]
) -> None:
    product = strict_shop.product(on_hand=40)
    buyers = [strict_shop.auth_headers(f"user:{strict_shop.user()}") for _ in range(8)]

    def buying(headers: dict[str, str]) -> Callable[[httpx2.Client], httpx2.Response]:
        def buy(client: httpx2.Client) -> httpx2.Response:
            answers = [end(client, "accept", hold(client, product, headers), **seller) for _ in range(4)]
            return answers[-1]

        return buy

    assert {one.status_code for one in all_at_once(internet, *map(buying, buyers))} == {200}
    answer = internet.get(PATH, params={"once": True}, headers={**seller, **FROM_START})
    numbers = [int(line.rpartition(":")[2]) for line in answer.text.splitlines() if line.startswith("id: ")]
    assert numbers == list(range(1, 65))


def test_an_account_has_so_many_streams(internet: httpx2.Client, buyer: dict[str, str]) -> None:
    with ExitStack() as opened:
        streams = [opened.enter_context(listening(internet, buyer)) for _ in range(10)]
        for stream in streams:
            stream.next()
        refused = internet.get(PATH, params={"once": True}, headers=buyer)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")


def test_a_deleted_account_leaves_no_notices(
    internet: httpx2.Client, strict_shop: Shop, buyer: dict[str, str], seller: dict[str, str]
) -> None:
    account = _account_of(strict_shop, buyer)
    held = hold(internet, strict_shop.product(), buyer)
    internet.delete("/api/users/me", headers=buyer).raise_for_status()
    assert heard(internet, seller)[-1] == ("hold.released", "shop", held)
    with strict_shop.market.reading() as session:
        for table in (Notice, NoticeCounter):
            assert session.scalar(select(func.count()).where(table.account == account)) == 0


def test_on_an_open_server_requests_without_a_token_hear_of_all_holds(laptop: httpx2.Client, shop: Shop) -> None:
    with listening(laptop, {}) as stream:
        stream.next()
        held = reserve(laptop, shop.product()).json()["id"]
        made = [stream.next(), stream.next()]
    assert {(one["type"], one["role"], one["reservation_id"]) for one in made} == {
        ("hold.made", "buyer", held),
        ("hold.made", "shop", held),
    }


def _account_of(shop: Shop, headers: dict[str, str]) -> str:
    account = shop.market.account_named_by(headers["Authorization"].partition(" ")[2])
    assert account
    return account


def _tell(shop: Shop, account: str, times: int = 1) -> None:
    """As if so much had happened."""
    with shop.market.writing() as session:
        notify(session, [News("hold.made", {"reservation_id": "r"}, account, shop.id) for _ in range(times)])
