"""The catalogue as tools of a language model: `search_catalog`, `lookup_catalog` and `compare_products`.

The names are those of the Catalog capability of UCP, which Shopify's MCP servers have, too. The tools only read. They
give what everybody sees: no address, coordinates, e-mail or phone of anybody. Who asks, and from where distances are
measured, is never an argument.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy.orm import Session

from tis.errors import ServiceError
from tis.marketplace.assistant.cards import cards_of
from tis.marketplace.assistant.finding import find_goods
from tis.marketplace.assistant.goods import MAX_CARDS, FoundGoods, ProductCard, Viewer
from tis.marketplace.context import MarketServices
from tis.marketplace.products.compare import compared_rows
from tis.marketplace.query_parser.structured_query import MAX_QUERY_CHARS, ProductId, StructuredQuery
from tis.mcp_client.tool_types import LocalTool, McpTool, McpToolResult

_MAX_PROBLEMS = 3
_MAX_PROBLEM_CHARS = 200
_READ_ONLY = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_NOT_FOR_TOOLS = ("intent", "compare")  # say what a sentence wants; here the name of the tool says it
_MAX_CATEGORIES = 200  # more would make the schema longer than the prompts of small models

ViewerOf = Callable[[Session], Viewer]
ProductIds = Annotated[list[ProductId], Field(max_length=MAX_CARDS, description="ids of products that were found")]


class SearchArguments(StructuredQuery):
    text: str = Field("", max_length=MAX_QUERY_CHARS, description="words to look for, or a plain sentence")
    limit: int = Field(MAX_CARDS, ge=1, le=MAX_CARDS, description="products in the result")


class LookupArguments(BaseModel):
    ids: Annotated[ProductIds, Field(min_length=1)]

    model_config = ConfigDict(extra="forbid")


class CompareArguments(BaseModel):
    ids: Annotated[ProductIds, Field(min_length=2)]

    model_config = ConfigDict(extra="forbid")


def catalogue_tools(
    market: MarketServices,
    viewer_of: ViewerOf,
    categories: Sequence[str] = (),
    on_cards: Callable[[Sequence[ProductCard]], None] | None = None,
) -> list[LocalTool]:
    """`viewer_of` runs in the transaction of each call. `categories` become an enum of the schema. `on_cards` gets the
    products of each call, on the event loop."""
    tools = CatalogueTools(market, viewer_of, on_cards)
    return [
        LocalTool(_tool("search_catalog", _SEARCH, _search_schema(categories)), tools.search),
        LocalTool(_tool("lookup_catalog", _LOOKUP, _schema(LookupArguments)), tools.lookup),
        LocalTool(_tool("compare_products", _COMPARE, _schema(CompareArguments)), tools.compare),
    ]


_SEARCH = (
    "Search the products of an Indonesian marketplace. `text` may be a plain sentence in Indonesian or English, such "
    "as 'laptop gaming di Jakarta di bawah 12 juta'; the other filters are exact. Prices are in rupiah. Gives at most "
    "8 products; with few or none, `relaxations` says which filter hides how many."
)
_LOOKUP = "Read products by their ids: current price, stock and shop. `not_found` has ids that are not sold any more."
_COMPARE = "Compare 2 to 8 products by their ids, row by row; `best` is the id with the best value of a row."


class BadArguments(Exception):
    """The arguments have the right form, but make no sense."""


Answer = tuple[dict[str, Any], Sequence[ProductCard]]
ArgumentsT = TypeVar("ArgumentsT", bound=BaseModel)


class CatalogueTools:
    """Each call is a short transaction of its own, in a thread."""

    def __init__(
        self,
        market: MarketServices,
        viewer_of: ViewerOf,
        on_cards: Callable[[Sequence[ProductCard]], None] | None = None,
    ) -> None:
        self._market, self._viewer_of, self._on_cards = market, viewer_of, on_cards

    async def search(self, arguments: Mapping[str, Any]) -> McpToolResult:
        return await self._result(SearchArguments, arguments, self._search)

    async def lookup(self, arguments: Mapping[str, Any]) -> McpToolResult:
        return await self._result(LookupArguments, arguments, self._lookup)

    async def compare(self, arguments: Mapping[str, Any]) -> McpToolResult:
        return await self._result(CompareArguments, arguments, self._compare)

    async def _result(
        self,
        model: type[ArgumentsT],
        arguments: Mapping[str, Any],
        read: Callable[[Session, Viewer, ArgumentsT], Answer],
    ) -> McpToolResult:
        try:
            checked = model.model_validate(dict(arguments))
            # Abandoned on cancel: the deadline of the caller must not wait for the database.
            text, cards = await to_thread.run_sync(self._read, read, checked, abandon_on_cancel=True)
        except ValidationError as error:
            return McpToolResult(_problems(error), is_error=True)
        except BadArguments as error:
            return McpToolResult(str(error), is_error=True)
        except ServiceError as error:  # the database does not answer, or the session of the caller has ended
            return McpToolResult(error.message, is_error=True)
        if self._on_cards:
            self._on_cards(cards)
        return McpToolResult(text, is_error=False)

    def _read(
        self, read: Callable[[Session, Viewer, ArgumentsT], Answer], arguments: ArgumentsT
    ) -> tuple[str, Sequence[ProductCard]]:
        with self._market.reading() as session:
            answer, cards = read(session, self._viewer_of(session), arguments)
        return _dumped(answer), cards

    def _search(self, session: Session, viewer: Viewer, arguments: SearchArguments) -> Answer:
        query = StructuredQuery.model_validate(arguments.model_dump(exclude={"limit"}))
        if query == StructuredQuery():
            raise BadArguments("Say what to look for: text, category, or another filter.")
        found = find_goods(self._market.search, session, query, viewer)
        found = replace(found, cards=found.cards[: arguments.limit], nearest=found.nearest[: arguments.limit])
        return _found_json(found), [*found.cards, *found.nearest]

    def _lookup(self, session: Session, viewer: Viewer, arguments: LookupArguments) -> Answer:
        cards = cards_of(self._market.search, session, arguments.ids, viewer)
        return {"products": list(map(card_json, cards)), "not_found": _missing(arguments.ids, cards)}, cards

    def _compare(self, session: Session, viewer: Viewer, arguments: CompareArguments) -> Answer:
        cards = cards_of(self._market.search, session, arguments.ids, viewer)
        missing = _missing(arguments.ids, cards)
        if len(cards) < 2:
            raise BadArguments(f"Name two products or more that are sold. Not found: {missing or 'none'}.")
        return {"products": list(map(card_json, cards)), "rows": _rows(cards, viewer), "not_found": missing}, cards


def _rows(cards: Sequence[ProductCard], viewer: Viewer) -> list[dict[str, Any]]:
    return [
        {
            "field": row.field,
            "label": row.label,
            "values": row.values,
            "best": None if row.best is None else cards[row.best].id,
        }
        for row in compared_rows(cards, viewer.language)
        if any(value is not None for value in row.values)
    ]


def _dumped(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _problems(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in problems[:_MAX_PROBLEMS]]
    return "Wrong arguments. " + "; ".join(line[:_MAX_PROBLEM_CHARS] for line in lines)


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


def _found_json(found: FoundGoods) -> dict[str, Any]:
    result: dict[str, Any] = {
        "products": [card_json(card) for card in found.cards],
        "total": found.total,
        "total_is_exact": found.total_is_exact,
    }
    if found.corrected:
        result["corrected"] = found.corrected
    if found.unverified_words:
        result["some_match_only_some_words"] = True
    if found.relaxations:
        result["relaxations"] = [
            {"without": one.without, "total": one.count, "total_is_exact": one.is_exact} for one in found.relaxations
        ]
    if found.nearest:
        result["nearest_elsewhere"] = {
            "place": found.nearest_place,
            "products": [card_json(card) for card in found.nearest],
        }
    return result


def _tool(name: str, description: str, schema: dict[str, Any]) -> McpTool:
    return McpTool(name, description, schema, _READ_ONLY)


def _search_schema(categories: Sequence[str]) -> dict[str, Any]:
    schema = _schema(SearchArguments)
    for name in _NOT_FOR_TOOLS:
        del schema["properties"][name]
    schema.pop("$defs", None)
    if 0 < len(categories) <= _MAX_CATEGORIES:
        schema["properties"]["category"]["enum"] = list(categories)
    return schema


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    """Without titles, defaults and nulls: models read it, and leave out what they do not need."""
    schema: dict[str, Any] = _plain(model.model_json_schema())
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
