"""A text query: groups of synonymous terms, all of which must match, and the relevance tiers of its matches."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field  # cursors contain text queries, and a client can forge a cursor

from tis.marketplace.reading.tokens import said_words
from tis.marketplace.search.index_tokens import head_token

# Parts of a product, each including the one before it. `labels` are brand, tags and category; `shop` includes the words
# of the shop's name, city and province.
TextScope = Literal["name", "labels", "text", "shop"]
MAX_WORDS = 24
MAX_STAGES = 32
MAX_TIERS = 12 * MAX_STAGES
MAX_FUSED = 40


@dataclass(frozen=True)
class ExcludedPhrase:
    """With `in_order` its words follow each other; else they may stand anywhere."""

    words: tuple[str, ...]
    in_order: bool = True

    @property
    def is_text(self) -> bool:
        return self.in_order and len(self.words) > 1


def excluded_phrases(terms: Iterable[str]) -> tuple[ExcludedPhrase, ...]:
    phrases: dict[ExcludedPhrase, None] = {}
    for term in terms:
        said = said_words(term)
        spellings = [[one.word for one in said]]
        if any(one.parts for one in said):  # `wi-fi` is indexed as wifi, and as two words
            spellings.append([part for one in said for part in one.parts or (one.word,)])
        for words in spellings:
            phrase = tuple(words)
            # Measures are indexed behind the other words: `16 GB` as 16gb.
            in_order = not any(letter.isdigit() for word in phrase for letter in word)
            if phrase:
                phrases[ExcludedPhrase(phrase, in_order)] = None
    return tuple(phrases)


@dataclass(frozen=True)
class Term:
    """Words that must all match. With `is_prefix`, the last one may be the beginning of a word."""

    words: Annotated[tuple[str, ...], Field(min_length=1)]
    is_prefix: bool = False


@dataclass(frozen=True)
class TermGroup:
    """Synonymous terms, one of which must match. Products of a category in `category_tokens` match without any.

    Without terms it is a kind: its tokens are the first words of names and the categories of the goods that are wanted.
    """

    terms: tuple[Term, ...]
    category_tokens: tuple[str, ...] = ()
    shop_tokens: tuple[str, ...] = ()  # of shops whose products match, too, in the scope `shop`

    @property
    def is_kind(self) -> bool:
        return not self.terms


Stage = Annotated[int, Field(ge=1, lt=2 ** (MAX_WORDS + 1))]


@dataclass(frozen=True)
class TextQuery:
    """`stages` are sets of groups, best first; group number n is in a set whose n-th bit is 1. A product that matches
    exactly the groups of a stage belongs to it. Without stages, all groups must match.
    """

    groups: Annotated[tuple[TermGroup, ...], Field(max_length=MAX_WORDS + 1)]
    stages: Annotated[tuple[Stage, ...], Field(max_length=MAX_STAGES)] = ()
    # Of the main noun, if there is one: the tokens of what names begin with, and of the category that most are in.
    heads: tuple[str, ...] = ()
    likely_categories: tuple[str, ...] = ()

    @staticmethod
    def of_words(*words: str) -> "TextQuery":
        """Exactly these words."""
        return TextQuery(tuple(TermGroup((Term((word,)),)) for word in words))

    @property
    def category_tokens(self) -> tuple[str, ...]:
        groups = (group for group in self.groups if not group.is_kind)
        return tuple(dict.fromkeys(token for group in groups for token in group.category_tokens))

    def groups_of(self, stage: int) -> tuple[TermGroup, ...]:
        return tuple(group for number, group in enumerate(self.groups) if stage >> number & 1)

    @property
    def least_stages(self) -> tuple[int, ...]:
        """Those that contain no other: who matches any stage matches all groups of one of these."""
        return tuple(
            stage for stage in self.stages if not any(other & stage == other != stage for other in self.stages)
        )


@dataclass(frozen=True)
class UnderstoodText:
    """How a text was understood. A cursor repeats it, so new products do not change what a text means."""

    text_query: TextQuery | None = None
    corrected: str | None = None
    did_you_mean: str | None = None  # the query with common words in place of rare ones that are like them
    relaxed: bool = False  # few products match all words
    is_cut: bool = False  # it has more words than are looked for
    # Products that are near in meaning, and perhaps some that match some words: behind so many tiers.
    fused: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(max_length=MAX_FUSED)] = ()
    num_tiers_before: Annotated[int, Field(ge=0, lt=MAX_TIERS)] = 0

    @property
    def has_no_words(self) -> bool:
        """Of a text such as `!!!`, which finds nothing. Without a text, everything is found."""
        return self.text_query is not None and not self.text_query.groups


@dataclass(frozen=True)
class TextMatch:
    """Products that match the query in `scope`, except those that match it in `excluded_scope` already."""

    query: TextQuery
    scope: TextScope = "shop"
    excluded_scope: TextScope | None = None
    in_category: bool | None = None  # whether the product must be in a category of the query's `category_tokens`
    is_head: bool | None = None  # whether its name must begin with a word of the query
    # One token of each tuple must be indexed with the product: the filtered categories, the grid cells near the buyer.
    required_tokens: tuple[tuple[str, ...], ...] = ()
    stage: int | None = None  # the groups that match, while no other does; None: any stage of the query
    is_said: bool = False  # in the words that the buyer said, without synonyms
    without: "TextMatch | None" = None  # what is in an earlier tier
    excluded_phrases: tuple[ExcludedPhrase, ...] = ()

    @property
    def alternatives(self) -> tuple[tuple[TermGroup, ...], ...]:
        """All groups of one of these must match."""
        if self.stage is not None:
            return (self._wanted(self.query.groups_of(self.stage)),)
        if self.query.stages:
            return tuple(map(self.query.groups_of, self.query.least_stages))
        return (self._wanted(self.query.groups),)

    def _wanted(self, groups: tuple[TermGroup, ...]) -> tuple[TermGroup, ...]:
        if not self.is_said:
            return groups
        return tuple(group if group.is_kind else TermGroup(group.terms[:1]) for group in groups)

    @property
    def is_in_earlier_tier(self) -> bool:
        """Whether nothing is left: without synonyms, the words that were said are all words."""
        other = self.without
        return (
            other is not None
            and (other.scope, other.is_head, other.in_category) == (self.scope, self.is_head, self.in_category)
            and self.excluded_scope is None
            and other.alternatives == self.alternatives
            and set(other.head_tokens) == set(self.head_tokens)
        )

    @property
    def excluded_groups(self) -> tuple[TermGroup, ...]:
        return () if self.stage is None else self.query.groups_of(~self.stage)

    @property
    def category_tokens(self) -> tuple[str, ...]:
        alternatives = replace(self, is_said=False).alternatives
        groups = (group for groups in alternatives for group in groups if not group.is_kind)
        named = tuple(dict.fromkeys(token for group in groups for token in group.category_tokens))
        return tuple(dict.fromkeys((*named, *self.query.likely_categories)))

    @property
    def head_tokens(self) -> tuple[str, ...]:
        if self.query.heads and not self.is_said:
            return self.query.heads
        heads = (
            head_token(word)
            for groups in self.alternatives
            for group in groups
            for term in group.terms
            for word in (term.words[0], term.words[-1])
        )
        said = tuple(dict.fromkeys(heads))
        return tuple(head for head in said if head in self.query.heads) or said


def match_tiers(query: TextQuery) -> list[TextMatch]:
    """Best first. The tier of a product depends on the product and the query alone, so new products move no other."""
    if not query.stages:
        return _tiers(TextMatch(query))
    return [tier for stage in query.stages for tier in _tiers(TextMatch(query, stage=stage))]


def _tiers(match: TextMatch) -> list[TextMatch]:
    groups = (group for groups in match.alternatives for group in groups if not group.is_kind)
    num_categories = sum(bool(group.category_tokens) for group in groups)
    # "charger laptop" is of neither category for sure.
    has_category = num_categories == 1 or (not num_categories and bool(match.query.likely_categories))
    said = replace(match, scope="name", is_said=True, is_head=True, in_category=True if has_category else None)
    in_category: list[TextMatch] = []
    by_shop = _tiers_of_shops(match, has_category=has_category)
    match = replace(match, without=said)
    if has_category:
        in_category = [
            replace(match, scope="name", is_head=True, in_category=True),
            replace(match, scope="name", is_head=False, in_category=True),
            replace(match, scope="text", excluded_scope="name", in_category=True, without=None),
        ]
        match = replace(match, in_category=False, without=None)
    return [
        said,
        *in_category,
        replace(match, scope="name", is_head=True),
        # What was said is in the name, so who excludes that need not exclude the first tier.
        replace(match, scope="text", excluded_scope="name", is_head=True, without=None),
        replace(match, scope="name", is_head=False),
        replace(match, scope="labels", excluded_scope="name", is_head=False, without=None),
        replace(match, scope="text", excluded_scope="labels", is_head=False, without=None),
        *by_shop,
    ]


def _tiers_of_shops(match: TextMatch, *, has_category: bool) -> list[TextMatch]:
    """What matches by the words of its shop alone comes last."""
    if not any(group.shop_tokens for groups in match.alternatives for group in groups):
        return []
    match = replace(match, scope="shop", excluded_scope="text")
    in_category = [replace(match, in_category=True)] if has_category else []
    match = replace(match, in_category=False if has_category else None)
    return [*in_category, replace(match, is_head=True), replace(match, is_head=False)]
