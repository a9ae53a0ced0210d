"""Of several nouns, the one that is wanted: a `tas laptop` is a bag, and so is a `laptop bag`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from tis.marketplace.reading.tokens import category_token, head_token
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.spelling import document_counts
from tis.marketplace.search.sql import run
from tis.marketplace.search.text_query import TermGroup, TextMatch, TextQuery

_LEAST_SHARE_OF_HEADS = 0.3  # of the products with a word, whose name it must begin
_MIN_SHOWING_ORDER, _NUM_SHOWING_ORDER = 2, 20  # products that show which noun stands for the goods
_NUM_SHOWING_CATEGORY = 200
_LEAST_SHARE_OF_CATEGORY = 0.6
_MAX_GROUPS = 8  # a longer text names many goods
# Names of laptops say these of what is inside, but an `ssd laptop` is no laptop.
_COMPONENTS = frozenset(
    "ssd hdd harddisk hardisk ram memori memory vga gpu prosesor processor cpu baterai battery layar lcd kamera "
    "keyboard kipas fan".split()
)
_PURPOSE_WORDS = frozenset("untuk utk buat bwt for".split())


def purpose_of(said: Sequence[str]) -> frozenset[str]:
    """The words behind `untuk`: what the goods are for, not what they are."""
    start = next((number for number, word in enumerate(said) if number and word in _PURPOSE_WORDS), len(said))
    return frozenset(said[start:]) - frozenset(said[:start])


def with_main_noun(
    session: Session, index: TextIndex, query: TextQuery, purpose: frozenset[str], *, names_shop: bool = False
) -> TextQuery:
    """First the goods that the main noun says, then others that match the words."""
    if len(query.groups) > _MAX_GROUPS:
        return query
    nouns = nouns_of(session, query.groups)
    before = [one for one in nouns if one.terms[0].words[0] not in purpose]
    if not before:
        return query
    main, *others = before
    if others and main.terms[0].words[0] not in _COMPONENTS and _is_english_order(session, index, main, others[-1]):
        main = others[-1]
    return with_noun(session, index, query, main, is_sure=len(nouns) > 1 or bool(purpose) or names_shop)


def with_noun(session: Session, index: TextIndex, query: TextQuery, main: TermGroup, *, is_sure: bool) -> TextQuery:
    """With `is_sure`, goods that are something else come behind all that are."""
    heads = tuple(dict.fromkeys(head_token(term.words[0]) for term in main.terms))
    if not any(group.category_tokens for group in query.groups if group != main):
        query = replace(query, likely_categories=_likely_categories(session, index, main, heads))
    query = replace(query, heads=heads)
    if not is_sure:
        return query
    kind, everything = TermGroup((), (*heads, *main.category_tokens)), (1 << len(query.groups)) - 1
    stages = (everything | 1 << len(query.groups), everything)
    return replace(query, groups=(*query.groups, kind), stages=stages)


def nouns_of(
    session: Session, groups: Sequence[TermGroup], least_share: float = _LEAST_SHARE_OF_HEADS
) -> list[TermGroup]:
    """Words that names of products begin with, of so large a share of the products with the word."""
    words = {word for group in groups for term in group.terms for word in term.words}
    counts = document_counts(session, [*words, *map(head_token, words)])

    def is_noun(group: TermGroup) -> bool:
        heads = sum(counts.get(head_token(term.words[0]), 0) for term in group.terms)
        num = max(min(counts.get(word, 0) for word in term.words) for term in group.terms)
        return bool(group.category_tokens) or (heads > 0 and heads >= least_share * num)

    return [group for group in groups if is_noun(group)]


def _is_english_order(session: Session, index: TextIndex, first: TermGroup, last: TermGroup) -> bool:
    """Names say it: there is a "Charger Laptop", and no laptop's name has a charger in it."""

    def num_named(head: TermGroup, other: TermGroup) -> int:
        tokens = tuple(head_token(term.words[0]) for term in head.terms)
        match = TextMatch(TextQuery((TermGroup(other.terms),)), scope="name", required_tokens=(tokens,))
        return len(_categories(session, index, match, _NUM_SHOWING_ORDER))

    in_english = num_named(last, first)
    return in_english >= _MIN_SHOWING_ORDER and in_english > 2 * num_named(first, last)


def _likely_categories(session: Session, index: TextIndex, main: TermGroup, heads: tuple[str, ...]) -> tuple[str, ...]:
    """The category of most products whose name begins with the noun: a `coffee table` is no coffee."""
    match = TextMatch(TextQuery((TermGroup((), heads),)))
    found = Counter(_categories(session, index, match, _NUM_SHOWING_CATEGORY))
    category, count = max(found.items(), key=lambda one: (one[1], one[0]), default=("", 0))
    token = category_token(category)
    return (token,) if token and count >= _LEAST_SHARE_OF_CATEGORY * found.total() else ()


def _categories(session: Session, index: TextIndex, match: TextMatch, most: int) -> list[str]:
    """Of each product that matches, but at most so many."""
    source = index.match_source(match)
    rows = run(session, source.select("p.category_key", "LIMIT :most"), {**source.values, "most": most})
    return [category for [category] in rows]
