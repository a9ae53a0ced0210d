"""What every full-text index does. All other SQL of the search is the same on every database."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sqlalchemy.orm import Session

from tis.marketplace.reading.tokens import is_cell_token, is_head_token, is_of_shop
from tis.marketplace.search.sql import id_list, run
from tis.marketplace.search.text_query import ExcludedPhrase, Term, TermGroup, TextMatch, TextScope


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
    """What selects rows of `product_search p`: all that match a text, or all products of a query."""

    tables: str = "product_search p"
    conditions: tuple[str, ...] = ()
    values: dict[str, object] = field(default_factory=dict)
    product_id: str = "p.product_id"  # the column by which the source returns rows in descending order without a sort
    distance_km: str | None = None  # SQL expression, if the query has an origin

    def select(self, columns: str, tail: str = "", *conditions: str) -> str:
        where = " AND ".join((*self.conditions, *conditions)) or "1 = 1"
        return f"SELECT {columns} FROM {self.tables} WHERE {where} {tail}"


class TextIndex:
    """Looks for words in `product_words`. By default, its rows have the texts of the products.

    An expression says in the language of the index what matches; values that are no part of it go to `values`. Words
    contain only letters and digits, so no text of a user becomes syntax.
    """

    least_function: str = "least"  # the SQL function that returns the smaller of two numbers
    ordered_join: ClassVar[str] = "JOIN"  # a join whose tables the database reads in the order they are written
    rows_per_look: ClassVar[int]  # so many matches are read and sorted while one product is looked at by `matching`
    both: ClassVar[str] = " AND "
    either: ClassVar[str] = " OR "
    but_not: ClassVar[str] = " AND NOT "
    end_of_tokens: ClassVar[str] = ""

    def match_source(self, match: TextMatch) -> RowSource:
        raise NotImplementedError

    def without_phrases(self, phrases: Sequence[ExcludedPhrase]) -> tuple[str, dict[str, object]]:
        """A condition on a row of `product_search p`, and its values: none of the phrases is in the product."""
        raise NotImplementedError

    def matching(self, session: Session, match: TextMatch, product_ids: Sequence[int]) -> set[int]:
        """Those of the products that match; without a look at others, so it is cheap for a few of them."""
        raise NotImplementedError

    def estimate(self, session: Session, match: TextMatch, max_counted: int) -> int | None:
        """How many products match: exact below `max_counted`, else about; None if the index cannot tell cheaply."""
        return None

    def put(self, session: Session, entries: Sequence[IndexEntry]) -> None:
        """Inserts entries, or replaces those of the same products."""
        raise NotImplementedError

    def any_term(self, terms: Sequence[Term], scope: TextScope, values: dict[str, object]) -> list[str]:
        raise NotImplementedError

    def token(self, token: str, values: dict[str, object]) -> str:
        raise NotImplementedError

    def any_phrase(self, phrases: Sequence[ExcludedPhrase], values: dict[str, object]) -> str:
        """Empty if the index cannot look for any of them."""
        raise NotImplementedError

    def expression(self, match: TextMatch, values: dict[str, object]) -> str:
        wanted, unwanted = [self._query(match, match.scope, values)], list[str]()
        if match.excluded_scope:
            unwanted.append(self._query(match, match.excluded_scope, values))
        unwanted += [self._group(group, "shop", values) for group in match.excluded_groups]
        if match.in_category is not None and (tokens := match.category_tokens):
            (wanted if match.in_category else unwanted).append(self._any_token(tokens, values))
        if match.is_head is not None:
            (wanted if match.is_head else unwanted).append(self._any_token(match.head_tokens, values))
        if match.without:
            unwanted.append(self.expression(match.without, values))
        wanted += [self._any_token(tokens, values) for tokens in match.required_tokens]
        if phrases := self.any_phrase(match.excluded_phrases, values):
            unwanted.append(phrases)
        found = self.both.join(f"({one})" for one in wanted)
        return self.but_not.join([f"({found})", *(f"({one})" for one in unwanted)])

    def _query(self, match: TextMatch, scope: TextScope, values: dict[str, object]) -> str:
        return self.either.join(
            "(" + self.both.join(f"({self._group(group, scope, values)})" for group in groups) + ")"
            for groups in match.alternatives
        )

    def _group(self, group: TermGroup, scope: TextScope, values: dict[str, object]) -> str:
        tokens = group.category_tokens + (group.shop_tokens if scope == "shop" else ())
        terms = self.any_term(group.terms, scope, values) if group.terms else []
        return self.either.join([*terms, *(self.token(token, values) for token in tokens)])

    def _any_token(self, tokens: Sequence[str], values: dict[str, object]) -> str:
        return self.either.join(self.token(token, values) for token in tokens)

    def indexed_words(self, session: Session, product_ids: Sequence[int]) -> dict[int, set[str]]:
        sql = "SELECT product_id, name, labels, description, tokens FROM product_words WHERE product_id IN "
        rows = run(session, sql + id_list(product_ids))
        return {product_id: counted_words(*texts) for product_id, *texts in rows}

    def shop_tokens(self, session: Session, product_ids: Sequence[int]) -> dict[int, set[str]]:
        """The tokens of the supplier that are indexed with each product."""
        rows = run(session, f"SELECT product_id, tokens FROM product_words WHERE product_id IN {id_list(product_ids)}")
        return {product_id: set(filter(is_of_shop, tokens.split())) for product_id, tokens in rows}

    def delete(self, session: Session, product_ids: Sequence[int]) -> None:
        run(session, f"DELETE FROM product_words WHERE product_id IN {id_list(product_ids)}")

    def move(self, session: Session, supplier_id: int, shop_tokens: str) -> None:
        """Replaces the tokens of the supplier with all its products: from the cell on, which the others follow."""
        tokens = "replace(tokens, substr(tokens, instr(tokens, '¤')), :shop_tokens)"
        sql = f"UPDATE product_words SET tokens = {tokens} WHERE product_id IN"
        values = {"shop_tokens": shop_tokens + self.end_of_tokens, "supplier_id": supplier_id}
        run(session, f"{sql} (SELECT product_id FROM product_search WHERE supplier_id = :supplier_id)", values)

    def before_rebuild(self, session: Session) -> None: ...

    def after_rebuild(self, session: Session) -> None: ...
