"""The table of permissions: every route for every kind of caller, with MARKETPLACE_AUTH=open and =required.

A route without a row fails, and so does a row without a route.
"""

from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from tests.marketplace.payments.codes import png, qris_text
from tests.marketplace.pictures.photos import photo
from tests.marketplace.world import KINDS, PASSWORD, World, new_world, new_worlds
from tests.serving import settings_with
from tis.app import create_app
from tis.marketplace.market import Market

EVERYBODY = frozenset(KINDS)
NAMED = EVERYBODY - {"anonymous"}
USERS = NAMED - {"supplier", "other supplier"}
MEMBERS = frozenset({"supplier", "editor", "owner", "admin"})
SELLERS = MEMBERS - {"admin"}
OPEN_TALKERS = SELLERS | {"user", "anonymous"}
OWNERS = MEMBERS - {"editor"}
ADMIN = frozenset({"admin"})
HOLDERS = frozenset({"user", "admin"})
AUTHOR = frozenset({"user"})
INVITED = frozenset({"other user"})


@dataclass(frozen=True)
class RoutePolicy:
    """The kinds of callers that may use a route. In open mode all may, by default."""

    required_mode: frozenset[str]
    open_mode: frozenset[str] = EVERYBODY
    json: Any = None
    params: dict[str, str] = field(default_factory=dict)
    content: str | None = None
    files: dict[str, bytes] | None = None
    anonymous_status: int = 401  # for a caller without a token who may not
    allowed_status: int = 200  # of a caller who may, where the request of the table goes no further
    names: dict[str, str] = field(default_factory=dict)  # names of the path that stand for others of the world


def same_in_open_mode(who: frozenset[str], **more: Any) -> RoutePolicy:
    return RoutePolicy(who, who, **more)


SUPPLIER = {"name": "a", "business_name": "b", "latitude": 0, "longitude": 0, "city": "Pontianak"}
BRANCH = {"name": "Cabang", "latitude": 0, "longitude": 109.3, "city": "Pontianak"}
PRODUCT = {"name": "Kipas", "price": 100_000, "stock_quantity": 1, "category": "fan"}
GROUP = {
    "name": "Kipas {kind} {number}",
    "axes": ["warna"],
    "variants": [{"product_id": "{product_id}", "values": {"warna": "hijau"}}],
}
PICTURE = photo()
PAID_ORDER = {"order_id": "paid_order_id"}
QRIS = png(qris_text())
NEW_EMAIL = "new-{kind}-{number}@world.example"

