"""Loads the `Vocabulary` from the database, and tells when it has changed."""

import time
from dataclasses import replace
from uuid import uuid4

from sqlalchemy import update
from sqlalchemy.orm import Session

from tis.marketplace.kit.fields import key_of
from tis.marketplace.reading.tokens import tokenize
from tis.marketplace.reading.vocabulary import Phrase, Vocabulary
from tis.marketplace.search.sql import run, run_once
from tis.marketplace.tables import TaxonomyVersion

_MIN_TWO_WAY_CHARS = 3  # shorter synonyms expand in one direction only
_SYNONYMS = "SELECT term, means, category, is_broader FROM synonyms ORDER BY term"
_MAX_SYNONYMS = 24  # of one phrase
_MAX_AGE_OF_BRANDS = 60.0
_MAX_BRANDS = 20_000
# Jumps from one brand to the next in the index and does not read every row.
_BRANDS = (
    "WITH RECURSIVE brands (brand) AS (SELECT min(brand_key) FROM product_search UNION ALL"
    " SELECT (SELECT min(brand_key) FROM product_search WHERE brand_key > brands.brand) FROM brands"
    f" WHERE brands.brand IS NOT NULL) SELECT brand FROM brands WHERE brand IS NOT NULL LIMIT {_MAX_BRANDS}"
)


class VocabularyCache:
    """The vocabulary as this transaction sees it, loaded again only after a change of any server.

    Shops bring new brands all the time, so these are read again when a minute has passed.
    """

    def __init__(self) -> None:
        self._loaded: tuple[str, Vocabulary] | None = None
        self._brands: tuple[float, tuple[str, ...]] | None = None
        self._with_brands: tuple[Vocabulary, Vocabulary] | None = None

    def current(self, session: Session) -> Vocabulary:
        # Read first: what is loaded is at least as new as this.
        version = next((version for [version] in run_once(session, "SELECT version FROM taxonomy_version")), "")
        loaded = self._loaded
        if loaded is None or loaded[0] != version:
            loaded = self._loaded = (version, load_vocabulary(session))
        return loaded[1]

    def with_brands(self, session: Session) -> Vocabulary:
        brands = self.brands(session)
        current, found = self.current(session), self._with_brands
        # The same object as long as nothing changes: others keep by it what they have made of it.
        if found is None or found[0] is not current or found[1].brands is not brands:
            found = self._with_brands = (current, replace(current, brands=brands))
        return found[1]

    def brands(self, session: Session) -> tuple[str, ...]:
        brands = self._brands
        if brands is None or time.monotonic() - brands[0] > _MAX_AGE_OF_BRANDS:
            read = tuple(sorted(brand for [brand] in run(session, _BRANDS)))
            brands = self._brands = (time.monotonic(), brands[1] if brands and brands[1] == read else read)
        return brands[1]


class FixedVocabulary:
    """The vocabulary of one moment, whatever the tables have later."""

    def __init__(self, vocabulary: Vocabulary, brands: tuple[str, ...]) -> None:
        self._vocabulary = vocabulary
        self._with_brands = replace(vocabulary, brands=brands)

    def current(self, session: Session) -> Vocabulary:
        return self._vocabulary

    def with_brands(self, session: Session) -> Vocabulary:
        return self._with_brands

    def brands(self, session: Session) -> tuple[str, ...]:
        return self._with_brands.brands


def expire_categories(session: Session) -> None:
    """Call it in every transaction that changes categories or synonyms. A version that is rolled back stays unused."""
    session.execute(update(TaxonomyVersion).values(version=uuid4().hex))


def load_vocabulary(session: Session) -> Vocabulary:
    rows = run(session, "SELECT slug, parent, name_id, name_en FROM categories ORDER BY slug")
    names = {slug: _spellings(slug, name_id, name_en) for slug, _, name_id, name_en in rows}
    own_names = {slug: {_phrase(name) for name in (slug, *own)} for slug, _, *own in rows}
    terms = {_phrase(name) for _, _, *own in rows for name in own}
    broader = set[Phrase]()
    synonyms: dict[Phrase, dict[Phrase, None]] = {}  # in the order of their rows
    for term, means, category, is_broader in run(session, _SYNONYMS):
        own, others = _phrase(term), [_phrase(one) for one in means.split(",")]
        if category is not None:
            names[category] |= _spellings(term)
            # "palu, hammer" is one of the tools, "perkakas, tools" all of them.
            if own_names[category].intersection(others):
                own_names[category].add(own)
        terms.add(own)
        broader |= {own} if is_broader else set()
        for phrase in [own] if is_broader else (own, *others):
            # A buyer's "hp" is a telephone, a seller's "hp" a maker of printers.
            targets = [one for one in (own, *others) if one != own or len(term) >= _MIN_TWO_WAY_CHARS]
            synonyms.setdefault(phrase, {}).update(dict.fromkeys(one for one in targets if one and one != phrase))
    phrases: dict[Phrase, tuple[str, ...]] = {}
    for slug, of_category in sorted(own_names.items()):
        for phrase in sorted(of_category):
            phrases[phrase] = (*phrases.get(phrase, ()), slug)
            targets = [one for one in sorted(of_category) if len(" ".join(one)) >= _MIN_TWO_WAY_CHARS]
            synonyms.setdefault(phrase, {}).update(dict.fromkeys(one for one in targets if one != phrase))
    return Vocabulary(
        names,
        {slug: parent for slug, parent, *_ in rows},
        phrases,
        {phrase: tuple(others)[:_MAX_SYNONYMS] for phrase, others in synonyms.items()},
        frozenset(broader),
        single_words=tuple(sorted(term[0] for term in terms if len(term) == 1)),
    )


def _phrase(name: str) -> Phrase:
    return tuple(tokenize(name))


def _spellings(*names: str) -> set[str]:
    keys = {key_of(name) for name in names}
    return keys | {key.replace("-", " ") for key in keys}
