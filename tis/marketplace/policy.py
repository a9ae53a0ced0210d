"""Authorization: what a principal may do and see. `tests/marketplace/test_policy.py` has the table of all routes."""

from datetime import datetime
from typing import Literal

from tis.errors import Forbidden, NotFound, Unauthenticated
from tis.marketplace.columns import now
from tis.marketplace.kit.principal import Principal

TOKEN_NEEDED = "This needs an access token."
HOW_TO_SIGN_IN = (
    "`POST /api/auth/login` and every registration return an `access_token`: "
    "send it as `Authorization: Bearer <access_token>`."
)
TokenScope = Literal["read", "stock", "goods"]
OrderRole = Literal["buyer", "shop"]
# What a program may call with a token of a shop, by the path below `/api`, and the scope that it needs there.
# All other routes refuse it.
SCOPE_OF_ROUTE: dict[str, TokenScope] = {
    "GET /suppliers/{supplier_id}": "read",
    "GET /suppliers/{supplier_id}/branches": "read",
    "GET /suppliers/{supplier_id}/numbers": "read",
    "GET /suppliers/{supplier_id}/reservations": "read",
    "GET /suppliers/{supplier_id}/reviews": "read",
    "GET /suppliers/{supplier_id}/stock-movements": "read",
    "GET /suppliers/{supplier_id}/products": "read",
    "GET /suppliers/{supplier_id}/promotions": "read",
    "GET /suppliers/{supplier_id}/products/deleted": "read",
    "GET /suppliers/{supplier_id}/products/export": "read",
    "GET /suppliers/{supplier_id}/products/imports": "read",
    "GET /suppliers/{supplier_id}/products/imports/{import_id}": "read",
    "GET /suppliers/{supplier_id}/orders": "read",
    "GET /orders/{order_id}": "read",
    "GET /categories": "read",
    "GET /products": "read",
    "GET /products/{product_id}": "read",
    "GET /products/{product_id}/stock": "read",
    "GET /products/{product_id}/pictures": "read",
    "GET /products/{product_id}/price-history": "read",
    "GET /products/{product_id}/reviews": "read",
    "GET /product-groups/{group_id}": "read",
    "GET /suppliers/{supplier_id}/product-groups": "read",
    "GET /reservations/{reservation_id}": "read",
    "POST /products/{product_id}/stock-corrections": "stock",
    "POST /products/{product_id}/stock-transfers": "stock",
    # Not `paid`, `cancel` and the returns: what a leaked token says about money, a person has to pay.
    "POST /orders/{order_id}/accept": "stock",
    "POST /orders/{order_id}/refuse": "stock",
    "POST /orders/{order_id}/hand-over": "stock",
    "POST /orders/{order_id}/ship": "stock",
    "POST /reservations/{reservation_id}/accept": "stock",
    "POST /reservations/{reservation_id}/commit": "stock",
    "POST /reservations/{reservation_id}/refuse": "stock",
    "POST /reservations/{reservation_id}/release": "stock",
    "POST /suppliers/{supplier_id}/products": "goods",
    "POST /suppliers/{supplier_id}/products/bulk": "goods",
    "POST /suppliers/{supplier_id}/products/import": "goods",
    "POST /suppliers/{supplier_id}/product-groups": "goods",
    "PUT /product-groups/{group_id}": "goods",
    "DELETE /product-groups/{group_id}": "goods",
    "POST /product-groups/{group_id}/variants": "goods",
    "DELETE /product-groups/{group_id}/variants/{product_id}": "goods",
    "PUT /products/{product_id}": "goods",
    "DELETE /products/{product_id}": "goods",
    "POST /products/{product_id}/restore": "goods",
    "POST /products/{product_id}/promotions": "goods",
    "POST /promotions/{promotion_id}/end": "goods",
    "POST /products/{product_id}/pictures": "goods",
    "PUT /products/{product_id}/pictures": "goods",
    "PUT /products/{product_id}/pictures/{picture_id}": "goods",
    "DELETE /products/{product_id}/pictures/{picture_id}": "goods",
}
OWN_HOLD = "You hold this yourself: another member of the shop answers it, and you can release it."
ROLE_REFUSED = "Only an admin gives roles, with `PUT /api/users/{user_id}/grants`: leave `role` out."


def require_supplier(principal: Principal, supplier_id: int) -> None:
    """To change products, prices and stock of a supplier, and to import them."""
    if not (principal.is_open or principal.is_admin or supplier_id in principal.supplier_ids):
        raise _refusal(principal, "This belongs to another supplier.")


def require_owner(principal: Principal, supplier_id: int) -> None:
    """To change the supplier itself: its address and members, and to close it."""
    if not (principal.is_open or principal.is_admin or supplier_id in principal.owned_ids):
        raise _refusal(principal, "Only an owner of this supplier may do that.")


def require_admin(principal: Principal) -> None:
    """In open mode, too: what an admin does stays in force when the open mode is off again."""
    if not principal.is_admin:
        raise _refusal(principal, "Only an admin may do that.")


def require_user(principal: Principal) -> int:
    if principal.user_id is None:
        raise _refusal(principal, "Only a user may do that, not a supplier.")
    return principal.user_id


def require_own_user(principal: Principal, user_id: int | None) -> int:
    """The user of routes about the own data. In open mode a request without a token names one, by `user_id`."""
    if principal.is_open and principal.account is None and user_id is not None:
        return user_id
    own_id = require_user(principal)
    if user_id not in (None, own_id):
        raise NotFound("User not found")
    return own_id


def require_somebody(principal: Principal) -> None:
    if principal.account is None and not principal.is_open:
        raise Unauthenticated(TOKEN_NEEDED)


