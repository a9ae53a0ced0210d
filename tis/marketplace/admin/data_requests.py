"""Requests about the own data of people who cannot sign in: an admin records, answers and proves them.

Who can sign in needs none: `GET /api/users/me/export` and `DELETE /api/users/me` do it at once.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound, Unprocessable
from tis.marketplace.columns import now
from tis.marketplace.kit import audit
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import require_admin
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.tables import DataRequest
from tis.marketplace.users.service import erase_user, lock_user

ANSWER_WITHIN = timedelta(hours=72)  # UU PDP: 3 x 24 hours for a copy; an erasure is due as soon
NO_REQUEST = "Data request not found"


def list_requests(
    session: Session, principal: Principal, filters: dict[str, Any], before: int | None, limit: int
) -> Sequence[DataRequest]:
    """Newest first."""
    require_admin(principal)
    rows = select(DataRequest).filter_by(**filters).order_by(DataRequest.id.desc()).limit(limit)
    return session.scalars(rows if before is None else rows.where(DataRequest.id < before)).all()


def open_request(
    session: Session, principal: Principal, user_id: int, kind: str, reason: str, received_at: datetime | None
) -> DataRequest:
    require_admin(principal)
    moment = now()
    if received_at is not None and received_at > moment:
        raise Unprocessable("received_at lies in the future.")
    lock_user(session, user_id)  # so that two admins do not open the same one
    same = select(DataRequest.id).where(
        DataRequest.user_id == user_id, DataRequest.kind == kind, DataRequest.status == "open"
    )
    if (number := session.scalar(same)) is not None:
        raise Conflict(f"Data request {number} of this user is open already.")
    received = received_at or moment
    request = DataRequest(
        user_id=user_id,
        kind=kind,
        reason=reason,
        received_at=received,
        due_at=received + ANSWER_WITHIN,
        created_by=principal.account,
    )
    session.add(request)
    session.flush()
    audit.note(session, principal, "data_request.open", "user", user_id, data_request=request.id, kind=kind)
    return request


def find_request(session: Session, principal: Principal, request_id: int, kind: str) -> DataRequest:
    """One that can be answered: an open one, or a copy that was made before and may have been lost on its way."""
    require_admin(principal)
    return _require_answerable(session.get(DataRequest, request_id), kind)


def note_export(session: Session, principal: Principal, request_id: int) -> None:
    """After the copy was made. Each copy is in the audit log."""
    require_admin(principal)
    request = _require_answerable(_lock(session, request_id), "export")
    if request.status == "open":
        _end(request, principal, "done")
    noted = {"data_request": request.id, "reason": request.reason}
    audit.note(session, principal, "user.export", "user", request.user_id, **noted)


def erase_by_request(
    session: Session, principal: Principal, search: ProductSearch, request_id: int
) -> tuple[DataRequest, Sequence[str]]:
    """With the ids of the sessions of the user's conversations, whose streams are to be deleted."""
    request = find_request(session, principal, request_id, "erase")
    user_id = request.user_id
    noted: dict[str, Any] = {"data_request": request.id, "reason": request.reason}
    session_ids = erase_user(session, principal, search, user_id, **noted)
    request = _require_answerable(_lock(session, request_id), "erase")  # behind the user: `open_request` locks so, too
    copies = select(DataRequest.id).where(
        DataRequest.user_id == user_id, DataRequest.kind == "export", DataRequest.status == "open"
    )
    if (number := session.scalar(copies)) is not None:
        raise Conflict(f"Data request {number} of this user wants a copy: export it first, or refuse it.")
    _end(request, principal, "done")
    session.flush()
    return request, session_ids


def refuse_request(session: Session, principal: Principal, request_id: int, reason: str) -> DataRequest:
    require_admin(principal)
    request = _lock(session, request_id)
    if request is None:
        raise NotFound(NO_REQUEST)
    if request.status != "open":
        raise Conflict(f"This request is {request.status} already.")
    _end(request, principal, "refused")
    request.ended_reason = reason
    noted = {"data_request": request.id, "reason": reason}
    audit.note(session, principal, "data_request.refuse", "user", request.user_id, **noted)
    session.flush()
    return request


def _end(request: DataRequest, principal: Principal, status: str) -> None:
    request.status, request.ended_at, request.ended_by = status, now(), principal.account


def _lock(session: Session, request_id: int) -> DataRequest | None:
    locked = select(DataRequest).where(DataRequest.id == request_id).with_for_update()
    return session.scalar(locked.execution_options(populate_existing=True))


def _require_answerable(request: DataRequest | None, kind: str) -> DataRequest:
    if request is None:
        raise NotFound(NO_REQUEST)
    if request.kind != kind:
        raise Conflict(f"This request is one to {request.kind}.")
    if request.status == "refused" or (kind == "erase" and request.status == "done"):
        raise Conflict(f"This request is {request.status} already.")
    return request
