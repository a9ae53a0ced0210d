"""The route that tells how a sentence is understood."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from sqlalchemy.orm import Session

from tis.marketplace.assistant.parse_schemas import PARSED, ParsedSentence, SentenceForm
from tis.marketplace.context import ContextDep, MarketServices
from tis.marketplace.kit.responses import json_response
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.query_parser.parse import parse_query
from tis.marketplace.query_parser.structured_query import ParsedQuery, QueryContext
from tis.marketplace.rates import limited

router = APIRouter(tags=["assistant"], route_class=CheckedRoute)


def understand_by_rules(session: Session, market: MarketServices, query: str, context: QueryContext) -> ParsedQuery:
    """Reads nothing but the vocabulary, which is in memory unless it has changed."""
    return parse_query(query, context, market.search.vocabulary(session))


@router.post("/search/parse", response_model=ParsedSentence, responses=PARSED, dependencies=[limited("searches")])
def parse_sentence(form: SentenceForm, context: ContextDep) -> JSONResponse:
    """Turn a sentence of a buyer into filters, and say which words became which.

    `context.previous` is the `query` of the turn before, `context.last_results` the products that were shown: with
    them `yang lebih murah?`, `yang nomor 2` and `kalau di Bandung?` are understood.
    """
    with context.reading() as (session, _):
        parsed = understand_by_rules(session, context.market, form.query, form.context)
    return json_response(ParsedSentence(query=parsed.query, source="rules", explain=parsed.explain))