TABLE = {
    # Accounts
    "POST /api/auth/register": RoutePolicy(EVERYBODY, json={"name": "a", "email": NEW_EMAIL, "password": PASSWORD}),
    "POST /api/auth/login": RoutePolicy(EVERYBODY, json={"email": "{email}", "password": PASSWORD}),
    "POST /api/auth/refresh": RoutePolicy(EVERYBODY, json={"refresh_token": "{refresh_token}"}),
    "POST /api/auth/logout": same_in_open_mode(NAMED),
    "POST /api/auth/password": same_in_open_mode(NAMED, json={"password": PASSWORD, "old_password": PASSWORD}),
    "GET /api/auth/me": same_in_open_mode(NAMED),
    "GET /api/auth/sessions": same_in_open_mode(NAMED),
    "DELETE /api/auth/sessions": same_in_open_mode(NAMED),
    "DELETE /api/auth/sessions/{session_id}": same_in_open_mode(AUTHOR),
    "POST /api/auth/password/forgot": RoutePolicy(EVERYBODY, json={"email": "{email}"}),
    "POST /api/auth/password/reset": RoutePolicy(
        EVERYBODY, json={"token": "{reset_secret}", "password": "another long sentence"}
    ),
    "POST /api/auth/email": same_in_open_mode(NAMED, json={"email": NEW_EMAIL, "password": PASSWORD}),
    "POST /api/auth/email/confirmation": same_in_open_mode(NAMED),
    "POST /api/auth/email/confirm": RoutePolicy(EVERYBODY, json={"token": "{confirm_secret}"}),
    "GET /api/auth/consent": RoutePolicy(EVERYBODY),
    "POST /api/auth/consent": same_in_open_mode(NAMED, json={"consent_version": "2026-11"}),
    # Feeds
    "GET /api/feed.csv": RoutePolicy(EVERYBODY),
    "GET /api/feed.json": RoutePolicy(EVERYBODY),
    "GET /api/feed.xml": RoutePolicy(EVERYBODY),
    # Users
    "POST /api/users/register": RoutePolicy(EVERYBODY, json={"name": "a", "email": NEW_EMAIL}),
    "GET /api/users": same_in_open_mode(ADMIN),
    "GET /api/users/{user_id}": RoutePolicy(ADMIN, anonymous_status=404),
    "PUT /api/users/me": same_in_open_mode(USERS, json={"city": "Bandung"}),
    "DELETE /api/users/me": same_in_open_mode(USERS, json={"password": PASSWORD}),
    "GET /api/users/me/export": same_in_open_mode(USERS),
    "GET /api/users/me/invitations": same_in_open_mode(USERS),
    "POST /api/users/me/invitations/{supplier_id}/accept": same_in_open_mode(INVITED),
    "DELETE /api/users/me/invitations/{supplier_id}": same_in_open_mode(INVITED),
    "PUT /api/users/{user_id}/grants": same_in_open_mode(ADMIN, json={"ai_access_enabled": True}),
    # Suppliers
    "POST /api/suppliers/register": RoutePolicy(EVERYBODY, json={**SUPPLIER, "email": NEW_EMAIL}),
    "GET /api/suppliers": RoutePolicy(EVERYBODY),
    "GET /api/suppliers/{supplier_id}": RoutePolicy(EVERYBODY),
    "PUT /api/suppliers/{supplier_id}": RoutePolicy(OWNERS, json={"city": "Bandung"}),
    "DELETE /api/suppliers/{supplier_id}": RoutePolicy(OWNERS),
    "POST /api/suppliers/{supplier_id}/restore": RoutePolicy(OWNERS),
    # In open mode, too: an export has what the mode does not show, such as sessions.
    "GET /api/suppliers/{supplier_id}/export": same_in_open_mode(OWNERS - ADMIN),
    # Nor does it show where others are signed in.
    "GET /api/suppliers/{supplier_id}/sessions": same_in_open_mode(OWNERS - ADMIN),
    "DELETE /api/suppliers/{supplier_id}/sessions": same_in_open_mode(OWNERS - ADMIN),
    "DELETE /api/suppliers/{supplier_id}/sessions/{session_id}": same_in_open_mode(
        OWNERS - ADMIN, names={"session_id": "shop_session_id"}
    ),
    # Nor does it give tokens, which would outlive it.
    "GET /api/suppliers/{supplier_id}/tokens": same_in_open_mode(OWNERS - ADMIN),
    "POST /api/suppliers/{supplier_id}/tokens": same_in_open_mode(
        OWNERS - ADMIN, json={"name": "Till", "scopes": ["read"]}
    ),
    "DELETE /api/suppliers/{supplier_id}/tokens/{token_id}": same_in_open_mode(OWNERS - ADMIN),
    # Without consent no card is looked at.
    "PUT /api/suppliers/{supplier_id}/verification": RoutePolicy(OWNERS, files={"image": PICTURE}, allowed_status=422),
    "GET /api/suppliers/{supplier_id}/verification": RoutePolicy(OWNERS),
    "DELETE /api/suppliers/{supplier_id}/verification": RoutePolicy(OWNERS),
    "GET /api/admin/verifications": same_in_open_mode(ADMIN),
    "PUT /api/admin/verifications/{supplier_id}": same_in_open_mode(
        ADMIN, json={"status": "refused", "reason": "Not she."}
    ),
    "GET /api/suppliers/{supplier_id}/branches": RoutePolicy(EVERYBODY),
    "POST /api/suppliers/{supplier_id}/branches": RoutePolicy(OWNERS, json=BRANCH),
    "PUT /api/suppliers/{supplier_id}/branches/{branch_id}": RoutePolicy(OWNERS, json={"name": "Cabang"}),
    "GET /api/suppliers/{supplier_id}/numbers": RoutePolicy(MEMBERS),
    "PUT /api/suppliers/{supplier_id}/status": same_in_open_mode(ADMIN, json={"status": "suspended"}),
    "GET /api/suppliers/{supplier_id}/members": RoutePolicy(OWNERS),
    "POST /api/suppliers/{supplier_id}/members": RoutePolicy(OWNERS, json={"user_id": "{user_id}", "role": "owner"}),
    "DELETE /api/suppliers/{supplier_id}/members/{user_id}": RoutePolicy(OWNERS),
    # Goods
    "GET /api/products": RoutePolicy(EVERYBODY),
    "GET /api/products/search": RoutePolicy(EVERYBODY, params={"q": "kipas"}),
    "GET /api/products/facets": RoutePolicy(EVERYBODY, params={"facets": "category"}),
    "POST /api/search/parse": RoutePolicy(EVERYBODY, json={"query": "laptop di Jakarta"}),
    "GET /api/products/suggest": RoutePolicy(EVERYBODY, params={"q": "lap"}),
    "GET /api/products/lookup": RoutePolicy(EVERYBODY, params={"ids": "{product_id}"}),
    "GET /api/products/similar": RoutePolicy(EVERYBODY, params={"image": "{picture_id}"}),
    "GET /api/products/compare": RoutePolicy(EVERYBODY, params={"ids": "{product_id},{other_product_id}"}),
    "POST /api/suppliers/{supplier_id}/products": RoutePolicy(MEMBERS, json=PRODUCT),
    "GET /api/products/{product_id}": RoutePolicy(EVERYBODY),
    "PUT /api/products/{product_id}": RoutePolicy(MEMBERS, json={"price": 2000}),
    "DELETE /api/products/{product_id}": RoutePolicy(MEMBERS),
    "POST /api/products/{product_id}/restore": RoutePolicy(MEMBERS),
    "GET /api/products/{product_id}/price-history": RoutePolicy(EVERYBODY),
    "GET /api/products/{product_id}/pictures": RoutePolicy(MEMBERS),
    "POST /api/products/{product_id}/pictures": RoutePolicy(MEMBERS, files={"file": PICTURE}),
    "PUT /api/products/{product_id}/pictures": RoutePolicy(MEMBERS, json={"order": ["{picture_id}"]}),
    "PUT /api/products/{product_id}/pictures/{picture_id}": RoutePolicy(MEMBERS, json={"alt": "Kipas putih"}),
    "DELETE /api/products/{product_id}/pictures/{picture_id}": RoutePolicy(MEMBERS),
    "GET /api/pictures/{picture_id}/{size}.webp": RoutePolicy(EVERYBODY),
    "GET /api/suppliers/{supplier_id}/products": RoutePolicy(MEMBERS),
    "POST /api/suppliers/{supplier_id}/products/bulk": RoutePolicy(
        MEMBERS, json={"products": [{"id": "{product_id}", "price": 3000}]}
    ),
    "GET /api/suppliers/{supplier_id}/product-groups": RoutePolicy(MEMBERS),
    "POST /api/suppliers/{supplier_id}/product-groups": RoutePolicy(MEMBERS, json=GROUP),
    "GET /api/product-groups/{group_id}": RoutePolicy(EVERYBODY),
    "PUT /api/product-groups/{group_id}": RoutePolicy(MEMBERS, json={"axes": [{"name": "color", "was": "warna"}]}),
    "DELETE /api/product-groups/{group_id}": RoutePolicy(MEMBERS),
    "POST /api/product-groups/{group_id}/variants": RoutePolicy(
        MEMBERS, json={"product_id": "{product_id}", "values": {"warna": "hijau"}}
    ),
    "DELETE /api/product-groups/{group_id}/variants/{product_id}": RoutePolicy(
        MEMBERS, names={"product_id": "variant_id"}
    ),
    "GET /api/suppliers/{supplier_id}/products/export": RoutePolicy(MEMBERS),
    "GET /api/suppliers/{supplier_id}/products/deleted": RoutePolicy(MEMBERS),
    "POST /api/suppliers/{supplier_id}/products/import": RoutePolicy(
        MEMBERS, content="sku,name,price,stock_quantity,category\nA-1,Kipas,1000,1,fan\n"
    ),
    "GET /api/suppliers/{supplier_id}/products/imports": RoutePolicy(MEMBERS),
    "GET /api/suppliers/{supplier_id}/products/imports/{import_id}": RoutePolicy(MEMBERS),
    # Messages: for the two who talk, and no admin
    "POST /api/products/{product_id}/talk": RoutePolicy(
        NAMED - SELLERS, EVERYBODY - SELLERS, json={"body": "Masih ada?"}
    ),
    "POST /api/orders/{order_id}/talk": RoutePolicy(SELLERS | {"user"}, OPEN_TALKERS, json={"body": "Kapan dikirim?"}),
    "GET /api/talks": RoutePolicy(NAMED),
    "GET /api/suppliers/{supplier_id}/talks": RoutePolicy(MEMBERS),
    "GET /api/talks/{talk_id}": RoutePolicy(SELLERS | {"user"}, OPEN_TALKERS),
    "POST /api/talks/{talk_id}/messages": RoutePolicy(SELLERS | {"user"}, OPEN_TALKERS, json={"body": "Halo"}),
    "POST /api/talks/{talk_id}/pictures": RoutePolicy(SELLERS | {"user"}, OPEN_TALKERS, files={"file": PICTURE}),
    "PUT /api/talks/{talk_id}/read": RoutePolicy(SELLERS | {"user"}, OPEN_TALKERS, json={"number": 1}),
    "POST /api/talks/{talk_id}/draft": RoutePolicy(SELLERS, SELLERS | {"anonymous"}),
    "POST /api/talks/{talk_id}/messages/{number}/report": RoutePolicy(
        SELLERS, SELLERS | {"anonymous"}, json={"reason": "Rude."}, names={"number": "message_number"}
    ),
    "GET /api/admin/reported-messages": same_in_open_mode(ADMIN),
    "PUT /api/admin/reported-messages/{talk_id}/{number}": same_in_open_mode(
        ADMIN, json={"status": "kept"}, names={"number": "message_number"}
    ),
    # How a shop and an order are paid. A callback is believed for its signature, and nobody here has one.
    "GET /api/suppliers/{supplier_id}/payment-methods": RoutePolicy(OWNERS),
    "PUT /api/suppliers/{supplier_id}/payment-methods": RoutePolicy(OWNERS, json={"cash": True}),
    "POST /api/suppliers/{supplier_id}/payment-methods/qris": RoutePolicy(OWNERS, files={"file": QRIS}),
    "POST /api/orders/{order_id}/payment": RoutePolicy(AUTHOR, AUTHOR | {"anonymous"}, names=PAID_ORDER),
    "GET /api/orders/{order_id}/payment": RoutePolicy(MEMBERS | HOLDERS, names=PAID_ORDER),
    "POST /api/orders/{order_id}/refunds": RoutePolicy(
        MEMBERS, MEMBERS | {"anonymous"}, json={"amount": 1000, "reason": "Rusak"}, names=PAID_ORDER
    ),
    "POST /api/payments/callbacks/{provider}/{supplier_id}": same_in_open_mode(
        frozenset(), json={"order_id": "{paid_order_id}"}, names={"provider": "provider"}, anonymous_status=403
    ),
    "POST /api/products/{product_id}/promotions": RoutePolicy(MEMBERS, json={"price": 900, "ends_at": "{tomorrow}"}),
    "GET /api/suppliers/{supplier_id}/promotions": RoutePolicy(MEMBERS),
    "POST /api/promotions/{promotion_id}/end": RoutePolicy(MEMBERS),
    # What users want to hear, for them alone
    "POST /api/products/{product_id}/alerts": same_in_open_mode(USERS, json={"kind": "fall"}),
    "GET /api/alerts": same_in_open_mode(USERS),
    "DELETE /api/alerts/{alert_id}": same_in_open_mode(AUTHOR),
    "POST /api/saved-searches": same_in_open_mode(USERS, params={"q": "kipas"}, json={"name": "Kipas"}),
    "GET /api/saved-searches": same_in_open_mode(USERS),
    "PUT /api/saved-searches/{search_id}": same_in_open_mode(AUTHOR, json={"name": "Kipas"}),
    "DELETE /api/saved-searches/{search_id}": same_in_open_mode(AUTHOR),
    # What is said of them: nobody praises their own
    "GET /api/products/{product_id}/reviews": RoutePolicy(EVERYBODY),
    "POST /api/products/{product_id}/reviews": same_in_open_mode(USERS - {"editor", "owner"}, json={"rating": 5}),
    "PUT /api/reviews/{review_id}": same_in_open_mode(AUTHOR, json={"rating": 1}),
    "DELETE /api/reviews/{review_id}": same_in_open_mode(AUTHOR),
    "GET /api/suppliers/{supplier_id}/reviews": RoutePolicy(EVERYBODY),
    "PUT /api/reviews/{review_id}/answer": RoutePolicy(MEMBERS, EVERYBODY - AUTHOR, json={"body": "Terima kasih"}),
    "DELETE /api/reviews/{review_id}/answer": RoutePolicy(MEMBERS, EVERYBODY - AUTHOR),
    "PUT /api/reviews/{review_id}/status": same_in_open_mode(ADMIN, json={"status": "hidden"}),
    # Words
    "GET /api/categories": RoutePolicy(EVERYBODY),
    "POST /api/categories": same_in_open_mode(
        ADMIN, json={"slug": "new-{kind}-{number}", "name_id": "a", "name_en": "b"}
    ),
    "PUT /api/categories/{slug}": same_in_open_mode(ADMIN, json={"name_en": "Fans"}),
    "DELETE /api/categories/{slug}": same_in_open_mode(ADMIN),
    "GET /api/synonyms": same_in_open_mode(ADMIN),
    "POST /api/synonyms": same_in_open_mode(ADMIN, json={"term": "new{number}", "means": "kipas"}),
    "DELETE /api/synonyms/{term}": same_in_open_mode(ADMIN),
    # Stock
    "POST /api/products/{product_id}/reservations": RoutePolicy(NAMED, json={"quantity": 1}),
    "GET /api/reservations": RoutePolicy(NAMED),
    "GET /api/reservations/{reservation_id}": RoutePolicy(HOLDERS | MEMBERS),
    "GET /api/notices/stream": RoutePolicy(NAMED, params={"once": "true"}),
    "GET /api/notices/preferences": same_in_open_mode(NAMED),
    "PUT /api/notices/preferences": same_in_open_mode(NAMED, json={"mail": ["orders"]}),
    "POST /api/notices/unsubscribe": RoutePolicy(EVERYBODY, params={"token": "{unsubscribe_token}"}),
    # Webhooks and mails outlive the open mode, too.
    "GET /api/suppliers/{supplier_id}/notices/preferences": same_in_open_mode(OWNERS - ADMIN),
    "PUT /api/suppliers/{supplier_id}/notices/preferences": same_in_open_mode(OWNERS - ADMIN, json={"mail": []}),
    "GET /api/suppliers/{supplier_id}/webhooks": same_in_open_mode(OWNERS - ADMIN),
    "POST /api/suppliers/{supplier_id}/webhooks": same_in_open_mode(
        OWNERS - ADMIN, json={"url": "https://till.world.example/", "groups": ["orders"]}
    ),
    "PUT /api/suppliers/{supplier_id}/webhooks/{webhook_id}": same_in_open_mode(
        OWNERS - ADMIN, json={"groups": ["stock"]}
    ),
    "DELETE /api/suppliers/{supplier_id}/webhooks/{webhook_id}": same_in_open_mode(OWNERS - ADMIN),
    "POST /api/suppliers/{supplier_id}/webhooks/{webhook_id}/secret": same_in_open_mode(OWNERS - ADMIN),
    "POST /api/suppliers/{supplier_id}/webhooks/{webhook_id}/test": same_in_open_mode(OWNERS - ADMIN),
    "GET /api/suppliers/{supplier_id}/webhooks/{webhook_id}/deliveries": same_in_open_mode(OWNERS - ADMIN),
    "POST /api/suppliers/{supplier_id}/webhooks/{webhook_id}/deliveries/retry": same_in_open_mode(
        OWNERS - ADMIN, json={"ids": [1]}
    ),
    # Without a token, an open server takes everybody for the shop, too; a buyer with one is the buyer.
    "POST /api/reservations/{reservation_id}/commit": RoutePolicy(MEMBERS, MEMBERS | {"anonymous"}),
    "POST /api/reservations/{reservation_id}/accept": RoutePolicy(MEMBERS, MEMBERS | {"anonymous"}),
    "POST /api/reservations/{reservation_id}/refuse": RoutePolicy(MEMBERS, MEMBERS | {"anonymous"}),
    "POST /api/reservations/{reservation_id}/release": RoutePolicy(HOLDERS | MEMBERS),
    "GET /api/suppliers/{supplier_id}/reservations": RoutePolicy(MEMBERS),
    "GET /api/suppliers/{supplier_id}/stock-movements": RoutePolicy(MEMBERS),
    "POST /api/products/{product_id}/stock-corrections": RoutePolicy(MEMBERS, json={"delta": 1, "reason": "Found"}),
    "GET /api/products/{product_id}/stock": RoutePolicy(MEMBERS),
    "POST /api/products/{product_id}/stock-transfers": RoutePolicy(
        MEMBERS, json={"quantity": 1, "from_branch_id": 0, "to_branch_id": "{branch_id}"}
    ),
    # Orders: nobody orders of themself; a buyer moves as a buyer, members as the shop
    "POST /api/orders": RoutePolicy(
        NAMED - {"supplier", "editor", "owner"},
        EVERYBODY - {"supplier", "editor", "owner"},
        json={"items": [{"product_id": "{other_product_id}", "quantity": 1}]},
    ),
    "GET /api/orders": RoutePolicy(NAMED),
    "GET /api/orders/states": RoutePolicy(EVERYBODY),
    "GET /api/orders/{order_id}": RoutePolicy(HOLDERS | MEMBERS),
    "POST /api/orders/{order_id}/place": RoutePolicy(AUTHOR, AUTHOR | {"anonymous"}, json={"delivery": "pickup"}),
    "POST /api/orders/{order_id}/accept": RoutePolicy(MEMBERS, MEMBERS | {"anonymous"}),
    "POST /api/orders/{order_id}/refuse": RoutePolicy(MEMBERS, MEMBERS | {"anonymous"}, json={"reason": "Habis"}),
    "POST /api/orders/{order_id}/cancel": RoutePolicy(
        HOLDERS | MEMBERS, HOLDERS | MEMBERS | {"anonymous"}, json={"reason": "Batal"}
    ),
    "POST /api/orders/{order_id}/paid": RoutePolicy(MEMBERS, MEMBERS | {"anonymous"}),
    "POST /api/orders/{order_id}/hand-over": RoutePolicy(MEMBERS, MEMBERS | {"anonymous"}),
    "POST /api/orders/{order_id}/ship": RoutePolicy(MEMBERS, MEMBERS | {"anonymous"}),
    "POST /api/orders/{order_id}/receive": RoutePolicy(AUTHOR, AUTHOR | {"anonymous"}),
    "POST /api/orders/{order_id}/return": RoutePolicy(
        MEMBERS, MEMBERS | {"anonymous"}, json={"reason": "Rusak", "lines": [{"position": 1, "quantity": 1}]}
    ),
    "POST /api/orders/{order_id}/return-request": RoutePolicy(
        AUTHOR, AUTHOR | {"anonymous"}, json={"reason": "Kekecilan"}
    ),
    "POST /api/orders/{order_id}/return-refusal": RoutePolicy(
        MEMBERS, MEMBERS | {"anonymous"}, json={"reason": "Sudah dipakai"}
    ),
    "GET /api/suppliers/{supplier_id}/orders": RoutePolicy(MEMBERS),
    "GET /api/suppliers/{supplier_id}/order-rules": RoutePolicy(MEMBERS),
    "PUT /api/suppliers/{supplier_id}/order-rules": RoutePolicy(OWNERS, json={"takes_orders": True}),
    "GET /api/suppliers/{supplier_id}/order-quote": RoutePolicy(EVERYBODY),
    # The assistant: for the user alone, in open mode, too. Without a token a request may name one there (`user_id`).
    "POST /api/chat/search": same_in_open_mode(HOLDERS, json={"query": "kipas"}),  # who has AI access
    "GET /api/chat/stream/{session_id}": same_in_open_mode(frozenset()),  # nothing is recorded of this conversation
    "POST /api/chat/cancel/{session_id}": same_in_open_mode(USERS),
    "GET /api/chat/conversations": same_in_open_mode(USERS),
    "DELETE /api/chat/conversations": same_in_open_mode(USERS),
    "GET /api/chat/conversations/{session_id}": same_in_open_mode(AUTHOR, names={"session_id": "chat_session_id"}),
    "DELETE /api/chat/conversations/{session_id}": same_in_open_mode(AUTHOR, names={"session_id": "chat_session_id"}),
    "GET /api/users/me/preferences": same_in_open_mode(USERS),
    "PUT /api/users/me/preferences": same_in_open_mode(USERS, json={"brands": ["Asus"]}),
    "DELETE /api/users/me/preferences": same_in_open_mode(USERS),
    # What happened
    "GET /api/audit": same_in_open_mode(ADMIN),
    "GET /api/admin/flagged-products": same_in_open_mode(ADMIN),
    "DELETE /api/admin/flagged-products/{product_id}": same_in_open_mode(ADMIN),
    "GET /api/admin/flagged-answers": same_in_open_mode(ADMIN),
    "DELETE /api/admin/flagged-answers/{review_id}": same_in_open_mode(ADMIN),
    "GET /api/admin/overview": same_in_open_mode(ADMIN),
    "GET /api/admin/reviews": same_in_open_mode(ADMIN),
    "POST /api/admin/search-preview": same_in_open_mode(
        ADMIN, json={"change": {"action": "delete_synonym", "term": "{term}"}}
    ),
    "GET /api/admin/data-requests": same_in_open_mode(ADMIN),
    "POST /api/admin/data-requests": same_in_open_mode(
        ADMIN, json={"user_id": "{user_id}", "kind": "export", "reason": "A letter"}
    ),
    "POST /api/admin/data-requests/{request_id}/export": same_in_open_mode(ADMIN, names={"request_id": "export_id"}),
    "POST /api/admin/data-requests/{request_id}/erase": same_in_open_mode(ADMIN, names={"request_id": "erasure_id"}),
    "POST /api/admin/data-requests/{request_id}/refuse": same_in_open_mode(
        ADMIN, json={"reason": "Nobody knows who wrote"}, names={"request_id": "erasure_id"}
    ),
}


