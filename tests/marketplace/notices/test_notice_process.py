"""Streams of notices when their server is killed, and when it stops."""

import signal
from pathlib import Path

import httpx2
import pytest

from tests.databases import new_sqlite
from tests.marketplace.conftest import SECRET
from tests.marketplace.notices.test_notice_stream import FROM_START, HeardStream, listening
from tests.marketplace.shop import Shop
from tests.marketplace.stock.test_reservations import reserve
from tests.serving import server_process, wait_until_live
from tis.database.database import Database
from tis.marketplace.market import Market, MarketRules

pytestmark = [pytest.mark.slow, pytest.mark.long]


def _variables(folder: Path) -> tuple[dict[str, str], int]:
    """Of an open server with one product."""
    url = new_sqlite(folder)
    market = Market(Database(url), MarketRules(jwt_secret=SECRET))
    product = Shop(market).product(on_hand=9)
    market.close()
    return {"DATABASE_URL": url, "JWT_SECRET_KEY": SECRET, "MARKETPLACE_AUTH": "open", "LOG_LEVEL": "warning"}, product


def test_what_was_answered_before_a_kill_is_told_after_it(tmp_path: Path) -> None:
    variables, product = _variables(tmp_path)
    with server_process(**variables) as first:
        wait_until_live(first.url)
        with httpx2.Client(base_url=first.url, timeout=30) as client:
            with listening(client, {}) as stream:
                stream.next()
                held = reserve(client, product).json()["id"]
                assert stream.next()["reservation_id"] == held
                cursor = stream.last_id
            unheard = reserve(client, product).json()["id"]
        first.popen.kill()
    with server_process(**variables) as second:
        wait_until_live(second.url)
        with httpx2.Client(base_url=second.url, timeout=30) as client:
            with listening(client, {"Last-Event-ID": cursor}) as stream:
                rest = [stream.next() for _ in range(3)]
            with listening(client, FROM_START) as stream:
                everything = [stream.next() for _ in range(4)]
    assert [one["reservation_id"] for one in rest] == [held, unheard, unheard]  # a server in open mode is the shop, too
    assert everything[1:] == rest


def test_a_server_that_stops_ends_its_streams_and_does_not_wait_for_them(tmp_path: Path) -> None:
    variables, _ = _variables(tmp_path)
    with server_process(**variables) as server:
        wait_until_live(server.url)
        with (
            httpx2.Client(base_url=server.url, timeout=30) as client,
            client.stream("GET", "/api/notices/stream") as answer,
        ):
            stream = HeardStream(answer)
            assert stream.next() == {"type": "connected"}
            server.popen.send_signal(signal.SIGTERM)
            with pytest.raises(AssertionError, match="the stream has ended"):
                stream.next()
        assert server.popen.wait(timeout=30) is not None
        output = server.popen.stdout
        assert output and "Traceback" not in output.read()
