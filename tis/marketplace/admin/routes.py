"""The audit log, for admins."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.context import ContextDep
from tis.marketplace.kit.docs import responses
from tis.marketplace.kit.paging import Before, Limit, page_response
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.policy import require_admin
from tis.marketplace.tables import AuditEntry

router = APIRouter(tags=["admin"], route_class=CheckedRoute)

# PostgreSQL refuses NUL in text.
_Name = Annotated[str | None, Query(max_length=100, pattern=r"^[\x20-\x7e]*$")]


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
    before: Before = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List who changed what, newest first, for admins."""
    filters = {"entity": entity, "entity_id": entity_id, "actor": actor}
    with context.reading() as (session, principal):
        entries = _find(
            session, principal, {name: value for name, value in filters.items() if value}, before, limit + 1
        )
        return page_response(request, entries, limit, _view, lambda entry: entry.id)


def _view(entry: AuditEntry) -> AuditView:
    return AuditView.model_validate(entry, from_attributes=True)


def _find(
    session: Session, principal: Principal, filters: dict[str, str], before: int | None, limit: int
) -> Sequence[AuditEntry]:
    require_admin(principal)
    rows = select(AuditEntry).filter_by(**filters).order_by(AuditEntry.id.desc()).limit(limit)
    return session.scalars(rows if before is None else rows.where(AuditEntry.id < before)).all()
