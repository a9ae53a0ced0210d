"""The stream of notices: what the transactions of any server wrote for the caller, in their order."""

import json
import time
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from tis.errors import ServiceError
from tis.http.event_stream import HEARTBEAT, parse_cursor
from tis.marketplace.context import ContextDep, RequestContext
from tis.marketplace.kit.notice_hub import NoticeHub
from tis.marketplace.kit.threads import in_thread
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.notices.schemas import STREAM_RESPONSES
from tis.marketplace.notices.service import MAX_READ, begin, read_after
from tis.marketplace.tables import Notice

router = APIRouter(prefix="/notices", tags=["notices"], route_class=CheckedRoute)
_NAME = "notices"  # in the ids of the events, where recorded answers have that of their session
_HEARTBEAT_SECONDS = 15.0
_MAX_UNCHECKED_SECONDS = 60.0  # until the token of an idle reader is looked at again
_RECONNECT_AFTER = "retry: 1500\n"

LastEventId = Annotated[str | None, Header(max_length=512, description="resume after this event: notices:<number>")]
Once = Annotated[bool, Query(description="`true`: end after what is there, for clients that ask from time to time")]


@router.get("/stream", response_class=StreamingResponse, responses=STREAM_RESPONSES)
async def follow_notices(
    context: ContextDep, last_event_id: LastEventId = None, once: Once = False
) -> StreamingResponse:
    """Follow what becomes of your reservations, and of those of your shop's goods, as server-sent events.

    `hold.made`, `hold.accepted`, `hold.refused`, `hold.sold`, `hold.released` and `hold.expired` name a reservation to
    read; `role` says whether you are its buyer or its shop. There are other kinds, of orders and stock. The first
    event, `connected`, has the id to resume from. A 410 for a `Last-Event-ID` says that notices after it are gone:
    read your reservations, and follow anew.
    """
    cursor = parse_cursor(last_event_id, None, _NAME)
    account, after = await in_thread(begin, context, None if cursor is None else cursor[1])
    hub = context.market.notices
    hub.require_room(account)
    first = _hello(after) if cursor is None else ""
    return StreamingResponse(
        _blocks(context, hub, account, after, first, is_endless=not once),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"},
    )


async def _blocks(
    context: RequestContext, hub: NoticeHub, account: str, after: int, first: str, *, is_endless: bool
) -> AsyncIterator[bytes]:
    try:
        with hub.listening(account) as reader:
            yield first.encode() or HEARTBEAT  # so that a client knows at once that it listens
            while not reader.is_ended:
                notices = await in_thread(read_after, context, account, after)
                checked_at = time.monotonic()
                if notices:
                    after = notices[-1].number
                    yield "".join(map(_block, notices)).encode()
                if len(notices) == MAX_READ:
                    continue
                if not is_endless:
                    return
                while not await reader.wait(_HEARTBEAT_SECONDS):
                    yield HEARTBEAT
                    if time.monotonic() - checked_at > _MAX_UNCHECKED_SECONDS:
                        break
    except ServiceError as error:
        # About this reader, not about its notices: without an id.
        yield _event("", "failed", {"detail": error.message, "status": error.status}).encode()


def _hello(after: int) -> str:
    return _event(f"id: {_NAME}:{after}\n{_RECONNECT_AFTER}", "connected", {})


def _block(notice: Notice) -> str:
    at = notice.created_at.isoformat().replace("+00:00", "Z")
    return _event(f"id: {_NAME}:{notice.number}\n", notice.type, {**notice.data, "at": at})


def _event(head: str, kind: str, fields: dict[str, object]) -> str:
    data = json.dumps({"type": kind, **fields}, ensure_ascii=False, separators=(",", ":"))
    return f"{head}event: {kind}\ndata: {data}\n\n"
