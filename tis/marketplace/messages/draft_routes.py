"""The draft of a shop's answer, and what admins decide about reported messages."""

from typing import Annotated, cast

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse
from sqlalchemy import select
from sqlalchemy.orm import joinedload
from starlette.concurrency import run_in_threadpool

from tis.errors import NotFound, Unprocessable
from tis.http.admission import ticket_of
from tis.marketplace.assistant.turn import TurnDatabase
from tis.marketplace.assistant.wording import language_of_talk
from tis.marketplace.context import ContextDep, RequestContext
from tis.marketplace.kit.fields import MAX_ID, Id
from tis.marketplace.kit.paging import Limit, page_response
from tis.marketplace.kit.responses import no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.messages.drafts import (
    ProductFact,
    WrittenText,
    chosen_by_model,
    chosen_by_words,
    draft_of,
    facts_of,
)
from tis.marketplace.messages.schemas import (
    DRAFTED,
    MAX_MESSAGES,
    NO_TALK,
    REPORT_DECIDED,
    REPORTS_LISTED,
    AnswerDraftView,
    ReportDecision,
    ReportedMessage,
    Side,
)
from tis.marketplace.messages.service import decide_report, find_talk, list_reported, messages_of, require_shop_side
from tis.marketplace.messages.views import reported_views
from tis.marketplace.products.delivery import Language, language_of
from tis.marketplace.rates import limited
from tis.marketplace.tables import OrderLine, Product, ShopTalk

router = APIRouter(tags=["messages"], route_class=CheckedRoute)
_MAX_READ = 10  # messages that a draft looks at


@router.post("/talks/{talk_id}/draft", responses=DRAFTED, dependencies=[limited("chats"), Depends(no_store)])
async def draft_answer(request: Request, talk_id: Id, context: ContextDep) -> AnswerDraftView:
    """Draft the shop's answer to what the buyer asked last, for its members. Nothing is sent.

    Its sentences are facts of the product as the database has them; a model, where there is one, only chooses which.
    Messages that look as if they gave orders to a model are not shown to it.
    """
    written, facts, language, owner = await run_in_threadpool(_read, context, talk_id)
    chosen: list[ProductFact] | None = None
    if any(one.side == "buyer" for one in written):
        assistant = cast(TurnDatabase, context.market).assistant
        chosen = await chosen_by_model(facts, written, assistant, owner, ticket_of(request))
        chosen = chosen or chosen_by_words(facts, written)
    return AnswerDraftView(body=draft_of(chosen or [], language), facts=[one.name for one in chosen or []])


def _read(context: RequestContext, talk_id: int) -> tuple[list[WrittenText], list[ProductFact], Language, str]:
    with context.reading() as (session, principal):
        talk, side = find_talk(session, principal, talk_id)
        require_shop_side(side)
        written = [
            WrittenText(cast(Side, one.side), one.body)
            for one in messages_of(session, talk, None, _MAX_READ)
            if one.body and not one.flagged_reason and one.hidden_at is None
        ]
        asked = [one.text for one in written if one.side == "buyer"]
        language = language_of_talk(reversed(asked), language_of(None))
        product = session.scalar(
            select(Product).where(Product.id == _product_id(session, talk)).options(joinedload(Product.supplier))
        )
        if product is None:
            raise NotFound(NO_TALK)
        return written, facts_of(product, language), language, f"market:{principal.account}"


def _product_id(session: object, talk: ShopTalk) -> object:
    if talk.product_id is not None:
        return talk.product_id
    first = select(OrderLine.product_id).where(OrderLine.order_id == talk.order_id).order_by(OrderLine.position)
    return first.limit(1).scalar_subquery()


@router.get(
    "/admin/reported-messages",
    response_model=list[ReportedMessage],
    responses=REPORTS_LISTED,
    tags=["admin"],
    dependencies=[Depends(no_store)],
)
def list_reports(
    request: Request,
    context: ContextDep,
    before: Annotated[str | None, Query(max_length=40, description="see the header `Link`")] = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List messages that were reported, those of the newest talks first, for admins."""
    last = None if before is None else _position(before)
    with context.reading() as (session, principal):
        found = reported_views(session, list_reported(session, principal, last, limit + 1))
        return page_response(request, found, limit, lambda one: one, lambda one: f"{one.talk_id}-{one.number}")


@router.put("/admin/reported-messages/{talk_id}/{number}", responses=REPORT_DECIDED, tags=["admin"])
def decide(talk_id: Id, number: Id, body: ReportDecision, context: ContextDep) -> ReportedMessage:
    """Hide a reported message from both sides, or keep it, for admins."""
    with context.writing() as (session, principal):
        message = decide_report(session, principal, talk_id, number, body.status)
        return reported_views(session, [message])[0]


def _position(text: str) -> tuple[int, int]:
    talk_id, _, number = text.partition("-")
    if not (talk_id.isdecimal() and number.isdecimal() and int(talk_id) <= MAX_ID and int(number) <= MAX_MESSAGES):
        raise Unprocessable("`before` is not from a `Link` of this list.", param="before")
    return int(talk_id), int(number)
