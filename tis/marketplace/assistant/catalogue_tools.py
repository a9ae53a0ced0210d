"""The catalogue as tools of a language model: `search_catalog`, `lookup_catalog` and `compare_products`.

The names are those of the Catalog capability of UCP, which Shopify's MCP servers have, too. The tools only read. They
give what everybody sees: no address, coordinates, e-mail or phone of anybody. Who asks, and from where distances are
measured, is never an argument.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from sqlalchemy.orm import Session

from tis.errors import BadRequest, ServiceError
from tis.marketplace.assistant.finding import find_goods
from tis.marketplace.assistant.goods import MAX_CARDS, FoundGoods, ProductCard
from tis.marketplace.assistant.goods_search import GoodsSearch, without_unused_radius
from tis.marketplace.assistant.viewers import Viewer
from tis.marketplace.kit.threads import in_thread
from tis.marketplace.products.compare import compared_rows
from tis.marketplace.reading.parse import parse_query
from tis.marketplace.reading.structured_query import MAX_QUERY_CHARS, ProductId, QueryContext, StructuredQuery
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.search.product_search import ProductSearch
from tis.mcp_client.tool_types import LocalTool, McpTool, McpToolResult

_READ_ONLY = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_NO_CENTRE = "It counts from one named city, or from the caller's place, which is not known."
# Here the name of the tool says what is wanted.
_NOT_FOR_TOOLS = ("intent", "compare", "product_ids", "order_by", "asked", "measures", "total_price")
_MAX_CATEGORIES = 200  # more would make the schema longer than the prompts of small models
_MAX_PROBLEMS, _MAX_PROBLEM_CHARS, _MAX_NAME_CHARS = 3, 200, 60
_SEARCH = (
    "Search the products of an Indonesian marketplace. `text` may be a plain sentence in Indonesian or English, such "
    "as 'laptop gaming di Jakarta di bawah 12 juta'; the other filters are exact. Prices are in rupiah. Gives at most "
    "8 products: first those that match (`total`), then those with `partial_match`. With few or none, `relaxations` "
    "says which filter hides how many."
)
_LOOKUP = "Read products by their ids: current price, stock and shop. `not_found` has ids that are not sold any more."
_COMPARE = "Compare 2 to 8 products by their ids, row by row; `best` is the id with the best value of a row."

ProductIds = Annotated[list[ProductId], Field(max_length=MAX_CARDS, description="ids of products that were found")]


class SearchArguments(StructuredQuery):
    text: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_QUERY_CHARS)] = Field(
        "", description="words to look for, or a plain sentence"
    )
    limit: int = Field(MAX_CARDS, ge=1, le=MAX_CARDS, description="products in the result")


class LookupArguments(BaseModel):
    ids: Annotated[ProductIds, Field(min_length=1)]

    model_config = ConfigDict(extra="forbid")


class CompareArguments(BaseModel):
    ids: Annotated[ProductIds, Field(min_length=2)]

    model_config = ConfigDict(extra="forbid")


class CatalogueDatabase(Protocol):
    """The part of `Market` that reads goods."""

    @property
    def search(self) -> ProductSearch: ...

    def reading(self) -> AbstractContextManager[Session]: ...


ViewerOf = Callable[[Session], Viewer]
Answer = tuple[dict[str, Any], Sequence[ProductCard]]
ArgumentsT = TypeVar("ArgumentsT", bound=BaseModel)


def catalogue_tools(
    market: CatalogueDatabase,
    viewer_of: ViewerOf,
    categories: Sequence[str] = (),
    on_cards: Callable[[Sequence[ProductCard]], None] | None = None,
    pictures_at: str | None = None,
) -> list[LocalTool]:
    """Each call is a short transaction of its own, in a thread, in which `viewer_of` runs. `categories` become an enum
    of the schema. `on_cards` gets the products of each call, on the event loop. `pictures_at` is the address of this
    server, for callers that can show pictures; None leaves them out.
    """

    def tool(
        name: str,
        description: str,
        model: type[ArgumentsT],
        answer: Callable[[GoodsSearch, ArgumentsT], Answer],
    ) -> LocalTool:
        def read(arguments: ArgumentsT) -> tuple[str, Sequence[ProductCard]]:
            with market.reading() as session:
                found, cards = answer(GoodsSearch(market.search, session, viewer_of(session)), arguments)
            if pictures_at:
                _add_pictures(found, cards, pictures_at)
            return json.dumps(found, ensure_ascii=False, separators=(",", ":")), cards

        async def call(arguments: Mapping[str, Any]) -> McpToolResult:
            try:
                text, cards = await in_thread(read, model.model_validate(dict(arguments)))
            except ValidationError as error:
                return McpToolResult(problems_of(error), is_error=True)
            except ServiceError as error:  # also if the database does not answer, or the caller's session has ended
                return McpToolResult(error.message, is_error=True)
            if on_cards:
                on_cards(cards)
            return McpToolResult(text, is_error=False)

        return LocalTool(McpTool(name, description, schema_of(model, categories), _READ_ONLY), call)

    return [
        tool("search_catalog", _SEARCH, SearchArguments, _search),
        tool("lookup_catalog", _LOOKUP, LookupArguments, _lookup),
        tool("compare_products", _COMPARE, CompareArguments, _compare),
    ]


def _search(goods: GoodsSearch, arguments: SearchArguments) -> Answer:
    query = _understood(arguments, goods.search.vocabulary(goods.session))
    found = find_goods(goods, query)
    found = replace(found, cards=found.cards[: arguments.limit], nearest=found.nearest[: arguments.limit])
    return _found_json(found, query, goods.viewer), [*found.cards, *found.nearest]


def _lookup(goods: GoodsSearch, arguments: LookupArguments) -> Answer:
    cards = goods.cards(arguments.ids)
    return {"products": list(map(card_json, cards)), "not_found": _missing(arguments.ids, cards)}, cards


def _compare(goods: GoodsSearch, arguments: CompareArguments) -> Answer:
    cards = goods.cards(arguments.ids)
    missing = _missing(arguments.ids, cards)
    if len(cards) < 2:
        raise BadRequest(f"Name two products or more that are sold. Not found: {missing or 'none'}.")
    rows = [
        {
            "field": row.field,
            "label": row.label,
            "values": row.values,
            "best": None if row.best is None else cards[row.best].id,
        }
        for row in compared_rows(cards, goods.viewer.language)
        if any(value is not None for value in row.values)
    ]
    return {"products": list(map(card_json, cards)), "rows": rows, "not_found": missing}, cards


def _understood(arguments: SearchArguments, vocabulary: Vocabulary) -> StructuredQuery:
    """The sentence as the rules read it. Fields that the caller sets win; models also send nulls and empty lists."""
    stated = {name: getattr(arguments, name) for name in arguments.model_dump(exclude_defaults=True)}
    stated = {name: value for name, value in stated.items() if name not in ("text", "limit")}
    query = StructuredQuery.model_validate(stated | {"text": arguments.text})
    if query == StructuredQuery(intent=query.intent):
        raise BadRequest("Say what to look for: text, category, or another filter.")
    said = parse_query(arguments.text, QueryContext(), vocabulary).query if arguments.text else query
    return query if said.intent == "other" else said.model_copy(update=stated)


def _missing(ids: Sequence[int], found: Sequence[ProductCard]) -> list[int]:
    known = {card.id for card in found}
    return [one for one in dict.fromkeys(ids) if one not in known]


def card_json(card: ProductCard) -> dict[str, Any]:
    """What is not known is left out."""
    values = {
        "id": card.id,
        "name": card.name,
        "price": card.price,
        "currency": "IDR",
        "promotion": card.promotion and card.promotion.model_dump(mode="json", exclude={"id"}),
        "stock": card.available_quantity,
        "category": card.category,
        "brand": card.brand,
        "condition": card.condition,
        "shop": card.supplier_name,
        "city": card.city,
        "distance_km": card.distance_km,
        "fulfilment": card.fulfilment and card.fulfilment.model_dump(),
        "rating": card.rating,
        "rating_count": card.rating_count or None,
        "attributes": dict(card.attributes) or None,
        "description": card.description or None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _add_pictures(found: dict[str, Any], cards: Sequence[ProductCard], address: str) -> None:
    of_products = {card.id: card.picture for card in cards}
    elsewhere: Mapping[str, Any] = found.get("nearest_elsewhere") or {}
    for product in (*found["products"], *elsewhere.get("products", ())):
        if picture := of_products[product["id"]]:
            product["picture"] = f"{address}{picture.urls.medium}"


def _found_json(found: FoundGoods, query: StructuredQuery, viewer: Viewer) -> dict[str, Any]:
    applied = without_unused_radius(query, viewer)
    products, nearest = list(map(card_json, found.cards)), list(map(card_json, found.nearest))
    for product in products[found.total :] if found.unverified_words else ():
        product["partial_match"] = True
    relaxations = [
        {"without": one.without, "total": one.count, "total_is_exact": one.count_is_exact} for one in found.relaxations
    ]
    values = {
        "understood": applied.model_dump(exclude_defaults=True),
        "products": products,
        "total": found.total,
        "total_is_exact": found.total_is_exact,
        "corrected": found.corrected,
        "not_applied": {"radius_km": _NO_CENTRE} if applied != query else None,
        "missing": list(found.missing) or None,
        "relaxations": relaxations or None,
        "nearest_elsewhere": {"place": found.nearest_place, "products": nearest} if nearest else None,
    }
    return {name: value for name, value in values.items() if value is not None}


def schema_of(model: type[BaseModel], categories: Sequence[str]) -> dict[str, Any]:
    """Without titles, defaults and nulls: models read it, and leave out what they do not need."""
    schema: dict[str, Any] = _plain(model.model_json_schema())
    schema.pop("$defs", None)
    for name in _NOT_FOR_TOOLS:
        schema["properties"].pop(name, None)
    if "category" in schema["properties"] and 0 < len(categories) <= _MAX_CATEGORIES:
        schema["properties"]["category"]["enum"] = list(categories)
    return schema


def _plain(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    options = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(options) == 1:
        schema = {**{name: value for name, value in schema.items() if name != "anyOf"}, **options[0]}
    return {
        name: {key: _plain(value) for key, value in part.items()} if name == "properties" else _plain(part)
        for name, part in schema.items()
        if name not in ("title", "default")
    }


def problems_of(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    lines = []
    for one in problems[:_MAX_PROBLEMS]:
        name = ".".join(map(str, one["loc"]))[:_MAX_NAME_CHARS] or "arguments"
        lines.append(f"{name}: {one['msg'][:_MAX_PROBLEM_CHARS]}")
    return f"Wrong arguments. {'; '.join(lines)}"
