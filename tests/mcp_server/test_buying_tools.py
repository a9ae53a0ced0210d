"""MCP clients of people who are signed in hold and release with two calls, and read the own orders."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from mcp import MCPError
from mcp_types import CallToolResult
from sqlalchemy import func, select, update

from tests.databases import new_sqlite
from tests.marketplace.search.conftest import JAKARTA, SECRET, Catalogue
from tests.mcp_server.conftest import McpShop
from tests.mcp_server.test_official_client import connected, text_of
from tests.serving import served, settings_with
from tis.errors import Forbidden
from tis.marketplace.assistant.confirmations import LIFETIME_SECONDS, Confirmations
from tis.marketplace.auth.tokens import begin_chain
from tis.marketplace.columns import now
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.signing import Signer
from tis.marketplace.market import Market
from tis.marketplace.tables import Order, OrderLine, Product, Reservation, User

pytestmark = pytest.mark.anyio
_NAMES = {"hold_product", "release_hold", "order_status"}


@dataclass(frozen=True)
class Buyer:
    shop: McpShop
    id: int
    token: str

    @property
    def account(self) -> str:
        return f"user:{self.id}"

    async def asks(self, name: str, **arguments: Any) -> CallToolResult:
        async with connected(self.shop, token=self.token) as client:
            result = await client.call_tool(name, arguments)
            assert isinstance(result, CallToolResult)
            return result

    async def does(self, name: str, **arguments: Any) -> dict[str, Any]:
        result = await self.asks(name, **arguments)
        assert not result.is_error, text_of(result)
        return dict(json.loads(text_of(result)))

    async def is_refused(self, name: str, **arguments: Any) -> str:
        result = await self.asks(name, **arguments)
        assert result.is_error, text_of(result)
        return text_of(result)


@pytest.fixture(scope="module")
def buying_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpShop]:
    folder: Path = tmp_path_factory.mktemp("buying")
    settings = settings_with(jwt_secret_key=SECRET, mcp_buying=True, database_url=new_sqlite(folder))
    with served(settings) as running, httpx2.Client(timeout=30) as http:
        market: Market = running.app.state.marketplace.market
        catalogue = Catalogue(market)
        shop = catalogue.shop("Jakarta", JAKARTA)
        rinjani = catalogue.put("Laptop Rinjani", shop=shop, category="laptop", price=11_500_000)
        bromo = catalogue.put("Laptop Bromo", shop=shop, category="laptop", price=7_000_000)
        with market.writing() as session:
            supplier_token = begin_chain(session, market, f"supplier:{shop}").access_token
        yield McpShop(running.url, http, market, catalogue, rinjani, bromo, supplier_token)


def new_buyer(shop: McpShop) -> Buyer:
    with shop.market.writing() as session:
        user = User(name="Budi Specimen")
        session.add(user)
        session.flush()
        return Buyer(shop, user.id, begin_chain(session, shop.market, f"user:{user.id}").access_token)


@pytest.fixture
def buyer(buying_shop: McpShop) -> Buyer:
    return new_buyer(buying_shop)


def holds_of(shop: McpShop, buyer: Buyer) -> list[Reservation]:
    with shop.market.reading() as session:
        rows = session.scalars(select(Reservation).where(Reservation.actor == buyer.account)).all()
        session.expunge_all()
        return list(rows)


def reserved(shop: McpShop, product_id: int) -> int:
    with shop.market.reading() as session:
        return session.get_one(Product, product_id).reserved


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_who_is_signed_in_has_three_more_tools(buying_shop: McpShop, buyer: Buyer, mode: str) -> None:
    async with connected(buying_shop, mode, token=buyer.token) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() >= _NAMES and len(tools) == 6
        for name, reads in (("hold_product", False), ("release_hold", False), ("order_status", True)):
            annotations = tools[name].annotations
            assert annotations is not None and annotations.read_only_hint is reads
    async with connected(buying_shop, mode) as nobody:
        assert not _NAMES & {tool.name for tool in (await nobody.list_tools()).tools}
        with pytest.raises(MCPError, match="Unknown tool: hold_product"):
            await nobody.call_tool("hold_product", {"product_id": buying_shop.rinjani})


async def test_without_the_setting_there_are_none(mcp_shop: McpShop) -> None:
    async with connected(mcp_shop, token=mcp_shop.token()) as client:
        assert len((await client.list_tools()).tools) == 3
        with pytest.raises(MCPError, match="Unknown tool: order_status"):
            await client.call_tool("order_status", {})


async def test_the_first_call_does_nothing_and_the_second_holds_once(buying_shop: McpShop, buyer: Buyer) -> None:
    wanted = {"product_id": buying_shop.rinjani, "quantity": 2}
    before = reserved(buying_shop, buying_shop.rinjani)
    asked = await buyer.does("hold_product", **wanted)
    assert asked["would_hold"]["name"] == "Laptop Rinjani" and asked["total"] == 23_000_000
    assert holds_of(buying_shop, buyer) == [] and "Nothing was done" in asked["note"]
    done = await buyer.does("hold_product", **wanted, confirmation=asked["confirmation"])
    assert done["held"]["quantity"] == 2 and done["held"]["unit_price"] == 11_500_000
    again = await buyer.does("hold_product", **wanted, confirmation=asked["confirmation"])
    assert again["held"] == done["held"] and again["repeated"]
    [held] = holds_of(buying_shop, buyer)
    assert held.id == done["held"]["hold_id"] and reserved(buying_shop, buying_shop.rinjani) == before + 2

    release = {"hold_id": held.id}
    asked = await buyer.does("release_hold", **release)
    assert holds_of(buying_shop, buyer)[0].status == "held"
    released = await buyer.does("release_hold", **release, confirmation=asked["confirmation"])
    assert released["released"]["status"] == "released"
    assert reserved(buying_shop, buying_shop.rinjani) == before
    assert (await buyer.does("release_hold", **release, confirmation=asked["confirmation"]))["repeated"]
    assert "released already" in await buyer.is_refused("release_hold", **release)


async def test_twenty_calls_at_once_with_one_confirmation_hold_once(buying_shop: McpShop, buyer: Buyer) -> None:
    asked = await buyer.does("hold_product", product_id=buying_shop.bromo)
    sent = [
        buyer.asks("hold_product", product_id=buying_shop.bromo, confirmation=asked["confirmation"]) for _ in range(20)
    ]
    answers = await asyncio.gather(*sent)
    assert len(holds_of(buying_shop, buyer)) == 1
    ids = {json.loads(text_of(one))["held"]["hold_id"] for one in answers if not one.is_error}
    assert len(ids) == 1


async def test_a_confirmation_is_for_its_account_tool_and_arguments(buying_shop: McpShop, buyer: Buyer) -> None:
    wanted = {"product_id": buying_shop.bromo, "quantity": 1}
    token = (await buyer.does("hold_product", **wanted))["confirmation"]
    thief = new_buyer(buying_shop)
    assert "another account" in await thief.is_refused("hold_product", **wanted, confirmation=token)
    for changed in ({"quantity": 2}, {"product_id": buying_shop.rinjani}):
        said = await buyer.is_refused("hold_product", **{**wanted, **changed}, confirmation=token)
        assert "another account, tool or arguments" in said
    said = await buyer.is_refused("release_hold", hold_id=str(uuid4()), confirmation=token)
    assert "another account, tool or arguments" in said
    body, _, signature = token.partition(".")
    for made_up in ("x", f"{body}.", f"{body}.{'0' * 64}", f"{body[:-2]}AA.{signature}", ".", ".é", "é.é", "a" * 1001):
        await buyer.is_refused("hold_product", **wanted, confirmation=made_up)
    assert holds_of(buying_shop, buyer) == holds_of(buying_shop, thief) == []


async def test_a_confirmation_of_another_login_is_none(buying_shop: McpShop, buyer: Buyer) -> None:
    token = (await buyer.does("hold_product", product_id=buying_shop.bromo))["confirmation"]
    with buying_shop.market.writing() as session:
        other = begin_chain(session, buying_shop.market, buyer.account).access_token
    said = await Buyer(buying_shop, buyer.id, other).is_refused(
        "hold_product", product_id=buying_shop.bromo, confirmation=token
    )
    assert "another account" in said


async def test_a_price_that_changed_meanwhile_is_asked_again(buying_shop: McpShop, buyer: Buyer) -> None:
    product_id = buying_shop.catalogue.put("Tas Specimen", category="bag", price=100_000)
    token = (await buyer.does("hold_product", product_id=product_id))["confirmation"]
    with buying_shop.market.writing() as session:
        session.execute(update(Product).where(Product.id == product_id).values(price=900_000))
    said = await buyer.is_refused("hold_product", product_id=product_id, confirmation=token)
    assert "900000" in said and holds_of(buying_shop, buyer) == [] and reserved(buying_shop, product_id) == 0


async def test_what_is_not_there_is_not_offered(buying_shop: McpShop, buyer: Buyer) -> None:
    assert "Only" in await buyer.is_refused("hold_product", product_id=buying_shop.bromo, quantity=999_999)
    assert "not found" in await buyer.is_refused("hold_product", product_id=10**9)
    assert "hold nothing" in await buyer.is_refused("release_hold", hold_id=str(uuid4()))
    assert "Wrong arguments" in await buyer.is_refused("hold_product", product_id=1, user_id=7)
    seller = Buyer(buying_shop, 0, buying_shop.supplier_token)
    assert "Only a user" in await seller.is_refused("hold_product", product_id=buying_shop.bromo)


async def test_a_shop_releases_nothing_of_a_buyer_by_this_tool(buying_shop: McpShop, buyer: Buyer) -> None:
    token = (await buyer.does("hold_product", product_id=buying_shop.bromo))["confirmation"]
    held = (await buyer.does("hold_product", product_id=buying_shop.bromo, confirmation=token))["held"]
    with buying_shop.market.writing() as session:
        admin = User(name="Ada", role="admin")
        session.add(admin)
        session.flush()
        of_admin = Buyer(
            buying_shop, admin.id, begin_chain(session, buying_shop.market, f"user:{admin.id}").access_token
        )
    for other in (new_buyer(buying_shop), of_admin):
        assert "hold nothing" in await other.is_refused("release_hold", hold_id=held["hold_id"])


async def test_a_buyer_reads_the_own_orders_alone(buying_shop: McpShop, buyer: Buyer) -> None:
    stranger = new_buyer(buying_shop)
    with buying_shop.market.writing() as session:
        supplier_id = session.get_one(Product, buying_shop.bromo).supplier_id
        for at, of in enumerate((buyer, buyer, stranger)):
            order = Order(
                id=str(uuid4()),
                number=f"T{at}{of.id:07}",
                supplier_id=supplier_id,
                buyer=of.account,
                state="placed",
                shop_name="Toko Specimen",
                items_total=14_000_000,
                total=14_000_000,
                placed_at=now(),
                created_at=now() + timedelta(seconds=at),
            )
            session.add(order)
            session.flush()
            line = {"product_id": buying_shop.bromo, "name": "Laptop Bromo", "unit_price": 7_000_000}
            session.add(OrderLine(order_id=order.id, position=0, ordered=2, quantity=2, total=14_000_000, **line))
    newest, first = (await buyer.does("order_status"))["orders"]
    assert (newest["number"], first["number"]) == (f"T1{buyer.id:07}", f"T0{buyer.id:07}")
    [order] = (await buyer.does("order_status", number=first["number"]))["orders"]
    assert order["state"] == "placed" and order["total"] == sum(line["total"] for line in order["lines"])
    assert order["lines"][0] == {
        "product_id": buying_shop.bromo, "name": "Laptop Bromo", "quantity": 2, "unit_price": 7_000_000,
        "total": 14_000_000,
    }  # fmt: skip
    assert "no order" in await buyer.is_refused("order_status", number=f"T2{stranger.id:07}")
    assert "Wrong arguments" in await buyer.is_refused("order_status", number="\0")
    assert (await new_buyer(buying_shop).does("order_status"))["orders"] == []


async def test_changes_count_as_reservations(tmp_path: Path) -> None:
    settings = settings_with(
        jwt_secret_key=SECRET, mcp_buying=True, database_url=new_sqlite(tmp_path), reservations_per_minute=1
    )
    with served(settings) as running, httpx2.Client(timeout=30) as http:
        market: Market = running.app.state.marketplace.market
        product_id = Catalogue(market).put("Laptop Bromo", category="laptop", price=7_000_000)
        buyer = new_buyer(McpShop(running.url, http, market, Catalogue(market), product_id, product_id, ""))
        token = (await buyer.does("hold_product", product_id=product_id))["confirmation"]
        await buyer.does("hold_product", product_id=product_id, confirmation=token)
        assert "Too many reservations" in await buyer.is_refused(
            "hold_product", product_id=product_id, confirmation=token
        )
        with market.reading() as session:
            assert session.scalar(select(func.count()).select_from(Reservation)) == 1


def test_a_confirmation_ends_after_minutes() -> None:
    clock = [1000.0]
    confirmations = Confirmations(Signer(b"secret" * 8), lambda: clock[0])
    me = Principal("user:1", 1, chain="a")
    token = confirmations.issue(me, "hold_product", {"quantity": 1}, {"unit_price": 5})
    clock[0] += LIFETIME_SECONDS
    assert confirmations.read(token, me, "hold_product", {"quantity": 1}).facts == {"unit_price": 5}
    clock[0] += 1
    with pytest.raises(Forbidden, match="expired"):
        confirmations.read(token, me, "hold_product", {"quantity": 1})
    with pytest.raises(Forbidden, match="no confirmation"):
        confirmations.read(".é", me, "hold_product", {"quantity": 1})
