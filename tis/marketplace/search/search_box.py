"""What the search box understands: filters and an order, as the assistant reads them, and the words that are left."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tis.marketplace.reading.parse import parse_sentence
from tis.marketplace.reading.sentence import Sentence
from tis.marketplace.reading.structured_query import QueryContext, StructuredQuery
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.structured_search import product_query

_MAX_WORDS = 25  # a pasted text names prices and places for other reasons
# What a text may say, by the names of the query that it becomes, and the filters that go before it.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "min_price": ("min_price", "max_price"),
    "max_price": ("min_price", "max_price"),
    "cities": ("city", "cities", "provinces"),
    "provinces": ("city", "cities", "provinces"),
    "exclude_cities": ("exclude_cities",),
    "exclude_brands": ("exclude_brands", "brand", "brands"),
    "exclude_terms": ("exclude_terms",),
    "condition": ("condition",),
    "min_rating": ("min_rating",),
    "quantity": ("quantity",),
    "radius_km": ("radius_km",),
    "near_user": ("radius_km",),
    "sort": ("sort",),
}
_NO_ORDERS = ("relevance", None)


@dataclass(frozen=True)
class BoxReading:
    """`said`: what was read, by the names of `StructuredQuery`, and brands that no product has."""

    query: ProductQuery
    said: Mapping[str, Any] = field(default_factory=dict)


def read_box(query: ProductQuery, vocabulary: Vocabulary) -> BoxReading:
    """A filter that the query has goes before what its text says; those words are looked for then."""
    text = query.text
    if text is None or len(text.split()) > _MAX_WORDS:
        return BoxReading(query)
    sentence = Sentence(text)
    parsed = parse_sentence(sentence, QueryContext(), vocabulary)
    said = parsed.query
    if said.intent in ("other", "compare"):
        return BoxReading(query)
    names = {name for name in _FIELDS if _is_said(said, name) and _is_free(query, name)}
    if said.sort in _NO_ORDERS or (said.sort == "distance" and query.origin is None):
        names -= {"sort", "near_user", "radius_km"}
    shown: dict[str, Any] = {}
    if unknown := [brand for brand in said.brands if brand not in vocabulary.brands]:
        shown["no_goods_of"] = unknown
    rest = _rest(sentence, names)
    has_words = any(map(str.isalnum, rest))
    if not names or not (has_words or "sort" in names):  # `palu` alone is a hammer's name, or a shop's
        return BoxReading(query, shown)
    wanted = product_query(said, query.origin)
    changes = {name: getattr(wanted, name) for name in _of_query(names)} | {"text": rest if has_words else None}
    if has_words and "sort" in changes:
        changes["tie_order"] = changes.pop("sort")  # the cheapest of the phones, not of all that has to do with phones
    shown = {name: getattr(said, name) for name in sorted(names) if name != "near_user"} | shown
    return BoxReading(replace(query, **changes), shown)


def _is_said(said: StructuredQuery, name: str) -> bool:
    return getattr(said, name) not in (None, [], False)


def _is_free(query: ProductQuery, name: str) -> bool:
    return not any(getattr(query, one) for one in _FIELDS[name])


def _of_query(names: set[str]) -> set[str]:
    found = names - {"near_user", "cities"}
    return found | {"city", "cities", "provinces"} if names & {"cities", "provinces"} else found


def _rest(sentence: Sentence, names: set[str]) -> str:
    """The text without the words of these fields."""
    letters = list(sentence.said)
    for fields, start, end in sentence.taken:
        if fields & names:
            letters[start:end] = [" "] * (end - start)
    return " ".join("".join(letters).split())
