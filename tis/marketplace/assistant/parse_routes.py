"""The route that tells how a sentence is understood."""

from datetime import date
from typing import cast

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from tis.http.admission import ticket_of
from tis.marketplace.assistant.parse_schemas import PARSED, ParsedSentence, SentenceForm
from tis.marketplace.assistant.quotas import count_tokens, tokens_left
from tis.marketplace.assistant.shopping_assistant import today
from tis.marketplace.assistant.turn import TurnDatabase
from tis.marketplace.context import ContextDep, RequestContext
from tis.marketplace.kit.responses import json_response
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.rates import limited
from tis.marketplace.tables import User
from tis.marketplace.users.chat_streams import stream_owner

router = APIRouter(tags=["assistant"], route_class=CheckedRoute)


@router.post("/search/parse", response_model=ParsedSentence, responses=PARSED, dependencies=[limited("searches")])
async def parse_sentence(form: SentenceForm, context: ContextDep, request: Request) -> JSONResponse:
    """Turn a sentence of a buyer into filters, and say which words became which.

    `context.previous` is the `query` of the turn before, `context.last_results` the products that were shown: with
    them `yang lebih murah?`, `yang nomor 2` and `kalau di Bandung?` are understood. Rules read the sentence; for users
    with AI access a model may add to them (`source` is `merged` then).
    """
    assistant = cast(TurnDatabase, context.market).assistant
    user_id = await run_in_threadpool(_user_with_model, context, today(), assistant.limits.tokens_per_day)
    understood = await assistant.understand(
        form.query, form.context, stream_owner(user_id or 0), ticket_of(request), uses_model=user_id is not None
    )
    if user_id is not None and understood.num_tokens:
        await run_in_threadpool(_count, context, user_id, understood.num_tokens)
    parsed = understood.parsed
    return json_response(ParsedSentence(query=parsed.query, source=understood.source, explain=parsed.explain))


def _user_with_model(context: RequestContext, day: date, quota: int) -> int | None:
    """Who calls, if a model may be asked for that user."""
    with context.reading() as (session, principal):
        user = None if principal.user_id is None else session.get(User, principal.user_id)
        if user is None or not user.ai_access_enabled or tokens_left(session, user.id, day, quota) == 0:
            return None
        return user.id


def _count(context: RequestContext, user_id: int, num_tokens: int) -> None:
    with context.market.writing() as session:
        count_tokens(session, user_id, today(), num_tokens)
