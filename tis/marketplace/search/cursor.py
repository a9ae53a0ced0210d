"""Cursors: the position of the last product of a page, and how the text of its query was understood."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from tis.errors import BadRequest
from tis.marketplace.kit.cursor_key import FOREIGN_CURSOR, CursorKey
from tis.marketplace.kit.fields import MAX_ID
from tis.marketplace.reading.tokens import tokenize
from tis.marketplace.search.attribute_filter import AttributeFilter
from tis.marketplace.search.geo_filter import LAST_RING
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.text_query import MAX_TIERS, TextQuery

MAX_CURSOR_CHARS = 8000
Number = Annotated[int, Field(ge=-MAX_ID, le=MAX_ID)] | Annotated[float, Field(allow_inf_nan=False)]
Keys = tuple[str, ...]


@dataclass(frozen=True)
class ResolvedQuery:
    """How a `ProductQuery` was understood. A cursor repeats it, so new products do not change what a text means."""

    text_query: TextQuery | None = None
    corrected: str | None = None
    did_you_mean: str | None = None
    relaxed: bool = False
    is_cut: bool = False
    # Keys of the filters. Not part of a cursor, as there may be any number of them.
    categories: Keys | None = None
    cities: Keys | None = None
    are_cities_rare: bool = False  # they have few products, see `resolve_cities`
    excluded_cities: Keys = ()
    product_ids: tuple[int, ...] | None = None
    rare_attributes: tuple[AttributeFilter, ...] = ()  # filters that few products pass


@dataclass(slots=True)  # not frozen: a search makes many, and frozen ones take three times as long
class ListPosition:
    """Where a product stands in a list. `value` is what the list is sorted by.

    `max_product_id` was the newest product when the first page was read; later ones are not part of a ranked list.
    """

    resolved: ResolvedQuery
    product_id: Annotated[int, Field(ge=0, le=MAX_ID)]
    value: Number | None = None
    tier: Annotated[int, Field(ge=0, lt=MAX_TIERS)] = 0
    max_product_id: Annotated[int, Field(ge=0, le=MAX_ID)] = MAX_ID
    ring: Annotated[int, Field(ge=0, le=LAST_RING)] = 0  # around the buyer


_POSITION = TypeAdapter(ListPosition)
_KEYS_OF_FILTERS = {
    "categories",
    "cities",
    "are_cities_rare",
    "excluded_cities",
    "product_ids",
    "rare_attributes",
}


def encode_cursor(position: ListPosition, query: ProductQuery, key: CursorKey) -> str:
    payload = _POSITION.dump_json(position, exclude_defaults=True, exclude={"resolved": _KEYS_OF_FILTERS})
    return key.encode(payload, query_bytes(query))


def decode_cursor(cursor: str, query: ProductQuery, key: CursorKey) -> ListPosition:
    """Validates its fields, too: another version may have signed it."""
    if len(cursor) > MAX_CURSOR_CHARS:
        raise BadRequest(FOREIGN_CURSOR)
    payload = key.decode(cursor, query_bytes(query))
    try:
        position = _POSITION.validate_json(payload)
        _validate(position.resolved)
    except (ValueError, ValidationError):
        raise BadRequest(FOREIGN_CURSOR) from None
    return position


def _validate(resolved: ResolvedQuery) -> None:
    """The full-text index gets the words as they stand, so they must be tokens and contain no syntax."""
    for group in resolved.text_query.groups if resolved.text_query else ():
        for word in (word for term in group.terms for word in term.words):
            if tokenize(word) != [word]:
                raise ValueError
        for token in group.category_tokens:
            if not token.startswith("§") or tokenize(token) != token.removeprefix("§·").removeprefix("§").split("·"):
                raise ValueError
        for token in group.shop_tokens:
            if not token.startswith("¶·") or tokenize(token) != [token.removeprefix("¶·")]:
                raise ValueError
        if not group.terms and not group.category_tokens:
            raise ValueError
    if resolved.text_query and any(stage >> len(resolved.text_query.groups) for stage in resolved.text_query.stages):
        raise ValueError
    of_filters = (resolved.categories, resolved.cities, resolved.product_ids, resolved.rare_attributes or None)
    if any(one is not None for one in of_filters):
        raise ValueError


def query_bytes(query: ProductQuery) -> bytes:
    # `surrogatepass`: a query with a lone surrogate must not fail here.
    return repr(query).encode("utf-8", "surrogatepass")
