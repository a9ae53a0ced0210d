"""Suggests, while somebody types, how the text may go on: with common words, categories, brands and products."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal

from sqlalchemy.orm import Session

from tis.marketplace.reading.tokens import tokenize
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.query import PageRequest, ProductQuery
from tis.marketplace.search.sql import run

SuggestionKind = Literal["word", "category", "brand", "product"]
_MIN_CHARS = 2  # a single letter begins a tenth of all words
_NUM_WORDS = 5
_NUM_CATEGORIES = 3
_NUM_BRANDS = 3
_NUM_PRODUCTS = 5
_MAX_LETTERS = 2000  # words that begin with the letters, of which the most common are suggested
_COMPLETIONS = (
    "SELECT term FROM (SELECT term, count FROM lexicon WHERE term >= :prefix AND term < :prefix_end"
    " ORDER BY term LIMIT :most) w ORDER BY count DESC, term LIMIT :words"
)


@dataclass(frozen=True)
class Suggestion:
    text: str
    kind: SuggestionKind
    category: str | None = None  # the slug, for a filter
    product_id: int | None = None


def suggest(session: Session, search: ProductSearch, text: str) -> list[Suggestion]:
    """None for less than two letters. Words complete the last one; what stands before it stays as it is."""
    words = tokenize(text)
    if not words or len(words[-1]) < _MIN_CHARS:
        return []
    vocabulary = search.vocabulary(session)
    found = [
        *_words(session, text, words[-1]),
        *_categories(vocabulary, words),
        *_brands(vocabulary, words),
        *_products(session, search, text),
    ]
    return list({(one.kind, one.text.casefold()): one for one in reversed(found)}.values())[::-1]


def _words(session: Session, text: str, prefix: str) -> list[Suggestion]:
    values = {"prefix": prefix, "prefix_end": prefix + "\U0010ffff", "most": _MAX_LETTERS, "words": 2 * _NUM_WORDS}
    terms = [term for [term] in run(session, _COMPLETIONS, values) if term.isalpha() and term != prefix]
    before = " ".join(text.split()[:-1])
    return [Suggestion(f"{before} {term}".strip(), "word") for term in terms[:_NUM_WORDS]]


def _categories(vocabulary: Vocabulary, words: list[str]) -> list[Suggestion]:
    found: dict[str, str] = {}
    for prefix in (" ".join(words), words[-1]):
        start = bisect_left(vocabulary.category_names, (prefix,))
        for name, slugs in vocabulary.category_names[start : start + _NUM_CATEGORIES]:
            for slug in slugs if name.startswith(prefix) else ():
                found.setdefault(slug, name)
    return [Suggestion(name, "category", category=slug) for slug, name in list(found.items())[:_NUM_CATEGORIES]]


def _brands(vocabulary: Vocabulary, words: list[str]) -> list[Suggestion]:
    prefix = " ".join(words)
    start = bisect_left(vocabulary.brands, prefix)
    near = vocabulary.brands[start : start + _NUM_BRANDS]
    return [Suggestion(brand, "brand") for brand in near if brand.startswith(prefix)]


def _products(session: Session, search: ProductSearch, text: str) -> list[Suggestion]:
    page = PageRequest(limit=_NUM_PRODUCTS, with_total=False)
    hits = search.find(session, search.read(session, ProductQuery(text=text)).query, page).hits
    return [Suggestion(hit.product.name, "product", product_id=hit.product.id) for hit in hits]
