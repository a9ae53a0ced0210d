"""For admins: requests about their data of people who cannot sign in."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from tis.http.dependencies import SessionsDep
from tis.marketplace.admin.data_requests import (
    NO_REQUEST,
    erase_by_request,
    find_request,
    list_requests,
    note_export,
    open_request,
    refuse_request,
)
from tis.marketplace.auth.schemas import ADMIN_REQUIRED
from tis.marketplace.columns import now
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.docs import KEY_USED, responses, schema_example
from tis.marketplace.kit.fields import MAX_ID, Id, Moment, ReasonText
from tis.marketplace.kit.idempotency import IdempotencyKeyDep
from tis.marketplace.kit.paging import Before, Limit, page_response
from tis.marketplace.kit.responses import json_response, no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute, StrictBody
from tis.marketplace.tables import DataRequest
from tis.marketplace.users.chat_streams import delete_all_streams
from tis.marketplace.users.data_export import export_user_data
from tis.marketplace.users.schemas import EXPORT_EXAMPLE, LAST_ADMIN, NO_USER

router = APIRouter(prefix="/admin/data-requests", tags=["admin"], route_class=CheckedRoute)
Kind = Literal["export", "erase"]
Status = Literal["open", "done", "refused"]

_REASON = "A letter of 20 November with a copy of the identity card, answered by telephone."
_REQUEST: dict[str, Any] = {
    "id": 3,
    "user_id": 7,
    "kind": "erase",
    "status": "open",
    "reason": _REASON,
    "received_at": "2026-11-21T03:00:00Z",
    "due_at": "2026-11-24T03:00:00Z",
    "is_overdue": False,
    "created_at": "2026-11-21T09:30:00Z",
    "created_by": "user:1",
    "ended_at": None,
    "ended_by": None,
    "ended_reason": None,
}
_ENDED = {"status": "done", "ended_at": "2026-11-22T03:00:00Z", "ended_by": "user:1"}
_NO_REQUEST = {**ADMIN_REQUIRED, 404: NO_REQUEST, 409: "This request is done already."}


class DataRequestForm(StrictBody):
    model_config = schema_example({"user_id": 7, "kind": "erase", "reason": _REASON})

    user_id: Annotated[int, Field(ge=1, le=MAX_ID)]
    kind: Kind
    reason: ReasonText = Field(
        description="how the person asked, and how you know who it is; the audit log has it, too"
    )
    received_at: Moment | None = Field(None, description="if not now; it is due 72 hours later")


class DataRequestRefusal(StrictBody):
    model_config = schema_example({"reason": "Nobody could tell who wrote the letter."})

    reason: ReasonText


class DataRequestView(BaseModel):
    id: int
    user_id: int
    kind: Kind
    status: Status
    reason: str
    received_at: datetime
    due_at: datetime
    is_overdue: bool
    created_at: datetime
    created_by: str | None
    ended_at: datetime | None
    ended_by: str | None
    ended_reason: str | None


@router.get("", response_model=list[DataRequestView], responses=responses([_REQUEST], ADMIN_REQUIRED))
def list_data_requests(
    context: ContextDep,
    request: Request,
    status: Annotated[Status | None, Query()] = None,
    user_id: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None,
    before: Before = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List requests of people about their data and how they ended, newest first, for admins."""
    filters = {name: value for name, value in {"status": status, "user_id": user_id}.items() if value is not None}
    with context.reading() as (session, principal):
        found = list_requests(session, principal, filters, before, limit + 1)
        return page_response(request, found, limit, _view, lambda one: one.id)


@router.post(
    "",
    response_model=DataRequestView,
    responses=responses(
        _REQUEST, {**ADMIN_REQUIRED, **NO_USER}, {409: "Data request 3 of this user is open already."}, KEY_USED
    ),
)
def record(context: ContextDep, form: DataRequestForm, idempotency_key: IdempotencyKeyDep) -> JSONResponse:
    """Record that somebody who cannot sign in wants a copy of the own data, or its end, for admins."""
    with context.writing() as (session, principal):

        def open_one() -> JSONResponse:
            asked = form.user_id, form.kind, form.reason, form.received_at
            return json_response(_view(open_request(session, principal, *asked)))

        return idempotency_key.answer(session, principal, open_one)


@router.post("/{request_id}/export", dependencies=[Depends(no_store)], responses=responses(EXPORT_EXAMPLE, _NO_REQUEST))
def export(context: ContextDep, request_id: Id) -> dict[str, Any]:
    """Export all data about the user of a request, for admins. It may be repeated; the audit log has each copy."""
    with context.reading() as (session, principal):
        copy = export_user_data(session, find_request(session, principal, request_id, "export").user_id)
    with context.writing() as (session, principal):
        note_export(session, principal, request_id)
    return copy


@router.post("/{request_id}/erase", responses=responses({**_REQUEST, **_ENDED}, _NO_REQUEST, LAST_ADMIN))
async def erase(context: ContextDep, sessions: SessionsDep, request_id: Id) -> DataRequestView:
    """Delete the account of the user of a request, as `DELETE /api/users/me` does, for admins. It cannot be undone."""

    def delete() -> tuple[DataRequestView, list[str]]:
        with context.writing() as (session, principal):
            request, session_ids = erase_by_request(session, principal, context.market.search, request_id)
            return _view(request), list(session_ids)

    view, session_ids = await run_in_threadpool(delete)
    await delete_all_streams(sessions, view.user_id, session_ids)
    return view


@router.post("/{request_id}/refuse", responses=responses({**_REQUEST, **_ENDED, "status": "refused"}, _NO_REQUEST))
def refuse(context: ContextDep, request_id: Id, form: DataRequestRefusal) -> DataRequestView:
    """End a request without doing what it asks for, with the reason, for admins."""
    with context.writing() as (session, principal):
        return _view(refuse_request(session, principal, request_id, form.reason))


def _view(request: DataRequest) -> DataRequestView:
    columns = {name: getattr(request, name) for name in DataRequestView.model_fields if name != "is_overdue"}
    return DataRequestView(**columns, is_overdue=request.status == "open" and request.due_at < now())
