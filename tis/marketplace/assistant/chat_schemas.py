"""Bodies of `POST /api/chat/search` and its events."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tis.marketplace.assistant.goods import ProductCard
from tis.marketplace.kit.fields import Id
from tis.marketplace.products.schemas import Fulfilment
from tis.marketplace.reading.structured_query import MAX_QUERY_CHARS, Explanation, QuerySource, StructuredQuery

SESSION_ID = r"^[A-Za-z0-9._:-]+$"
AnsweredBy = Literal["model", "template"]

QueryText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUERY_CHARS)]


class ChatSearch(BaseModel):
    """Unknown fields are ignored with a warning, as the documented contract has it."""

    user_id: Id | None = Field(None, description="who asks; by default whom the token names")
    query: QueryText = Field(description="what the buyer writes")
    session_id: Annotated[str, StringConstraints(pattern=SESSION_ID, max_length=64)] | None = Field(
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
    source: QuerySource
    explain: list[Explanation]


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


def found_products(cards: Sequence[ProductCard]) -> list[FoundProduct]:
    return [FoundProduct.model_validate(card, from_attributes=True) for card in cards]


def citations_of(cards: Sequence[ProductCard]) -> list[Citation]:
    return [Citation(product_id=card.id, name=card.name, url=f"/api/products/{card.id}") for card in cards]


def event_json(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"chat.search.{kind}", **fields}
