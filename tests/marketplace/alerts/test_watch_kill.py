"""What buyers asked to be told is told, and told once, when the server is killed between the change and the notice."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy.orm import Session

from tests.databases import new_sqlite
from tests.marketplace.alerts.buyers import Watched
from tests.marketplace.conftest import SECRET
from tests.marketplace.notices.test_notice_stream import FROM_START, kept, listening
from tests.marketplace.shop import Shop
from tests.serving import server_process, wait_until_live
from tis.database.database import Database
from tis.marketplace.alerts.watch import Watch, WatchLimits
from tis.marketplace.market import Market, MarketRules


class Killed(Exception):
    pass


class WritingUntilKilled:
    """Transactions of which the last one is never committed."""

    def __init__(self, market: Market, num_committed: int) -> None:
        self.market, self.num_left = market, num_committed

    @contextmanager
    def __call__(self) -> Iterator[Session]:
        with self.market.writing() as session:
            yield session
            if not self.num_left:
                session.flush()
                raise Killed
            self.num_left -= 1


@pytest.mark.parametrize("num_committed", range(6))
def test_a_watch_that_dies_in_any_transaction_tells_everything_once(
    internet: httpx2.Client, strict_shop: Shop, num_committed: int
) -> None:
    watched = Watched(internet, strict_shop)
    fell, market = watched.product(), strict_shop.market
    watched.alert(fell, "fall")
    watched.alert(fell, "below", max_price=95_000)
    watched.look(search_news_minutes=0)
    watched.save({"supplier_id": strict_shop.id})
    new = watched.product()
    watched.change(fell, price=90_000)
    limits = WatchLimits(changes=1, alerts=1, searches=1, search_news_minutes=0)
    dying = Watch(market.reading, WritingUntilKilled(market, num_committed), market.search, limits)
    with pytest.raises(Killed):
        for _ in range(100):
            dying.step()
        raise AssertionError("it came to an end before")
    watched.look(search_news_minutes=0)
    told = watched.told()
    assert sorted(one["price"] for one in told if one["type"] == "price.fell") == [90_000, 90_000]
    assert [one["product_ids"] for one in told if one["type"] == "search.match"] == [str(new)]


def _changed_price(url: str, seller: dict[str, str], buyer: dict[str, str], product: int) -> None:
    with httpx2.Client(base_url=url, timeout=30) as client:
        asked = client.post(f"/api/products/{product}/alerts", json={"kind": "fall"}, headers=buyer)
        assert asked.status_code == 200, asked.text
        changed = client.put(f"/api/products/{product}", json={"price": 8_000_000}, headers=seller)
        assert changed.status_code == 200, changed.text


@pytest.mark.slow
@pytest.mark.long
def test_what_changed_before_a_kill_is_told_after_it(tmp_path: Path) -> None:
    market = Market(Database(url := new_sqlite(tmp_path)), MarketRules(jwt_secret=SECRET))
    shop = Shop(market)
    product = shop.product(on_hand=9)
    seller, buyer = shop.auth_headers(f"supplier:{shop.id}"), shop.auth_headers(f"user:{shop.user()}")
    with market.writing() as session:
        market.search.rebuild(session)
    market.close()
    variables: dict[str, Any] = {"DATABASE_URL": url, "JWT_SECRET_KEY": SECRET, "LOG_LEVEL": "warning"}
    with server_process(**variables, ALERT_CHECK_SECONDS="3600") as first:
        wait_until_live(first.url)
        _changed_price(first.url, seller, buyer, product)
        first.popen.kill()
    with server_process(**variables, ALERT_CHECK_SECONDS="0.2") as second:
        wait_until_live(second.url)
        with (
            httpx2.Client(base_url=second.url, timeout=60) as client,
            listening(client, {**buyer, **FROM_START}) as stream,
        ):
            told = stream.next()
        second.popen.kill()
    assert told["type"] == "price.fell" and told["price"] == 8_000_000
    with server_process(**variables, ALERT_CHECK_SECONDS="0.2") as third:
        wait_until_live(third.url)
        with httpx2.Client(base_url=third.url, timeout=60) as client:
            assert [one["type"] for one in kept(client, buyer)] == ["price.fell"]
