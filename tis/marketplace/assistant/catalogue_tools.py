"""The catalogue as tools of a language model: `search_catalog`, `lookup_catalog` and `compare_products`.

The names are those of the Catalog capability of UCP, which Shopify's MCP servers have, too. The tools only read. They
give what everybody sees: no address, coordinates, e-mail or phone of anybody. Who asks, and from where distances are
measured, is never an argument.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Protocol, TypeVar

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy.orm import Session

from tis.errors import ServiceError
from tis.marketplace.assistant.cards import cards_of
from tis.marketplace.assistant.compared_cards import compared_cards
from tis.marketplace.assistant.finding import find_goods
from tis.marketplace.assistant.goods import MAX_CARDS, FoundGoods, ProductCard, Viewer
from tis.marketplace.context import MarketServices
from tis.marketplace.query_parser.structured_query import ProductId, StructuredQuery
from tis.mcp_client.tool_types import LocalTool, McpTool, McpToolResult

_MAX_PROBLEMS = 3
_MAX_PROBLEM_CHARS = 200
_READ_ONLY = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_NOT_FOR_TOOLS = ("intent", "compare")  # say what a sentence wants; here the name of the tool says it
_MAX_CATEGORIES = 200  # in the schema

ViewerOf = Callable[[Session], Viewer]
ProductIds = Annotated[list[ProductId], Field(max_length=MAX_CARDS, description="ids of products that were found")]


class SearchArguments(StructuredQuery):
    limit: int = Field(MAX_CARDS, ge=1, le=MAX_CARDS, description="products in the result")


class LookupArguments(BaseModel):
    ids: Annotated[ProductIds, Field(min_length=1)]

    model_config = ConfigDict(extra="forbid")


class CompareArguments(BaseModel):
    ids: Annotated[ProductIds, Field(min_length=2)]

    model_config = ConfigDict(extra="forbid")


def catalogue_tools(market: MarketServices, viewer_of: ViewerOf, categories: Sequence[str] = ()) -> list[LocalTool]:
    """`viewer_of` runs in the transaction of each call. `categories` become an enum of the schema."""
    tools = CatalogueTools(market, viewer_of)
    return [
        LocalTool(_tool("search_catalog", _SEARCH, _search_schema(categories)), tools.search),
        LocalTool(_tool("lookup_catalog", _LOOKUP, _schema(LookupArguments)), tools.lookup),
        LocalTool(_tool("compare_products", _COMPARE, _schema(CompareArguments)), tools.compare),
    ]


_SEARCH = (
    "Search the products of an Indonesian marketplace. `text` may be a plain sentence in Indonesian or English, such as "
    "'laptop gaming di Jakarta di bawah 12 juta'; filters are exact. Prices are in rupiah. Gives at most 8 products; "
    "with few or none, `relaxations` says which filter hides how many."
)
_LOOKUP = "Read products by their ids: current price, stock and shop. `not_found` has ids that are not sold any more."
_COMPARE = "Compare 2 to 8 products by their ids, row by row; `best` is the id with the best value of a row."


class CatalogueTools:
    """Each call is a short transaction of its own, in a thread."""

    def __init__(self, market: MarketServices, viewer_of: ViewerOf) -> None:
        self._market, self._viewer_of = market, viewer_of

    async def search(self, arguments: Mapping[str, Any]) -> McpToolResult:
        return await _result(SearchArguments, arguments, self._search)

    async def lookup(self, arguments: Mapping[str, Any]) -> McpToolResult:
        return await _result(LookupArguments, arguments, self._lookup)

    async def compare(self, arguments: Mapping[str, Any]) -> McpToolResult:
        return await _result(CompareArguments, arguments, self._compare)

    def _search(self, arguments: SearchArguments) -> Mapping[str, Any]:
        query = StructuredQuery.model_validate(arguments.model_dump(exclude={"limit"}))
        if query == StructuredQuery():
            raise BadArguments("Say what to look for: text, category, or another filter.")
        with self._market.reading() as session:
            viewer = self._viewer_of(session)
            return _found_json(find_goods(self._market.search, session, query, viewer), arguments.limit)

    def _lookup(self, arguments: LookupArguments) -> Mapping[str, Any]:
        found = self._cards(arguments.ids)[0]
        return {"products": [card_json(card) for card in found], "not_found": _missing(arguments.ids, found)}

    def _compare(self, arguments: CompareArguments) -> Mapping[str, Any]:
        found, viewer = self._cards(arguments.ids)
        missing = _missing(arguments.ids, found)
        if len(found) < 2:
            raise BadArguments(f"Nothing to compare: of these products {len(found)} are sold now. Unknown: {missing}.")
        rows = compared_cards(found, viewer.language)
        return {"products": [card_json(card) for card in found], "rows": rows, "not_found": missing}

    def _cards(self, ids: Sequence[int]) -> tuple[Sequence[ProductCard], Viewer]:
        with self._market.reading() as session:
            viewer = self._viewer_of(session)
            return cards_of(self._market.search, session, list(dict.fromkeys(ids)), viewer), viewer


class BadArguments(Exception):
    """The arguments have the right form, but make no sense."""


ArgumentsT = TypeVar("ArgumentsT", bound=BaseModel)


async def _result(
    model: type[ArgumentsT], arguments: Mapping[str, Any], read: Callable[[ArgumentsT], Mapping[str, Any]]
) -> McpToolResult:
    try:
        checked = model.model_validate(dict(arguments))
        # Abandoned on cancel: a caller's deadline must not wait for the database.
        text = await to_thread.run_sync(lambda: _dumped(read(checked)), abandon_on_cancel=True)
    except ValidationError as error:
        return McpToolResult(_problems(error), is_error=True)
    except BadArguments as error:
        return McpToolResult(str(error), is_error=True)
    except ServiceError as error:  # the database does not answer, or the session of the caller has ended
        return McpToolResult(error.message, is_error=True)
    return McpToolResult(text, is_error=False)


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


def _found_json(found: FoundGoods, limit: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "products": [card_json(card) for card in found.cards[:limit]],
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
            "products": [card_json(card) for card in found.nearest[:limit]],
        }
    return result


def _tool(name: str, description: str, schema: dict[str, Any]) -> McpTool:
    return McpTool(name, description, schema, _READ_ONLY)


def _search_schema(categories: Sequence[str]) -> dict[str, Any]:
    schema = _schema(SearchArguments)
    for name in _NOT_FOR_TOOLS:
        del schema["properties"][name]
    schema.pop("$defs", None)
    if categories:
        schema["properties"]["category"]["enum"] = list(categories[:_MAX_CATEGORIES])
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