def routes_of_the_app() -> set[str]:
    paths = create_app(settings_with()).openapi()["paths"]
    return {
        f"{method.upper()} {path}" for path, methods in paths.items() if path.startswith("/api") for method in methods
    }


def test_every_route_is_in_the_table() -> None:
    assert routes_of_the_app() == TABLE.keys()


@pytest.mark.one_database
@pytest.mark.parametrize("route", TABLE)
def test_required_mode_allows_only_the_kinds_of_the_table(
    route: str, internet: httpx2.Client, required_market: Market
) -> None:
    assert unexpected_answers(internet, required_market, route, TABLE[route].required_mode) == {}


@pytest.mark.one_database
@pytest.mark.parametrize("route", TABLE)
def test_open_mode_allows_only_the_kinds_of_the_table(route: str, laptop: httpx2.Client, open_market: Market) -> None:
    assert unexpected_answers(laptop, open_market, route, TABLE[route].open_mode) == {}


def test_only_owners_and_admins_see_private_fields(
    internet: httpx2.Client, laptop: httpx2.Client, required_market: Market, open_market: Market
) -> None:
    viewers = {"/api/users/{own_id}": HOLDERS, "/api/suppliers/{supplier_id}": OWNERS}
    for client, market, is_open in ((internet, required_market, False), (laptop, open_market, True)):
        world = new_world(market)
        for path, kinds in viewers.items():
            for kind in KINDS:
                seen = client.get(path.format(**world.names), headers=world.headers(kind)).json()
                assert (seen.get("email") is not None) == (is_open or kind in kinds), (path, kind, is_open)


