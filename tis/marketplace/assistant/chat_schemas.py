"""Bodies of `POST /api/chat/search` and its events, with their examples for /docs."""

import json
from importlib import resources
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tis.marketplace.assistant.goods import FoundProduct, TriedFilter
from tis.marketplace.kit.docs import Responses, json_example, responses
from tis.marketplace.kit.fields import MAX_ID, Id
from tis.marketplace.reading.structured_query import MAX_QUERY_CHARS, Explanation, QuerySource, StructuredQuery

EXAMPLES: dict[str, Any] = json.loads(resources.files(__package__).joinpath("examples.json").read_text("utf-8"))
_SESSION_ID = r"^[A-Za-z0-9._:-]+$"
# Of routes.
SessionId = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[\x21-\x7e]+$")]
ActingFor = Annotated[
    int | None,
    Query(ge=1, le=MAX_ID, description="the user, with MARKETPLACE_AUTH=open and without a token; else leave it out"),
]
AnsweredBy = Literal["model", "template"]

QueryText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUERY_CHARS)]


class ChatSearch(BaseModel):
    """Unknown fields are ignored with a warning, as the documented contract has it."""

    user_id: Id | None = Field(None, description="who asks; by default whom the token names")
    query: QueryText = Field(description="what the buyer writes")
    session_id: Annotated[str, StringConstraints(pattern=_SESSION_ID, max_length=64)] | None = Field(
        None, description="of the conversation that goes on; leave it out to begin one"
    )
    conversation_id: Id | None = Field(None, description="the same, by its number")
    stream: bool = Field(False, description="send events while the answer is made; they can be resumed")

    model_config = ConfigDict(extra="ignore")


class Citation(BaseModel):
    """A product that the text of the answer speaks of."""

    product_id: int
    name: str
    url: str


class Interpretation(BaseModel):
    query: StructuredQuery
    source: QuerySource = Field(description="`rules`, or `llm` or `merged` if a model helped")
    explain: list[Explanation] = Field(description="which words filled a field, and by which rule")


class ChatSearchAnswer(BaseModel):
    session_id: str
    response: str
    products_found: int
    conversation_id: int
    products: list[FoundProduct]
    citations: list[Citation]
    interpreted: Interpretation
    suggestions: list[str]
    relaxations: list[TriedFilter]
    language: Literal["id", "en"]
    answered_by: AnsweredBy
    notice: str | None = Field(None, description="why no model has answered, if one should have")


_STREAM = {"description": "Events", "content": {"text/event-stream": {"example": EXAMPLES["events"]}}}
_ERRORS = {
    401: "This needs an access token.",
    403: "AI access not enabled for this user",
    404: "Conversation not found",
    409: "Session 'chat_2f1d' is answering another request. Wait for its end, cancel it, or use another id.",
    422: "This Idempotency-Key was used for another question.",
}

CHAT_RESPONSES: Responses = responses(EXAMPLES["answer"], _ERRORS)
CHAT_RESPONSES[200]["content"] |= _STREAM["content"]
STREAM_RESPONSES: Responses = {
    200: _STREAM,
    204: {"description": "The answer has ended, and you have all of it."},
    404: json_example("Unknown", {"detail": "There is no session 'chat_2f1d'."}),
    410: json_example("Gone", {"detail": "Session 'chat_2f1d' is over and no longer kept."}),
}
