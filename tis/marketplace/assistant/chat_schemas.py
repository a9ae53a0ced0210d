"""Bodies of `POST /api/chat/search` and its events, with their examples for /docs."""

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tis.marketplace.kit.docs import Responses, json_example, responses
from tis.marketplace.kit.fields import MAX_ID, Id
from tis.marketplace.products.schemas import Fulfilment
from tis.marketplace.reading.structured_query import MAX_QUERY_CHARS, Explanation, QuerySource, StructuredQuery

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


class FoundProduct(BaseModel):
    """A product as the database has it when the answer is given."""

    id: int
    name: str
    price: int
    currency: Literal["IDR"] = "IDR"
    category: str
    brand: str | None
    condition: str
    available_quantity: int
    supplier_id: int
    supplier_name: str
    city: str
    rating: float | None
    rating_count: int
    distance_km: float | None
    fulfilment: Fulfilment | None


class Citation(BaseModel):
    """A product that the text of the answer speaks of."""

    product_id: int
    name: str
    url: str


class Interpretation(BaseModel):
    query: StructuredQuery
    source: QuerySource = Field(description="`rules`, or `llm` or `merged` if a model helped")
    explain: list[Explanation] = Field(description="which words filled a field, and by which rule")


class TriedFilter(BaseModel):
    """What would be found without a filter, or with a wider one; it was really counted."""

    without: str
    count: int
    count_is_exact: bool
    query: StructuredQuery


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


SEARCH_EXAMPLE = {"user_id": 1, "query": "Saya butuh laptop gaming di Jakarta, budget 12 juta"}
ANSWER_EXAMPLE: dict[str, Any] = {
    "session_id": "chat_2f1d0c9b8a7e6f5d4c3b2a1908f7e6d5",
    "response": "Saya menemukan 1 barang.\n1. Acer Nitro 5: Rp 11.499.000, stok 4, Nusa Komputer (Jakarta), 3,2 km.",
    "products_found": 1,
    "conversation_id": 1,
    "products": [
        {
            "id": 2,
            "name": "Acer Nitro 5",
            "price": 11_499_000,
            "currency": "IDR",
            "category": "laptop",
            "brand": "Acer",
            "condition": "new",
            "available_quantity": 4,
            "supplier_id": 1,
            "supplier_name": "Nusa Komputer",
            "city": "Jakarta",
            "rating": 4.5,
            "rating_count": 2,
            "distance_km": 3.2,
            "fulfilment": {"suggestion": "pickup", "reason": "Toko hanya 3,2 km dari Anda: bisa diambil sendiri."},
        }
    ],
    "citations": [{"product_id": 2, "name": "Acer Nitro 5", "url": "/api/products/2"}],
    "interpreted": {
        "query": {
            "intent": "search",
            "category": "laptop",
            "text": "gaming",
            "max_price": 12_000_000,
            "cities": ["Jakarta"],
        },
        "source": "rules",
        "explain": [{"field": "max_price", "rule": "budget", "words": "budget 12 juta"}],
    },
    "suggestions": ["Yang lebih murah", "Kalau di Bandung?"],
    "relaxations": [],
    "language": "id",
    "answered_by": "template",
    "notice": None,
}
_EVENTS = (
    'id: chat_2f1d:0\nevent: chat.search.created\ndata: {"type":"chat.search.created","session_id":"chat_2f1d",'
    '"conversation_id":1,"turn_id":"5b0c"}\n\nid: chat_2f1d:3\nevent: chat.search.text.delta\n'
    'data: {"type":"chat.search.text.delta","delta":"Saya menemukan 1 barang.\\n"}\n\n'
)
_STREAM = {"description": "Events", "content": {"text/event-stream": {"example": _EVENTS}}}
_ERRORS = {
    401: "This needs an access token.",
    403: "AI access not enabled for this user",
    404: "Conversation not found",
    409: "Session 'chat_2f1d' is answering another request. Wait for its end, cancel it, or use another id.",
    422: "This Idempotency-Key was used for another question.",
}

CHAT_RESPONSES: Responses = responses(ANSWER_EXAMPLE, _ERRORS)
CHAT_RESPONSES[200]["content"] |= _STREAM["content"]
STREAM_RESPONSES: Responses = {
    200: _STREAM,
    204: {"description": "The answer has ended, and you have all of it."},
    404: json_example("Unknown", {"detail": "There is no session 'chat_2f1d'."}),
    410: json_example("Gone", {"detail": "Session 'chat_2f1d' is over and no longer kept."}),
}
CANCEL_EXAMPLE = {"session_id": "chat_2f1d0c9b8a7e6f5d4c3b2a1908f7e6d5", "status": "cancelled"}
