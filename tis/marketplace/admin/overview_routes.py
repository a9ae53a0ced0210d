"""For admins: how much waits for them."""

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field
from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from tis.marketplace.auth.schemas import ADMIN_REQUIRED
from tis.marketplace.columns import now
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.docs import responses
from tis.marketplace.kit.paging import MAX_COUNTED
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.policy import require_admin
from tis.marketplace.tables import DataRequest, Product, Review, ShopMessage, Supplier, SupplierVerification

router = APIRouter(tags=["admin"], route_class=CheckedRoute)
_OVERVIEW = {
    "flagged_products": 1,
    "hidden_reviews": 4,
    "reported_messages": 1,
    "suspended_suppliers": 0,
    "doubtful_cards": 1,
    "open_data_requests": 2,
    "overdue_data_requests": 0,
    "next_due_at": "2026-11-24T03:00:00Z",
}


class AdminOverview(BaseModel):
    flagged_products: int = Field(description=f"as all counts here, at most {MAX_COUNTED + 1}: more are not counted")
    hidden_reviews: int
    reported_messages: int = Field(description="not decided yet")
    suspended_suppliers: int
    doubtful_cards: int = Field(description="of suppliers that wait for their badge")
    open_data_requests: int
    overdue_data_requests: int
    next_due_at: datetime | None = Field(description="when the first open data request must be answered")


@router.get("/admin/overview", responses=responses(_OVERVIEW, ADMIN_REQUIRED))
def overview(context: ContextDep) -> AdminOverview:
    """Count what waits for admins: flagged products, hidden reviews, reported messages, suspended suppliers,
    doubtful cards, requests about data."""
    flagged = select(Product.id).where(Product.flagged_reason.is_not(None), Product.deleted_at.is_(None))
    suspended = select(Supplier.id).where(Supplier.status == "suspended", Supplier.deleted_at.is_(None))
    doubtful = select(SupplierVerification.supplier_id).where(SupplierVerification.status == "doubtful")
    is_reported = ShopMessage.reported_at.is_not(None)
    reported = select(ShopMessage.number).where(
        is_reported, ShopMessage.hidden_at.is_(None), ShopMessage.decided_by.is_(None)
    )
    waiting = select(DataRequest.id).where(DataRequest.status == "open")
    with context.reading() as (session, principal):
        require_admin(principal)
        return AdminOverview(
            flagged_products=_count(session, flagged),
            hidden_reviews=_count(session, select(Review.id).where(Review.status == "hidden")),
            reported_messages=_count(session, reported),
            suspended_suppliers=_count(session, suspended),
            doubtful_cards=_count(session, doubtful),
            open_data_requests=_count(session, waiting),
            overdue_data_requests=_count(session, waiting.where(DataRequest.due_at < now())),
            next_due_at=session.scalar(select(func.min(DataRequest.due_at)).where(DataRequest.status == "open")),
        )


def _count(session: Session, ids: Select[int]) -> int:
    return session.scalar(select(func.count()).select_from(ids.limit(MAX_COUNTED + 1).subquery())) or 0
