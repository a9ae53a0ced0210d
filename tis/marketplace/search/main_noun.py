"""Of two nouns, the one that is wanted: a `tas laptop` is a bag, and so is a `laptop bag`."""

from collections.abc import Callable, Sequence

from sqlalchemy.orm import Session

from tis.marketplace.search.spelling import document_counts
from tis.marketplace.search.text_query import TermGroup, TextMatch, TextQuery
from tis.marketplace.search.tokens import head_token

_LEAST_SHARE_OF_HEADS = 0.3  # of the products with a word, whose name it must begin
_ENOUGH = 20  # products that show which noun comes with which
# Names of laptops say these of what is inside, but an `ssd laptop` is no laptop.
_COMPONENTS = frozenset(
    "ssd hdd harddisk hardisk ram memori memory vga gpu prosesor processor cpu baterai battery layar lcd kamera "
    "keyboard kipas fan".split()
)
_PURPOSE_WORDS = frozenset("untuk utk buat bwt for".split())

CountMatches = Callable[[TextMatch, int], int]  # how many products match, at most the number given


def purpose_of(said: Sequence[str]) -> frozenset[str]:
    """The words behind `untuk`: what the goods are for, not what they are."""
    start = next((number for number, word in enumerate(said) if number and word in _PURPOSE_WORDS), len(said))
    return frozenset(said[start:]) - frozenset(said[:start])


def main_kind(
    session: Session, groups: Sequence[TermGroup], purpose: frozenset[str], count: CountMatches
) -> TermGroup | None:
    """The group of products that are what the main noun says; None if the query has less than two nouns."""
    nouns = _nouns(session, groups)
    if len(nouns) < 2:
        return None
    before = [one for one in nouns if one.terms[0].words[0] not in purpose]
    if not before:
        return None
    main, *others = before
    if others and main.terms[0].words[0] not in _COMPONENTS and _is_english_order(main, others[-1], count):
        main = others[-1]
    tokens = [head_token(word) for term in main.terms for word in (term.words[0],)]
    return TermGroup((), tuple(dict.fromkeys([*tokens, *main.category_tokens])))


def _nouns(session: Session, groups: Sequence[TermGroup]) -> list[TermGroup]:
    """Words that names of products begin with."""
    words = {word for group in groups for term in group.terms for word in term.words}
    counts = document_counts(session, [*words, *map(head_token, words)])

    def is_noun(group: TermGroup) -> bool:
        heads = sum(counts.get(head_token(term.words[0]), 0) for term in group.terms)
        num = max(min(counts.get(word, 0) for word in term.words) for term in group.terms)
        return bool(group.category_tokens) or (heads > 0 and heads >= _LEAST_SHARE_OF_HEADS * num)

    return [group for group in groups if is_noun(group)]


def _is_english_order(first: TermGroup, last: TermGroup, count: CountMatches) -> bool:
    """Names say it: there is a "Charger Laptop", and no laptop's name has a charger in it."""

    def num_named(head: TermGroup, other: TermGroup) -> int:
        tokens = tuple(head_token(term.words[0]) for term in head.terms)
        query = TextQuery((TermGroup(other.terms),))
        return count(TextMatch(query, scope="name", required_tokens=(tokens,)), _ENOUGH)

    return num_named(last, first) > num_named(first, last)
