"""Tools for MCP clients of people who are signed in: `hold_product`, `release_hold` and `order_status`.

What changes something needs two calls, and is done once however often the second is sent. The assistant of the shop
has none of these: a person presses a button there.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound, ServiceError
from tis.marketplace.assistant.catalogue_tools import problems_of, schema_of
from tis.marketplace.assistant.clean_text import clean_name
from tis.marketplace.assistant.confirmations import LIFETIME_SECONDS, MAX_CHARS, Confirmations, done_once
from tis.marketplace.context import MarketServices
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.threads import in_thread
from tis.marketplace.policy import require_user
from tis.marketplace.reading.structured_query import ProductId
from tis.marketplace.stock.counters import require_on_sale
from tis.marketplace.stock.schemas import ReservationView
from tis.marketplace.stock.service import current_reservation, release, reserve
from tis.marketplace.tables import Order, OrderLine, Product, Reservation
from tis.mcp_client.tool_types import LocalTool, McpTool, McpToolResult

_MAX_ORDERS, _MAX_LINES, _MAX_NAME_CHARS = 5, 50, 150
_TWO_CALLS = (
    " Call it twice: without `confirmation` it does nothing and says what would happen; show that to the user, and "
    "only if they agree call it again with the same arguments and the `confirmation` of the answer, which is valid "
    "for five minutes and counts once."
)
_HOLD = (
    "Hold units of a product for the signed-in user for a while, at the price of this moment. Nothing is paid. Where "
    "the shop accepts, it sees the user's name, e-mail and phone." + _TWO_CALLS
)
_RELEASE = "Release what the signed-in user holds, by its `hold_id`." + _TWO_CALLS
_STATUS = (
    "Read orders of the signed-in user: one by its number, or without one the newest five. Gives state, lines and "
    "total in rupiah. It only reads."
)
_CHANGES = {"readOnlyHint": False, "idempotentHint": True, "openWorldHint": False}
_NOTHING_YET = (
    "Nothing was done. Ask the user; if they agree, call again with the same arguments and this confirmation."
)

Confirmation = Annotated[
    str | None, StringConstraints(max_length=MAX_CHARS), Field(description="of the answer of the first call")
]


class _ToolArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class HoldArguments(_ToolArguments):
    product_id: ProductId
    quantity: int = Field(1, ge=1, le=1_000_000)
    confirmation: Confirmation = None


class ReleaseArguments(_ToolArguments):
    hold_id: UUID = Field(description="`hold_id` of what was held")
    confirmation: Confirmation = None


class StatusArguments(_ToolArguments):
    number: Annotated[str, StringConstraints(strip_whitespace=True, max_length=16, pattern="^[ -~]*$")] | None = Field(
        None, description="of the order"
    )


Said = dict[str, Any]
ArgumentsT = TypeVar("ArgumentsT", bound=_ToolArguments)


def buying_tools(market: MarketServices, token: str, count_change: Callable[[], Awaitable[None]]) -> list[LocalTool]:
    """`token` is looked at in the transaction of each call. `count_change` raises if there were too many changes."""

    def tool(
        name: str,
        description: str,
        model: type[ArgumentsT],
        annotations: Mapping[str, bool],
        answer: Callable[[MarketServices, str, ArgumentsT], Said],
    ) -> LocalTool:
        async def call(given: Mapping[str, Any]) -> McpToolResult:
            try:
                arguments = model.model_validate(dict(given))
                if getattr(arguments, "confirmation", None) is not None:
                    await count_change()
                said = await in_thread(answer, market, token, arguments)
            except ValidationError as error:
                return McpToolResult(problems_of(error), is_error=True)
            except ServiceError as error:
                return McpToolResult(error.message, is_error=True)
            return McpToolResult(json.dumps(said, ensure_ascii=False, separators=(",", ":")), is_error=False)

        return LocalTool(McpTool(name, description, schema_of(model, ()), dict(annotations)), call)

    reads = {**_CHANGES, "readOnlyHint": True, "destructiveHint": False}
    return [
        tool("hold_product", _HOLD, HoldArguments, {**_CHANGES, "destructiveHint": False}, _hold),
        tool("release_hold", _RELEASE, ReleaseArguments, {**_CHANGES, "destructiveHint": True}, _release),
        tool("order_status", _STATUS, StatusArguments, reads, _order_status),
    ]


def _hold(market: MarketServices, token: str, arguments: HoldArguments) -> Said:
    bound = {"product_id": arguments.product_id, "quantity": arguments.quantity}
    if arguments.confirmation is None:
        with market.reading() as session:
            principal = _user(session, market, token)
            available = require_on_sale(session, arguments.product_id)
            if available < arguments.quantity:
                raise Conflict(f"Only {available} left")
            product = session.get_one(Product, arguments.product_id)
            shown = {"unit_price": product.price}
            would = {
                "would_hold": {**bound, "name": clean_name(product.name, _MAX_NAME_CHARS), **shown},
                "total": product.price * arguments.quantity,
                "currency": "IDR",
                "seconds": market.rules.reservation_seconds,
            }
            return _asked(market, principal, "hold_product", bound, shown, would)
    with market.writing() as session:
        principal = _user(session, market, token)
        confirmed = Confirmations(market.signer).read(arguments.confirmation, principal, "hold_product", bound)

        def hold() -> Said:
            rules = market.rules
            wanted, seconds = (arguments.product_id, arguments.quantity), rules.reservation_seconds
            held = reserve(session, principal, market.search, *wanted, seconds, rules)
            if held.unit_price != confirmed.facts["unit_price"]:
                raise Conflict(f"The price is {held.unit_price} now: ask the user again.")
            return {"held": _held_json(held)}

        return done_once(session, principal, confirmed, hold)


def _release(market: MarketServices, token: str, arguments: ReleaseArguments) -> Said:
    hold_id = str(arguments.hold_id)
    bound = {"hold_id": hold_id}
    if arguments.confirmation is None:
        with market.reading() as session:
            principal = _user(session, market, token)
            held = current_reservation(session, _own(session, principal, hold_id))
            if held.status != "held":
                raise Conflict(f"This hold is {held.status} already: there is nothing to release.")
            would = {"would_release": _held_json(held)}
            return _asked(market, principal, "release_hold", bound, {}, would)
    with market.writing() as session:
        principal = _user(session, market, token)
        confirmed = Confirmations(market.signer).read(arguments.confirmation, principal, "release_hold", bound)

        def let_go() -> Said:
            _own(session, principal, hold_id)
            return {"released": _held_json(release(session, principal, market.search, hold_id))}

        return done_once(session, principal, confirmed, let_go)


def _order_status(market: MarketServices, token: str, arguments: StatusArguments) -> Said:
    with market.reading() as session:
        principal = _user(session, market, token)
        wanted = select(Order).where(Order.buyer == principal.account)
        if arguments.number:
            wanted = wanted.where(Order.number == arguments.number.upper())
        orders = session.scalars(wanted.order_by(Order.created_at.desc(), Order.id.desc()).limit(_MAX_ORDERS)).all()
        if arguments.number and not orders:
            raise NotFound("You have no order of this number.")
        return {"orders": [_order_json(session, order) for order in orders]}


def _asked(
    market: MarketServices, principal: Principal, tool: str, bound: Said, facts: Mapping[str, Any], would: Said
) -> Said:
    confirmation = Confirmations(market.signer).issue(principal, tool, bound, facts)
    return {**would, "confirmation": confirmation, "valid_for_seconds": LIFETIME_SECONDS, "note": _NOTHING_YET}


def _user(session: Session, market: MarketServices, token: str) -> Principal:
    principal = market.authenticate(session, token)
    require_user(principal)
    return principal


def _own(session: Session, principal: Principal, hold_id: str) -> Reservation:
    """Also for admins and members of the shop: here they are buyers."""
    found = session.scalar(select(Reservation).where(Reservation.id == hold_id, Reservation.actor == principal.account))
    if found is None:
        raise NotFound("You hold nothing of this hold_id.")
    return found


def _held_json(held: ReservationView) -> Said:
    shown = held.model_dump(mode="json")
    names = ("product_id", "quantity", "unit_price", "status", "expires_at")
    return {"hold_id": shown["id"], **{name: shown[name] for name in names}}


def _order_json(session: Session, order: Order) -> Said:
    rows = select(OrderLine).where(OrderLine.order_id == order.id).order_by(OrderLine.position).limit(_MAX_LINES)
    lines = [
        {
            "product_id": line.product_id,
            "name": clean_name(line.name, _MAX_NAME_CHARS),
            "quantity": line.quantity,
            "unit_price": line.unit_price,
            "total": line.total,
        }
        for line in session.scalars(rows)
    ]
    values = {
        "number": order.number,
        "state": order.state,
        "shop": clean_name(order.shop_name, _MAX_NAME_CHARS),
        "lines": lines,
        "delivery": order.delivery,
        "delivery_fee": order.delivery_fee,
        "total": order.total,
        "currency": "IDR",
        "tracking": order.tracking and clean_name(order.tracking, _MAX_NAME_CHARS),
        "placed_at": order.placed_at and order.placed_at.isoformat().replace("+00:00", "Z"),
        "due_at": order.due_at and order.due_at.isoformat().replace("+00:00", "Z"),
    }
    return {name: value for name, value in values.items() if value is not None}
