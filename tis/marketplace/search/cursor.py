"""Cursors: the position of the last product of a page, and how the text of its query was understood."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from tis.errors import BadRequest
from tis.marketplace.kit.cursor_key import FOREIGN_CURSOR, CursorKey
from tis.marketplace.kit.fields import MAX_ID
from tis.marketplace.reading.tokens import tokenize
from tis.marketplace.search.geo_filter import LAST_RING
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.text_query import MAX_TIERS, TextQuery, UnderstoodText

MAX_CURSOR_CHARS = 8000
Number = Annotated[int, Field(ge=-MAX_ID, le=MAX_ID)] | Annotated[float, Field(allow_inf_nan=False)]


@dataclass(slots=True)  # not frozen: a search makes many, and frozen ones take three times as long
class ListPosition:
    """Where a product stands in a list. `value` is what the list is sorted by.

    `max_product_id` was the newest product when the first page was read; later ones are not part of a ranked list.
    """

    understood: UnderstoodText
    product_id: Annotated[int, Field(ge=0, le=MAX_ID)]
    value: Number | None = None
    tier: Annotated[int, Field(ge=0, lt=MAX_TIERS)] = 0
    max_product_id: Annotated[int, Field(ge=0, le=MAX_ID)] = MAX_ID
    ring: Annotated[int, Field(ge=0, le=LAST_RING)] = 0  # around the buyer
    is_fused: bool = False  # then `value` is its place among the fused ones


_POSITION = TypeAdapter(ListPosition)


def encode_cursor(position: ListPosition, query: ProductQuery, key: CursorKey) -> str:
    payload = _POSITION.dump_json(position, exclude_defaults=True)
    return key.encode(payload, query_bytes(query))


def decode_cursor(cursor: str, query: ProductQuery, key: CursorKey) -> ListPosition:
    """Validates its fields, too: another version may have signed it."""
    if len(cursor) > MAX_CURSOR_CHARS:
        raise BadRequest(FOREIGN_CURSOR)
    payload = key.decode(cursor, query_bytes(query))
    try:
        position = _POSITION.validate_json(payload)
        _validate(position.understood.text_query or TextQuery(()))
    except (ValueError, ValidationError):
        raise BadRequest(FOREIGN_CURSOR) from None
    return position


def _validate(query: TextQuery) -> None:
    """The full-text index gets the words as they stand, so they must be tokens and contain no syntax."""
    for group in query.groups:
        words = [[word] for term in group.terms for word in term.words]
        words += [token.removeprefix("§·").removeprefix("§").split("·") for token in group.category_tokens]
        words += [[token.removeprefix("¶·")] for token in group.shop_tokens]
        are_signed = all(token.startswith("§") for token in group.category_tokens)
        are_signed &= all(token.startswith("¶·") for token in group.shop_tokens)
        if (
            not are_signed
            or not (group.terms or group.category_tokens)
            or any(tokenize(" ".join(w)) != w for w in words)
        ):
            raise ValueError
    if any(stage >> len(query.groups) for stage in query.stages):
        raise ValueError
    # A kind stands beside words, and in stages alone.
    if any(group.is_kind for group in query.groups) and (
        not query.stages or all(group.is_kind for group in query.groups)
    ):
        raise ValueError


def query_bytes(query: ProductQuery) -> bytes:
    # `surrogatepass`: a query with a lone surrogate must not fail here.
    return repr(query).encode("utf-8", "surrogatepass")
