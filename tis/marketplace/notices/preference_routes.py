"""What comes by mail and when: of the own account, of a shop for its owners, and by the link in a mail."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session

from tis.errors import BadRequest
from tis.marketplace.auth.accounts import account_holder, lock_account, supplier_account
from tis.marketplace.auth.schemas import TOKEN_REQUIRED
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.docs import responses
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.notice_preferences import DEFAULT_ZONE, zones_by_place
from tis.marketplace.kit.responses import Message, no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.notices.preferences import save_preferences, stored_preferences
from tis.marketplace.notices.schemas import (
    SHOWN_PREFERENCES_EXAMPLE,
    PreferencesBody,
    PreferencesShown,
    QuietHours,
)
from tis.marketplace.notices.unsubscribing import PATH, unsubscribe
from tis.marketplace.policy import require_account, require_account_owner
from tis.marketplace.suppliers.schemas import OWNER_REQUIRED
from tis.marketplace.suppliers.service import lock_supplier_for_update, public_supplier

router = APIRouter(tags=["notices"], route_class=CheckedRoute, dependencies=[Depends(no_store)])
# Mail programs add parameters to the links that they show.
link_router = APIRouter(tags=["notices"], dependencies=[Depends(no_store)])
_NOT_A_SHOP = {400: "`low_stock_below` is of a shop."}
_VOID = {400: "This link is not complete, or was made for another address."}
_OFF = "Such mails are off."
Token = Annotated[str, Query(min_length=1, max_length=500)]


@router.get("/notices/preferences", responses=responses(SHOWN_PREFERENCES_EXAMPLE, TOKEN_REQUIRED))
def read_own(context: ContextDep) -> PreferencesShown:
    """Read what comes to you by mail, and when."""
    with context.reading() as (session, principal):
        return _shown(session, require_account(principal))


@router.put("/notices/preferences", responses=responses(SHOWN_PREFERENCES_EXAMPLE, TOKEN_REQUIRED, _NOT_A_SHOP))
def replace_own(context: ContextDep, body: PreferencesBody) -> PreferencesShown:
    """Replace what comes to you by mail, and when. Mails that wait follow it, too."""
    with context.writing() as (session, principal):
        account = require_account(principal)
        lock_account(session, account)
        if body.low_stock_below is not None and not account.startswith("supplier:"):
            raise BadRequest(_NOT_A_SHOP[400])
        return _saved(session, account, body)


@router.get(
    "/suppliers/{supplier_id}/notices/preferences", responses=responses(SHOWN_PREFERENCES_EXAMPLE, OWNER_REQUIRED)
)
def read_of_shop(context: ContextDep, supplier_id: Id) -> PreferencesShown:
    """Read what comes to the e-mail of a shop, for its owners. Its members have preferences of their own."""
    with context.reading() as (session, principal):
        public_supplier(session, principal, supplier_id)
        require_account_owner(principal, supplier_account(supplier_id))
        return _shown(session, supplier_account(supplier_id))


@router.put(
    "/suppliers/{supplier_id}/notices/preferences", responses=responses(SHOWN_PREFERENCES_EXAMPLE, OWNER_REQUIRED)
)
def replace_of_shop(context: ContextDep, supplier_id: Id, body: PreferencesBody) -> PreferencesShown:
    """Replace what comes to the e-mail of a shop, and when its stock counts as low, for its owners."""
    with context.writing() as (session, principal):
        lock_supplier_for_update(session, principal, supplier_id)
        require_account_owner(principal, supplier_account(supplier_id))
        return _saved(session, supplier_account(supplier_id), body)


@link_router.get(PATH.removeprefix("/api"), include_in_schema=False)
async def ask_to_unsubscribe(token: Token) -> RedirectResponse:
    """Leads to a page with a button: mail scanners follow links, and must not turn anything off."""
    headers = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    return RedirectResponse(f"../../account/link#unsubscribe={quote(token, safe='')}", 302, headers)


@link_router.post(PATH.removeprefix("/api"), responses=responses({"detail": _OFF}, _VOID))
def unsubscribe_by_link(context: ContextDep, token: Token) -> Message:
    """Turn off by mail what the mail with this link was about. The link is the permission (RFC 8058); idempotent."""
    with context.market.writing() as session:
        unsubscribe(session, context.market.signer, token)
    return Message(detail=_OFF)


def _saved(session: Session, account: str, body: PreferencesBody) -> PreferencesShown:
    values = body.model_dump(exclude={"quiet_hours"})
    quiet = body.quiet_hours
    values |= {"quiet_from": quiet and quiet.begin, "quiet_until": quiet and quiet.until}
    save_preferences(session, account, {**values, "mail": sorted(set(body.mail))})
    return _shown(session, account)


def _shown(session: Session, account: str) -> PreferencesShown:
    row, holder = stored_preferences(session, account), account_holder(session, account)
    is_quiet = row.quiet_from is not None and row.quiet_until is not None
    return PreferencesShown.model_validate(
        {
            **{name: getattr(row, name) for name in PreferencesShown.model_fields if hasattr(row, name)},
            "quiet_hours": QuietHours(begin=row.quiet_from, until=row.quiet_until) if is_quiet else None,
            "time_zone_in_use": row.time_zone or zones_by_place(session, [account]).get(account, DEFAULT_ZONE),
            "email_confirmed": holder is not None and holder.email_confirmed_at is not None,
        }
    )
