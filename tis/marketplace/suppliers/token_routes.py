"""Tokens for the programs of a shop: a till, a script that sends stock.

For owners, not for admins, and not for everybody in open mode: a token outlives that mode.
"""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field
from sqlalchemy.orm import Session

from tis.marketplace.auth.accounts import supplier_account
from tis.marketplace.auth.shop_tokens import list_shop_tokens, new_shop_token, revoke_shop_token
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.docs import responses, schema_example
from tis.marketplace.kit.fields import Id, ShortName
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.responses import Message, no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute, StrictBody
from tis.marketplace.policy import TokenScope, require_account_owner
from tis.marketplace.suppliers.schemas import OWNER_REQUIRED
from tis.marketplace.suppliers.service import lock_supplier_for_update, public_supplier
from tis.marketplace.tables import ShopToken

router = APIRouter(
    prefix="/suppliers/{supplier_id}/tokens",
    tags=["suppliers"],
    route_class=CheckedRoute,
    dependencies=[Depends(no_store)],
)

_TOKEN_EXAMPLE = {
    "id": 5,
    "name": "Till 1",
    "scopes": ["read", "stock"],
    "created_at": "2026-11-21T03:00:00Z",
    "expires_at": "2027-02-19T03:00:00Z",
    "last_used_at": None,
}
_NEW_EXAMPLE = {**_TOKEN_EXAMPLE, "token": "tisshop_Gm3..."}


class NewShopToken(StrictBody):
    model_config = schema_example({"name": "Till 1", "scopes": ["read", "stock"], "days": 90})

    name: ShortName
    scopes: list[TokenScope] = Field(
        min_length=1,
        max_length=3,
        description="`read`: the shop, its goods, reservations without contact data, ledger and numbers; `stock`: "
        "correct stock, accept, refuse and sell what is held; `goods`: create, change and import products",
    )
    days: Annotated[int, Field(ge=1, le=366, strict=True, description="until it expires")] = 90


class ShopTokenView(BaseModel):
    id: int
    name: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None  # to a minute


class CreatedShopToken(ShopTokenView):
    token: str  # shown this once


@router.post(
    "", responses=responses(_NEW_EXAMPLE, OWNER_REQUIRED, {409: "A shop has at most 20 tokens: revoke one first."})
)
def create(context: ContextDep, supplier_id: Id, body: NewShopToken) -> CreatedShopToken:
    """Create a token for a program of the shop, for its owners. The answer shows it once.

    Send it as `Authorization: Bearer <token>`. It does what its scopes name, and nothing else.
    """
    with context.writing() as (session, principal):
        lock_supplier_for_update(session, principal, supplier_id)
        _require_owner(session, principal, supplier_id)
        row, token = new_shop_token(session, principal, supplier_id, body.name, body.scopes, body.days)
        return CreatedShopToken(**vars(_view(row)), token=token)


@router.get("", responses=responses([_TOKEN_EXAMPLE], OWNER_REQUIRED))
def listed(context: ContextDep, supplier_id: Id) -> list[ShopTokenView]:
    """List the tokens of a shop, newest first, for its owners. Those that expired stay in the list for 30 days."""
    with context.reading() as (session, principal):
        _require_owner(session, principal, supplier_id)
        return [_view(row) for row in list_shop_tokens(session, supplier_id)]


@router.delete("/{token_id}", responses=responses({"detail": "Revoked."}, {**OWNER_REQUIRED, 404: "Token not found"}))
def revoke(context: ContextDep, supplier_id: Id, token_id: Id) -> Message:
    """Revoke a token, for the owners of the shop. It is refused from then on."""
    with context.writing() as (session, principal):
        lock_supplier_for_update(session, principal, supplier_id)
        _require_owner(session, principal, supplier_id)
        revoke_shop_token(session, principal, supplier_id, token_id)
    return Message(detail="Revoked.")


def _require_owner(session: Session, principal: Principal, supplier_id: int) -> None:
    public_supplier(session, principal, supplier_id)
    require_account_owner(principal, supplier_account(supplier_id))


def _view(row: ShopToken) -> ShopTokenView:
    return ShopTokenView(
        id=row.id,
        name=row.name,
        scopes=row.scopes.split(),
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
    )
