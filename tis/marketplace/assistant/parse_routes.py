"""The route that tells how a sentence is understood."""

from typing import Annotated, cast

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, Field
from starlette.concurrency import run_in_threadpool

from tis.http.admission import ticket_of
from tis.marketplace.assistant.chat_schemas import EXAMPLES, Interpretation
from tis.marketplace.assistant.shopping_assistant import Asking, today
from tis.marketplace.assistant.turn import TurnDatabase
from tis.marketplace.assistant.viewers import count_tokens, has_tokens_left
from tis.marketplace.context import ContextDep, RequestContext
from tis.marketplace.kit.docs import responses, schema_example
from tis.marketplace.kit.responses import json_response
from tis.marketplace.kit.unknown_fields import CheckedRoute, StrictBody
from tis.marketplace.rates import limited
from tis.marketplace.reading.structured_query import MAX_QUERY_CHARS, QueryContext, StructuredQuery
from tis.marketplace.tables import User
from tis.marketplace.users.chat_streams import stream_owner

router = APIRouter(tags=["assistant"], route_class=CheckedRoute)
# With all fields of a query.
_PARSED = EXAMPLES["parsed"] | {"query": StructuredQuery().model_dump() | EXAMPLES["parsed"]["query"]}


def _not_blank(query: str) -> str:
    if not any(map(str.isalnum, query)):
        raise ValueError("must have a letter or a digit")
    return query


class SentenceForm(StrictBody):
    model_config = schema_example(EXAMPLES["sentence"])

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS), AfterValidator(_not_blank)]
    context: QueryContext = Field(default_factory=QueryContext)


@router.post(
    "/search/parse",
    response_model=Interpretation,
    responses=responses(_PARSED, {422: "query: must have a letter or a digit"}),
    dependencies=[limited("searches")],
)
async def parse_sentence(form: SentenceForm, context: ContextDep, request: Request) -> JSONResponse:
    """Turn a sentence of a buyer into filters, and say which words became which.

    `context.previous` is the `query` of the turn before, `context.last_results` the products that were shown: with
    them `yang lebih murah?`, `yang nomor 2` and `kalau di Bandung?` are understood. Rules read the sentence; for users
    with AI access a model may add to them (`source` is `merged` then).
    """
    assistant = cast(TurnDatabase, context.market).assistant
    user_id = await run_in_threadpool(_user_with_model, context, assistant.limits.tokens_per_day)
    asking = Asking(form.query, stream_owner(user_id or 0), ticket_of(request), uses_model=user_id is not None)
    interpretation, num_tokens = await assistant.understand(asking, form.context)
    if user_id is not None and num_tokens:
        await run_in_threadpool(_count, context, user_id, num_tokens)
    return json_response(interpretation)


def _user_with_model(context: RequestContext, quota: int) -> int | None:
    """Who calls, if a model may be asked for that user."""
    with context.reading() as (session, principal):
        user = None if principal.user_id is None else session.get(User, principal.user_id)
        if user and user.ai_access_enabled and has_tokens_left(session, user.id, today(), quota):
            return user.id
        return None


def _count(context: RequestContext, user_id: int, num_tokens: int) -> None:
    with context.market.writing() as session:
        count_tokens(session, user_id, today(), num_tokens)
