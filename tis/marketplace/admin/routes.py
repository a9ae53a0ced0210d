"""For admins: the audit log, and products whose texts read like instructions to a language model.

`products/writing.py` flags products.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy import select, tuple_, update
from sqlalchemy.orm import Session, joinedload

from tis.errors import NotFound
from tis.marketplace.auth.schemas import ADMIN_REQUIRED
from tis.marketplace.context import ContextDep
from tis.marketplace.kit import audit
from tis.marketplace.kit.docs import responses
from tis.marketplace.kit.feed_marks import mark_products
from tis.marketplace.kit.fields import Id, Moment
from tis.marketplace.kit.paging import Before, Limit, page_response
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.responses import Message
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.policy import require_admin
from tis.marketplace.tables import AuditEntry, Product

router = APIRouter(tags=["admin"], route_class=CheckedRoute)

# PostgreSQL refuses NUL in text.
_Name = Annotated[str | None, Query(max_length=100, pattern=r"^[\x20-\x7e]*$")]
_Bound = Annotated[Moment | None, Query(description="with its offset: `2026-11-28T00:00:00+07:00`")]
_AUDIT_ENTRY: dict[str, Any] = {
    "id": 1,
    "at": "2026-11-21T03:00:00Z",
    "actor": "supplier:1",
    "action": "change",
    "entity": "product",
    "entity_id": "1",
    "changes": {"price": [15999000, 14999000]},
    "request_id": "req-5f0c8d8e2b0f4e7c9d0a1b2c3d4e5f60",
}
_FLAGGED_PRODUCT: dict[str, Any] = {
    "product_id": 17,
    "name": "Kipas angin 12 inci",
    "supplier_id": 3,
    "business_name": "Tech Store Jakarta",
    "reason": "overrides instructions: ignore previous instructions",
    "updated_at": "2026-11-23T03:00:00Z",
}
_NO_PRODUCT = {404: "Product not found"}


class AuditView(BaseModel):
    id: int
    at: datetime
    actor: str | None
    action: str
    entity: str
    entity_id: str
    changes: dict[str, Any]
    request_id: str | None


@router.get(
    "/audit", response_model=list[AuditView], responses=responses([_AUDIT_ENTRY], {403: "Only an admin may do that."})
)
def list_audit_log(
    context: ContextDep,
    request: Request,
    entity: _Name = None,
    entity_id: _Name = None,
    actor: _Name = None,
    action: _Name = None,
    since: _Bound = None,
    until: _Bound = None,
    before: Before = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List who changed what and when, newest first, for admins."""
    filters = {"entity": entity, "entity_id": entity_id, "actor": actor, "action": action}
    with context.reading() as (session, principal):
        entries = _find_entries(
            session,
            principal,
            {name: value for name, value in filters.items() if value},
            (since, until),
            before,
            limit + 1,
        )
        return page_response(request, entries, limit, _audit_view, lambda entry: entry.id)


def _audit_view(entry: AuditEntry) -> AuditView:
    return AuditView.model_validate(entry, from_attributes=True)


def _find_entries(
    session: Session,
    principal: Principal,
    filters: dict[str, str],
    between: tuple[datetime | None, datetime | None],
    before: int | None,
    limit: int,
) -> Sequence[AuditEntry]:
    require_admin(principal)
    since, until = between
    # By time where one is asked for: the index has both. Entries of several servers may be a little out of order.
    order = (AuditEntry.id,) if since is None and until is None else (AuditEntry.at, AuditEntry.id)
    rows = select(AuditEntry).filter_by(**filters).order_by(*(column.desc() for column in order)).limit(limit)
    if since is not None:
        rows = rows.where(AuditEntry.at >= since)
    if until is not None:
        rows = rows.where(AuditEntry.at < until)
    if before is not None and len(order) == 1:
        rows = rows.where(AuditEntry.id < before)
    elif before is not None:
        last_at = select(AuditEntry.at).where(AuditEntry.id == before).scalar_subquery()
        rows = rows.where(tuple_(*order) < tuple_(last_at, before))
    return session.scalars(rows).all()


class FlaggedProductView(BaseModel):
    product_id: int
    name: str
    supplier_id: int
    business_name: str
    reason: str
    updated_at: datetime


@router.get(
    "/admin/flagged-products",
    response_model=list[FlaggedProductView],
    responses=responses([_FLAGGED_PRODUCT], ADMIN_REQUIRED),
)
def list_flagged_products(
    context: ContextDep, request: Request, before: Before = None, limit: Limit = 50
) -> JSONResponse:
    """List products whose texts read like instructions to a language model, newest first, for admins."""
    with context.reading() as (session, principal):
        flagged = _find_flagged(session, principal, before, limit + 1)
        return page_response(request, flagged, limit, _flagged_view, lambda product: product.id)


@router.delete(
    "/admin/flagged-products/{product_id}",
    responses=responses({"detail": "Cleared."}, {**ADMIN_REQUIRED, **_NO_PRODUCT}),
)
def clear_flag(context: ContextDep, product_id: Id) -> Message:
    """Clear the flag of a product, for admins. Idempotent; a change of its texts may flag it again."""
    with context.writing() as (session, principal):
        _clear(session, principal, product_id)
    return Message(detail="Cleared.")


def _find_flagged(session: Session, principal: Principal, before: int | None, limit: int) -> Sequence[Product]:
    require_admin(principal)
    rows = select(Product).where(Product.flagged_reason.is_not(None), Product.deleted_at.is_(None))
    if before is not None:
        rows = rows.where(Product.id < before)
    with_supplier = rows.options(joinedload(Product.supplier, innerjoin=True))
    return session.scalars(with_supplier.order_by(Product.id.desc()).limit(limit)).all()


def _clear(session: Session, principal: Principal, product_id: int) -> None:
    """Leaves `version` and `updated_at` alone: the shop changed nothing."""
    require_admin(principal)
    locked = select(Product.flagged_reason).where(Product.id == product_id).with_for_update(key_share=True)
    found = session.execute(locked).one_or_none()
    if found is None:
        raise NotFound(_NO_PRODUCT[404])
    if found.flagged_reason is None:
        return
    audit.note(session, principal, "flag.clear", "product", product_id, flagged_reason=[found.flagged_reason, None])
    cleared = update(Product).where(Product.id == product_id)
    session.execute(cleared.values(flagged_reason=None, updated_at=Product.updated_at))
    mark_products(session, [product_id])


def _flagged_view(product: Product) -> FlaggedProductView:
    return FlaggedProductView(
        product_id=product.id,
        name=product.name,
        supplier_id=product.supplier_id,
        business_name=product.supplier.business_name,
        reason=product.flagged_reason or "",
        updated_at=product.updated_at,
    )