def unexpected_answers(
    client: httpx2.Client, market: Market, route: str, allowed: frozenset[str]
) -> dict[str, tuple[int, str]]:
    """Answers by kind of caller that differ from the table. A request that may write leaves a new world to the next."""
    writers = frozenset() if route.startswith("GET") else allowed
    worlds, found = new_worlds(market, len(writers | {KINDS[-1]})), {}
    for kind in KINDS:
        answer = send(client, route, worlds[-1], kind)
        if kind in writers:
            worlds.pop()
        refusal = TABLE[route].anonymous_status if kind == "anonymous" else 0
        if not is_as_expected(answer.status_code, refusal, kind in allowed, TABLE[route].allowed_status):
            found[kind] = answer.status_code, answer.text[:200]
    return found


def is_as_expected(status: int, refusal: int, allowed: bool, allowed_status: int = 200) -> bool:
    """An allowed request may still get a 409, such as the last admin who deletes the account, or a 501 without a
    model."""
    if allowed:
        return status in (allowed_status, 409, 501)
    return status == refusal if refusal else status in (403, 404)


def send(client: httpx2.Client, route: str, world: World, kind: str) -> httpx2.Response:
    method, _, path = route.partition(" ")
    row, names = TABLE[route], {**world.names, "kind": kind.replace(" ", "-"), "refresh_token": world.refresh_token}
    names |= {name: names[other] for name, other in row.names.items()}
    return client.request(
        method,
        path.format(**names),
        json=filled(row.json, names),
        params=filled(row.params, names),
        content=row.content,
        files=row.files,
        headers=world.headers(kind),
    )


def filled(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: filled(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, names) for one in value]
    return value.format(**names) if isinstance(value, str) else value
