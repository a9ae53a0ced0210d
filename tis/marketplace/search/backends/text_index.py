"""The interface of a full-text index. All other SQL of the search is the same on every database."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy.orm import Session

from tis.marketplace.reading.tokens import is_cell_token, is_head_token
from tis.marketplace.search.sql import SqlValues
from tis.marketplace.search.text_query import ExcludedPhrase, TextMatch


@dataclass(frozen=True)
class IndexEntry:
    """One product as it is indexed: words separated by one space, and tokens."""

    product_id: int
    name: str
    labels: str  # brand, tags, category
    description: str
    tokens: str  # those of the supplier are the last ones, and its grid cell is the first of these

    @property
    def cell(self) -> str:
        return next(token for token in self.tokens.split() if is_cell_token(token))

    @property
    def words(self) -> set[str]:
        return counted_words(self.name, self.labels, self.description, self.tokens)


def counted_words(name: str, labels: str, description: str, tokens: str) -> set[str]:
    """All that the lexicon counts: also the token of the name's first word."""
    return {*name.split(), *labels.split(), *description.split(), *filter(is_head_token, tokens.split())}


@dataclass(frozen=True)
class RowSource:
    """Parts of a statement that selects rows of `product_search p`."""

    tables: str = "product_search p"
    conditions: tuple[str, ...] = ()
    values: SqlValues = field(default_factory=dict)
    with_clause: str = ""
    product_id: str = "p.product_id"  # the column by which the source returns rows in descending order without a sort


class TextIndex(Protocol):
    least_function: str  # the SQL function that returns the smaller of two numbers
    ordered_join: str  # a join whose tables the database reads in the order they are written

    rows_per_look: int  # so many matches are read and sorted while one product is looked at by `matching`

    def match_source(self, match: TextMatch) -> RowSource: ...

    def without_phrases(self, phrases: Sequence[ExcludedPhrase]) -> tuple[str, dict[str, object]]:
        """A condition on a row of `product_search p`, and its values: none of the phrases is in the product."""
        ...

    def matching(self, session: Session, match: TextMatch, product_ids: Sequence[int]) -> set[int]:
        """Those of the products that match; without a look at others, so it is cheap for a few of them."""
        ...

    def estimate(self, session: Session, match: TextMatch, max_counted: int) -> int | None:
        """How many products match: exact below `max_counted`, else about; None if the index cannot tell cheaply."""
        ...

    def indexed_words(self, session: Session, product_ids: Sequence[int]) -> dict[int, set[str]]: ...

    def shop_tokens(self, session: Session, product_ids: Sequence[int]) -> dict[int, set[str]]:
        """The tokens of the supplier that are indexed with each product."""
        ...

    def put(self, session: Session, entries: Sequence[IndexEntry]) -> None:
        """Inserts entries, or replaces those of the same products."""
        ...

    def delete(self, session: Session, product_ids: Sequence[int]) -> None: ...

    def move(self, session: Session, supplier_id: int, shop_tokens: str) -> None:
        """Replaces the tokens of the supplier with all its products."""
        ...

    def before_rebuild(self, session: Session) -> None: ...

    def after_rebuild(self, session: Session) -> None: ...
