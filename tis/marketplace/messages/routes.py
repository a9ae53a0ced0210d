"""Talks: ask about a product or an order, read, write, mark, report; drafts of the shop's answer."""

import json
from collections.abc import Callable
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse
from sqlalchemy.orm import Session

from tis.http.admission import ticket_of
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.fields import MAX_ID, Id
from tis.marketplace.kit.idempotency import REPLAYED, IdempotencyKey, IdempotencyKeyDep
from tis.marketplace.kit.paging import Before, Limit, page_response
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.responses import json_response, no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.messages.schemas import (
    ASKED,
    REPORTED,
    SHOP_TALKS_LISTED,
    TALK_SEEN,
    TALKS_LISTED,
    WRITTEN,
    MessageForm,
    MessageReport,
    ReadMark,
    ShopMessageView,
    Side,
    TalkDetail,
    TalkView,
)
from tis.marketplace.messages.service import (
    find_talk,
    list_for_shop,
    list_own,
    mark_read,
    messages_of,
    report_message,
    side_of,
    talk_about_order,
    talk_about_product,
    write_message,
)
from tis.marketplace.messages.talk_pictures import TALK_PICTURE_FORM, TalkPictureDep
from tis.marketplace.messages.views import message_view, pictures_of, talk_detail, talk_views
from tis.marketplace.rates import limited
from tis.marketplace.tables import ShopTalk

router = APIRouter(tags=["messages"], route_class=CheckedRoute)


@router.post(
    "/products/{product_id}/talk",
    response_model=TalkDetail,
    responses=ASKED,
    dependencies=[limited("messages"), Depends(no_store)],
)
def ask_about_product(
    product_id: Id, body: MessageForm, context: ContextDep, idempotency_key: IdempotencyKeyDep
) -> JSONResponse:
    """Ask the shop about a product, or write on in the talk about it. The shop sees "Dewi S.", and no contact data."""
    with context.writing() as (session, principal):

        def talk() -> ShopTalk:
            return talk_about_product(session, principal, product_id)

        return _written(session, principal, idempotency_key, talk, body)


@router.post(
    "/orders/{order_id}/talk",
    response_model=TalkDetail,
    responses=WRITTEN,
    dependencies=[limited("messages"), Depends(no_store)],
)
def write_about_order(
    order_id: UUID, body: MessageForm, context: ContextDep, idempotency_key: IdempotencyKeyDep
) -> JSONResponse:
    """Write about an order, for its buyer and its shop."""
    with context.writing() as (session, principal):

        def talk() -> ShopTalk:
            return talk_about_order(session, principal, str(order_id))

        return _written(session, principal, idempotency_key, talk, body)


@router.post(
    "/talks/{talk_id}/messages",
    response_model=TalkDetail,
    responses=WRITTEN,
    dependencies=[limited("messages"), Depends(no_store)],
)
def write_on(talk_id: Id, body: MessageForm, context: ContextDep, idempotency_key: IdempotencyKeyDep) -> JSONResponse:
    """Write a message in a talk, for its buyer and its shop."""
    with context.writing() as (session, principal):

        def talk() -> ShopTalk:
            return find_talk(session, principal, talk_id)[0]

        return _written(session, principal, idempotency_key, talk, body)


@router.post(
    "/talks/{talk_id}/pictures",
    response_model=TalkDetail,
    responses=WRITTEN,
    openapi_extra=TALK_PICTURE_FORM,
    dependencies=[limited("messages"), Depends(no_store)],
)
async def send_picture(request: Request, talk_id: Id, picture: TalkPictureDep, context: ContextDep) -> JSONResponse:
    """Send a picture in a talk: the `file` of a form. Only pixels are kept, without metadata. Sent again at once,
    it changes nothing.
    """
    pictures = context.market.pictures
    rendered = await pictures.rendered(picture, ticket_of(request))

    def keep() -> JSONResponse:
        pictures.storage.keep(rendered)
        with context.writing() as (session, principal):
            talk, side = find_talk(session, principal, talk_id)
            newest = messages_of(session, talk, None, 1)
            if not (newest and newest[0].side == side and newest[0].picture_hash == rendered.hash):
                write_message(session, principal, talk, side, picture_hash=rendered.hash)
            return json_response(talk_detail(session, talk, side))

    return await pictures.in_thread(keep)


