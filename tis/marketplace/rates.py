"""Which caller a rate limit counts: `dependencies=[limited("searches")]` in the decorator of a route."""

from typing import Any, Literal, cast

from anyio import from_thread
from fastapi import Depends, Request

from tis.http.client_address import client_address
from tis.marketplace.context import MarketServices, bearer_token
from tis.network.addresses import is_loopback

RateKind = Literal[
    "logins",
    "registrations",
    "reservations",
    "orders",
    "reviews",
    "imports",
    "searches",
    "facets",
    "mails",
    "chats",
    "pictures",
    "card_checks",
    "messages",
    "payments",
    "payment_callbacks",
    "feeds",
    "webhook_tests",
    "alerts",
]


def limited(kind: RateKind, *, by_address: bool = False) -> Any:
    """Counts per account if the request has a valid token, else per client address.

    An open server has none for programs of its own computer.

    `by_address`: where one account more would be one budget more, as for logins and registrations.
    """

    async def count(request: Request) -> None:
        await count_request(request, kind, by_address=by_address)

    return Depends(count)


def count_in_thread(request: Request, kind: RateKind) -> None:
    """For routes that are plain functions, and count only some of their requests."""
    from_thread.run(count_request, request, kind)


async def count_request(request: Request, kind: RateKind, *, by_address: bool = False) -> None:
    market = cast(MarketServices, request.app.state.marketplace.market)
    address = client_address(request.scope)
    if market.rules.is_open and is_loopback(address):
        return
    account = None if by_address else market.account_named_by(bearer_token(request))
    await market.rates.count(kind, account or address)
