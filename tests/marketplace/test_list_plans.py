"""Every list reads its rows from an index, in its order: no request reads a whole table or sorts it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, get_args

import httpx2
import pytest
from sqlalchemy import Engine, event

from tests.marketplace.conftest import SECRET
from tests.marketplace.test_policy import TABLE
from tests.marketplace.world import World, new_world
from tis.database.database import Database
from tis.marketplace.feeds.feed_log import encode_cursor, read_moment
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.products.shop_goods import GoodsOrder

# The path of each list, with every filter. Their own plans: `tests/marketplace/search/test_plans.py`.
LISTS = {
    "GET /api/suppliers": [
        "",
        "?city=jakarta",
        "?skip=1",
        "?category=fan",
        "?open_now=1",
        "?verified=1",
        "?status=suspended",
        "?status=closed",
    ],
    "GET /api/suppliers/{supplier_id}/members": [""],
    "GET /api/suppliers/{supplier_id}/products": [
        "",
        "?q=kipas&category=fan&condition=new&is_available=1&max_stock=9",
        *(f"?sort={order}" for order in get_args(GoodsOrder)),
    ],
    "GET /api/suppliers/{supplier_id}/branches": [""],
    "GET /api/suppliers/{supplier_id}/product-groups": ["", "?before=99"],
    "GET /api/product-groups/{group_id}": [""],
    "GET /api/suppliers/{supplier_id}/promotions": [
        "",
        "?before=9",
        "?state=running&before=9",
        "?product_id={product_id}&before=9",
        "?product_id={product_id}&state=ended",
    ],
    "GET /api/alerts": ["", "?before=9", "?product_id={product_id}"],
    "GET /api/saved-searches": ["", "?before=9"],
    "GET /api/suppliers/{supplier_id}/products/imports": [""],
    "GET /api/suppliers/{supplier_id}/products/deleted": ["", "?before=9"],
    "GET /api/suppliers/{supplier_id}/products/export": [""],
    "GET /api/suppliers/{supplier_id}/export": [""],
    "GET /api/suppliers/{supplier_id}/sessions": [""],
    "GET /api/suppliers/{supplier_id}/reservations": [
        "",
        "?status=held",
        "?status=expired",
        "?status=refused&before={reservation_id}",
    ],
    "GET /api/suppliers/{supplier_id}/stock-movements": [
        "",
        "?before=9",
        "?product_id={product_id}&before=9",
        "?kind=sold&before=9",
    ],
    "GET /api/suppliers/{supplier_id}/numbers": ["", "?weeks=12"],
    "GET /api/suppliers/{supplier_id}/reviews": ["", "?before=9", "?unanswered=1&before=9"],
    "GET /api/suppliers/{supplier_id}/tokens": [""],
    "GET /api/suppliers/{supplier_id}/webhooks": [""],
    "GET /api/suppliers/{supplier_id}/webhooks/{webhook_id}/deliveries": ["", "?before=9", "?status=dead&before=9"],
    "GET /api/users": ["", "?skip=1", "?email=jane"],
    "GET /api/users/me/export": [""],
    "GET /api/users/me/invitations": [""],
    "GET /api/auth/sessions": [""],
    "GET /api/chat/conversations": ["", "?before=9"],
    "GET /api/chat/conversations/{session_id}": ["", "?before=9"],
    "GET /api/products/{product_id}": [""],
    "GET /api/products/{product_id}/pictures": [""],
    "GET /api/products/{product_id}/stock": [""],
    "GET /api/products/{product_id}/price-history": ["", "?before=9"],
    "GET /api/products/{product_id}/reviews": ["", "?before=9", "?status=hidden"],
    "GET /api/orders/{order_id}/payment": [""],
    "GET /api/reservations": ["", "?status=held", "?status=expired", "?before={reservation_id}"],
    "GET /api/talks": ["", "?before={talk_id}"],
    "GET /api/talks/{talk_id}": ["", "?before=9"],
    "GET /api/suppliers/{supplier_id}/talks": [
        "",
        "?unanswered=1",
        "?before={talk_id}",
        "?unanswered=1&before={talk_id}",
    ],
    "GET /api/admin/reported-messages": ["", "?before=9-9"],
    "GET /api/orders": [
        "",
        "?state=placed",
        "?state=expired",
        "?state=received&before={order_id}",
        "?state=refused&before={order_id}",
        "?before={order_id}",
    ],
    "GET /api/suppliers/{supplier_id}/orders": [
        "",
        "?state=placed",
        "?state=expired",
        "?state=received&before={order_id}",
        "?state=refused&before={order_id}",
        "?before={order_id}",
    ],
    "GET /api/audit": [
        "",
        "?entity=product",
        "?entity=product&entity_id=1&before=9",
        "?entity_id=1",
        "?actor=user:1",
        "?action=moderate",
        "?since=2026-11-28T00:00:00Z&until=2036-11-29T00:00:00Z",
        "?until=2036-11-29T00:00:00Z&before=9",
    ],
    "GET /api/admin/flagged-products": ["", "?before=9"],
    "GET /api/admin/flagged-answers": ["", "?before=9"],
    "GET /api/admin/overview": [""],
    "GET /api/admin/reviews": ["", "?status=published", "?before=9"],
    "GET /api/admin/data-requests": ["", "?status=open", "?user_id=1", "?status=done&before=9"],
    "GET /api/admin/verifications": ["", "?status=verified", "?status=refused&before=9"],
    "GET /api/categories": [""],
    "GET /api/feed.csv": [""],
    "GET /api/feed.json": ["", "?since={feed_cursor}"],
    "GET /api/feed.xml": [""],
    "GET /api/synonyms": [""],
}
SEARCHES = {
    "GET /api/products",
    "GET /api/products/search",
    "GET /api/products/facets",
    "GET /api/products/compare",
    "GET /api/products/suggest",
    "GET /api/products/lookup",
    "GET /api/products/similar",
}
SINGLE = {
    "GET /api/pictures/{picture_id}/{size}.webp",
    "GET /api/auth/me",
    "GET /api/notices/stream",
    "GET /api/notices/preferences",
    "GET /api/suppliers/{supplier_id}/notices/preferences",
    "GET /api/auth/consent",
    "GET /api/chat/stream/{session_id}",
    "GET /api/users/me/preferences",
    "GET /api/users/{user_id}",
    "GET /api/suppliers/{supplier_id}",
    "GET /api/suppliers/{supplier_id}/verification",
    "GET /api/reservations/{reservation_id}",
    "GET /api/orders/{order_id}",
    "GET /api/orders/states",
    "GET /api/suppliers/{supplier_id}/order-rules",
    "GET /api/suppliers/{supplier_id}/order-quote",
    "GET /api/suppliers/{supplier_id}/products/imports/{import_id}",
    "GET /api/suppliers/{supplier_id}/payment-methods",
}
CALLERS = {
    "GET /api/chat/conversations/{session_id}": "user",
    "GET /api/users/me/export": "user",
    "GET /api/alerts": "user",
    "GET /api/saved-searches": "user",
    "GET /api/reservations": "user",
    "GET /api/orders": "user",
    "GET /api/talks": "user",
    "GET /api/talks/{talk_id}": "user",
    "GET /api/suppliers/{supplier_id}/talks": "supplier",
    "GET /api/orders/{order_id}/payment": "user",
    "GET /api/users/me/invitations": "other user",
    "GET /api/suppliers/{supplier_id}/export": "supplier",
    "GET /api/suppliers/{supplier_id}/sessions": "owner",
    "GET /api/suppliers/{supplier_id}/tokens": "owner",
    "GET /api/suppliers/{supplier_id}/webhooks": "owner",
    "GET /api/suppliers/{supplier_id}/webhooks/{webhook_id}/deliveries": "owner",
}


def test_every_route_that_reads_is_here() -> None:
    assert {route for route in TABLE if route.startswith("GET")} <= LISTS.keys() | SEARCHES | SINGLE


@pytest.fixture(scope="module")
def market(strict_database_url: str) -> Iterator[Market]:
    market = Market(Database(strict_database_url), MarketRules(jwt_secret=SECRET))
    yield market
    market.close()


@pytest.fixture(scope="module")
def world(internet: httpx2.Client, market: Market) -> World:
    return new_world(market)


@contextmanager
def recorded_queries(dialect: str) -> Iterator[list[tuple[str, Any]]]:
    """Of this kind of database, by requests: other markets and the sweeper of this one read theirs meanwhile."""
    queries: list[tuple[str, Any]] = []

    def record(connection: Any, cursor: Any, statement: str, parameters: Any, *_: object) -> None:
        if threading.current_thread().name == "reservation-sweeper":
            return  # once an hour it looks for old rows in whole tables
        if statement.startswith("SELECT") and connection.dialect.name == dialect:
            queries.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", record)
    try:
        yield queries
    finally:
        event.remove(Engine, "before_cursor_execute", record)


def full_reads(market: Market, statement: str, parameters: Any) -> list[str]:
    """Steps of the plan that read a table without an index, or that sort."""
    if "FROM supplier_members" in statement:
        return []  # a user works for few suppliers, and a supplier has few members
    may_sort = any(f"FROM {table}" in statement for table in (*_FEW_OF_AN_ACCOUNT, *_EXPORTED))
    may_sort = may_sort or "GROUP BY" in statement  # sums of a period, by day or by product
    may_sort = may_sort or any(f"ORDER BY products.{column}" in statement for column in _ORDERS_OF_A_SHOP)
    with market.reading() as session:
        connection = session.connection()
        if market.database.dialect == "sqlite":
            steps = connection.exec_driver_sql("EXPLAIN QUERY PLAN " + statement, parameters)
            return [step for *_, step in steps if ("TEMP B-TREE" in step and not may_sort) or step in _SCANS]
        # In tables as small as these PostgreSQL would read everything.
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        connection.exec_driver_sql("SET LOCAL enable_sort = off")
        steps = connection.exec_driver_sql("EXPLAIN " + statement, parameters)
        found = [step for [step] in steps]
        return [
            step for step in found if ("Seq Scan" in step and not _is_count(step)) or ("Sort" in step and not may_sort)
        ]


def _is_count(step: str) -> bool:
    """Totals of users and suppliers are counted in any order, and the count ends at a thousand."""
    return " on users " in step or " on suppliers " in step


# SQLite scans these in the order of their ids for lists of all rows, and stops when the page is full.
_LEDGERS = ("stock_movements", "price_history", "stock_reservations", "reviews", "products")
_FEW_OF_AN_ACCOUNT = ("supplier_invitations", "refresh_tokens", "shop_tokens")
_EXPORTED = ("product_pictures JOIN products",)  # all of a shop, once
# Members sort the goods of their own shop as they like: these are read by its index, then sorted.
_ORDERS_OF_A_SHOP = ("updated_at", "name", "price", "on_hand")
_OF_ACCOUNTS = ("idempotency_keys", "one_time_links", "consents", *_FEW_OF_AN_ACCOUNT)
_SCANS = {f"SCAN {table}" for table in (*_LEDGERS, *_OF_ACCOUNTS, "product_search")}


def _old_feed_cursor(market: Market) -> str:
    """Of a reader who has yet to learn of all changes."""
    return encode_cursor(market.search.cursor_key, replace(read_moment(market), latest=0))


@pytest.mark.parametrize("route", LISTS)
def test_a_list_is_read_from_an_index(route: str, internet: httpx2.Client, market: Market, world: World) -> None:
    path = route.removeprefix("GET ")
    names = {**world.names, "session_id": world.names["chat_session_id"]} if "/chat/" in path else world.names
    if "{feed_cursor}" in "".join(LISTS[route]):
        names = {**names, "feed_cursor": _old_feed_cursor(market)}
    for query in LISTS[route]:
        kind = CALLERS.get(route, "admin")
        url = (path + query).format(**names)
        with recorded_queries(market.database.dialect) as queries:
            answer = internet.get(url, headers=world.headers(kind))
        assert answer.status_code == 200, answer.text
        found = {statement: steps for statement, values in queries if (steps := full_reads(market, statement, values))}
        assert queries and not found, (url, found)