def require_account(principal: Principal) -> str:
    """For routes about the own account. In open mode, too: without a token there is none."""
    if principal.account is None:
        raise _refusal(principal, "")
    return principal.account


def require_account_owner(principal: Principal, account: str) -> None:
    """For the account itself, and for the owners of a supplier. In open mode, too: e-mails and copies outlive it."""
    is_owned = account.startswith("supplier:") and int(account.partition(":")[2]) in principal.owned_ids
    if account != principal.account and not is_owned:
        raise _refusal(principal, "Only an owner of this supplier may do that.")


def require_holder(principal: Principal, actor: str | None, supplier_id: int | None = None) -> None:
    """For a reservation: its buyer, or a member of the supplier. For others it does not exist."""
    is_own = (actor is not None and actor == principal.account) or supplier_id in principal.supplier_ids
    if not (principal.is_open or principal.is_admin or is_own):
        require_somebody(principal)
        raise NotFound("Reservation not found")


def require_seller(
    principal: Principal,
    supplier_id: int,
    buyer: str | None,
    reason: str = "Only the shop sells what is held. Who holds it can release it.",
) -> None:
    """To sell reserved stock, and to accept or refuse a reservation of it. In open mode a request without a token
    counts as the supplier's.

    As with orders, nobody answers the own reservation, nor do programs with a token that they made: another member
    does. The shop's own account sells what it put aside.
    """
    is_unauthenticated = principal.is_open and principal.account is None
    if not (is_unauthenticated or principal.is_admin or supplier_id in principal.supplier_ids):
        raise _refusal(principal, reason)
    is_own = buyer is not None and buyer in (principal.account, principal.token_of)
    if is_own and buyer != f"supplier:{supplier_id}":
        raise Forbidden(OWN_HOLD)


def sees_buyer(principal: Principal, accepted_at: datetime | None, status: str) -> bool:
    """For members of the shop: the full name, e-mail and phone of who reserved, once they accepted, and as long as
    the units are held or sold. Not for their programs, which need it least and lose their tokens most."""
    if principal.is_program:
        return False
    is_accepted = accepted_at is not None and status in ("held", "committed")
    return principal.is_open or principal.is_admin or is_accepted


def order_roles(principal: Principal, buyer: str | None, supplier_id: int, *, is_placed: bool) -> set[OrderRole]:
    """As whom the caller may move an order. In open mode, who has no token may be both. For others there is none.

    A draft is the buyer's alone. Who works for the shop moves an own order as its buyer only, as do the programs with
    a token that the buyer made: another member answers it.
    """
    is_anybody = principal.is_open and principal.account is None
    is_bought = buyer is not None and buyer == principal.account
    is_of_shop = is_placed and (principal.is_admin or supplier_id in principal.supplier_ids)
    roles: set[OrderRole] = set()
    if is_anybody or is_bought:
        roles.add("buyer")
    if is_anybody or (is_of_shop and (buyer is None or buyer not in (principal.account, principal.token_of))):
        roles.add("shop")
    if not (roles or is_of_shop or principal.is_open or principal.is_admin):
        require_somebody(principal)
        raise NotFound("Order not found")
    return roles


def talk_sides(principal: Principal, buyer: str | None, supplier_id: int) -> set[OrderRole]:
    """As whom the caller reads and writes in a talk. For others there is none, nor for admins and programs."""
    if principal.is_open and principal.account is None:  # a talk of nobody is the own one
        return {"buyer"} if buyer is None else {"shop"}
    sides: set[OrderRole] = set()
    if buyer is not None and buyer == principal.account:
        sides.add("buyer")
    if supplier_id in principal.supplier_ids:
        sides.add("shop")
    if not sides:
        require_somebody(principal)
        raise NotFound("Talk not found")
    return sides


def sees_order_contact(
    principal: Principal, supplier_id: int, accepted_at: datetime | None, needed_until: datetime | None
) -> bool:
    """For members of the shop: address, name, e-mail and phone of a buyer, from acceptance on, while the shop needs
    them (None: no end is in sight). Not for their programs, as in `sees_buyer`, and not for admins."""
    if principal.is_program or accepted_at is None:
        return principal.is_open
    is_needed = needed_until is None or now() < needed_until
    return principal.is_open or (supplier_id in principal.supplier_ids and is_needed)


def sees_user(principal: Principal, user_id: int) -> bool:
    """Whether the full name, e-mail, phone, place and rights of a user are visible."""
    return principal.is_open or principal.is_admin or principal.user_id == user_id


def require_user_visible(principal: Principal, user_id: int) -> None:
    """For strangers there are no users, whatever their number."""
    if not sees_user(principal, user_id):
        raise NotFound("User not found")


def sees_supplier(principal: Principal, supplier_id: int) -> bool:
    """Whether the person behind a supplier, its e-mail, phone and exact address are visible."""
    return principal.is_open or principal.is_admin or supplier_id in principal.owned_ids


def sees_hidden_goods(principal: Principal, supplier_id: int) -> bool:
    """Whether deleted products, and products of a closed or suspended supplier, are visible."""
    return principal.is_admin or supplier_id in principal.supplier_ids


def require_no_role(role: str | None) -> None:
    """For registrations and for changes by non-admins. In open mode, too: a role stays when the open mode is off."""
    if role not in (None, "user"):
        raise Forbidden(ROLE_REFUSED)


def may_grant(principal: Principal) -> bool:
    """To grant AI access and ratings."""
    return principal.is_open or principal.is_admin


def _refusal(principal: Principal, reason: str) -> Unauthenticated | Forbidden:
    if principal.account is None:
        return Unauthenticated(TOKEN_NEEDED)
    return Forbidden(reason)