@router.get("/talks", response_model=list[TalkView], responses=TALKS_LISTED, dependencies=[Depends(no_store)])
def list_talks(request: Request, context: ContextDep, before: Before = None, limit: Limit = 50) -> JSONResponse:
    """List the caller's talks with shops, those with the newest messages first; `Link` has the next page."""
    with context.reading() as (session, principal):
        rows = list_own(session, principal, before, limit + 1)
        return _page(request, session, [(talk, "buyer") for talk in rows], limit)


@router.get(
    "/suppliers/{supplier_id}/talks",
    response_model=list[TalkView],
    responses=SHOP_TALKS_LISTED,
    dependencies=[Depends(no_store)],
)
def list_talks_of_shop(
    request: Request,
    supplier_id: Id,
    context: ContextDep,
    unanswered: Annotated[bool, Query(description="`true`: only those whose last message is the buyer's")] = False,
    before: Before = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List the talks of a shop, those with the newest messages first, for its members."""
    with context.reading() as (session, principal):
        rows = list_for_shop(session, principal, supplier_id, before, limit + 1, unanswered=unanswered)
        return _page(request, session, [(talk, "shop") for talk in rows], limit)


@router.get("/talks/{talk_id}", responses=TALK_SEEN, dependencies=[Depends(no_store)])
def read_talk(
    talk_id: Id,
    context: ContextDep,
    before: Annotated[int | None, Query(ge=1, le=MAX_ID, description="messages before this number")] = None,
    limit: Limit = 50,
) -> TalkDetail:
    """Read a talk with its newest messages, for its buyer and its shop. Reading marks nothing as read."""
    with context.reading() as (session, principal):
        talk, side = find_talk(session, principal, talk_id)
        return talk_detail(session, talk, side, before, limit)


@router.put("/talks/{talk_id}/read", responses=TALK_SEEN, dependencies=[Depends(no_store)])
def mark_as_read(talk_id: Id, body: ReadMark, context: ContextDep) -> TalkDetail:
    """Mark the messages up to a number as read. The other side sees it."""
    with context.writing() as (session, principal):
        talk, side = mark_read(session, principal, talk_id, body.number)
        return talk_detail(session, talk, side)


@router.post("/talks/{talk_id}/messages/{number}/report", responses=REPORTED)
def report(talk_id: Id, number: Id, body: MessageReport, context: ContextDep) -> ShopMessageView:
    """Report a message of the other side to the admins. Idempotent: the first reason stays."""
    with context.writing() as (session, principal):
        message, side = report_message(session, principal, talk_id, number, body.reason)
        return message_view(message, side, pictures_of(session, [message]))


def _written(
    session: Session,
    principal: Principal,
    key: IdempotencyKey,
    find: Callable[[], ShopTalk],
    body: MessageForm,
) -> JSONResponse:
    """With a key, no message is in the saved answer: a retry sees the talk as it is, without what was hidden since."""

    def write() -> JSONResponse:
        talk = find()
        side = side_of(principal, talk)
        write_message(session, principal, talk, side, body=body.body, is_drafted=body.is_drafted)
        return JSONResponse({"id": talk.id})

    saved = key.answer(session, principal, write)
    talk, side = find_talk(session, principal, json.loads(bytes(saved.body))["id"])
    answer = json_response(talk_detail(session, talk, side))
    if saved.headers.get("Idempotent-Replayed"):
        answer.headers.update(REPLAYED)
    return answer


def _page(request: Request, session: Session, rows: list[tuple[ShopTalk, Side]], limit: int) -> JSONResponse:
    views = talk_views(session, rows)
    return page_response(request, views, limit, lambda one: one, lambda one: one.id)
