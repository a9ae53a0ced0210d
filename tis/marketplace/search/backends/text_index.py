"""What every full-text index does, here with LIKE. All other SQL of the search is the same on every database."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sqlalchemy.orm import Session

from tis.marketplace.search.index_entry import IndexEntry, counted_words
from tis.marketplace.search.index_tokens import is_of_shop
from tis.marketplace.search.sql import id_list, run, run_many
from tis.marketplace.search.text_query import ExcludedPhrase, Term, TermGroup, TextMatch, TextScope

TEXTS = ("name", "labels", "description")
_NUM_TEXTS: dict[TextScope, int] = {"name": 1, "labels": 2, "text": 3, "shop": 3}


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
    """Looks for words in `product_words`, whose rows have the texts of the products. With LIKE, it reads every row.

    An expression says in the language of the index what matches. Words contain only letters and digits, so no text of
    a user becomes syntax.
    """

    ordered_join: ClassVar[str] = "JOIN"  # a join whose tables the database reads in the order they are written
    rows_per_look: ClassVar[int] = 1  # matches that are read and sorted while one product is looked at by `matching`
    both: ClassVar[str] = " AND "
    either: ClassVar[str] = " OR "
    but_not: ClassVar[str] = " AND NOT "
    around_texts: ClassVar[str] = " "  # so that `% word %` matches whole words only

    def __init__(self, least_function: str = "least") -> None:
        self.least_function = least_function  # the SQL function that returns the smaller of two numbers

    def match_source(self, match: TextMatch, *, stops_early: bool = False) -> RowSource:
        """`stops_early`: the statement has a LIMIT, so it may look up each product that matches."""
        condition, values = _without_literals(self.expression(match))
        tables = "product_words w JOIN product_search p ON p.product_id = w.product_id"
        return RowSource(tables, (condition,), values)

    def without_phrases(self, phrases: Sequence[ExcludedPhrase]) -> tuple[str, dict[str, object]]:
        """A condition on a row of `product_search p`, and its values: none of the phrases is in the product."""
        matching, values = _without_literals(self.any_phrase(phrases))
        words = "SELECT 1 FROM product_words w WHERE w.product_id = p.product_id"
        return f"NOT EXISTS ({words} AND ({matching}))", values

    def matching(self, session: Session, match: TextMatch, product_ids: Sequence[int]) -> set[int]:
        """Those of the products that match; without a look at others, so it is cheap for a few of them."""
        sql = f"SELECT w.product_id FROM product_words w WHERE w.product_id IN {id_list(product_ids)}"
        condition, values = _without_literals(self.expression(match))
        return {product_id for [product_id] in run(session, f"{sql} AND {condition}", values)}

    def estimate(self, session: Session, match: TextMatch, max_counted: int) -> int | None:
        """How many products match: exact below `max_counted`, else about; None if the index cannot tell cheaply."""
        return None

    def put(self, session: Session, entries: Sequence[IndexEntry]) -> None:
        """Inserts entries, or replaces those of the same products."""
        if entries:
            self.delete(session, [entry.product_id for entry in entries])
        run_many(
            session,
            "INSERT INTO product_words (product_id, name, labels, description, tokens)"
            " VALUES (:product_id, :name, :labels, :description, :tokens)",
            [
                {name: value if name == "product_id" else f" {value} " for name, value in entry.rows.items()}
                for entry in entries
            ],
        )

    def any_term(self, terms: Sequence[Term], scope: TextScope) -> list[str]:
        return [_like_term(term, scope) for term in terms]

    def token(self, token: str) -> str:
        return f"w.tokens LIKE '% {token} %'"

    def any_phrase(self, phrases: Sequence[ExcludedPhrase]) -> str:
        """Empty if the index cannot look for any of them."""
        terms = (Term((" ".join(one.words),)) if one.in_order else Term(one.words) for one in phrases)
        return " OR ".join(_like_term(term, "text") for term in terms)

    def expression(self, match: TextMatch) -> str:
        wanted, unwanted = [self._query(match, match.scope)], list[str]()
        if match.excluded_scope:
            unwanted.append(self._query(match, match.excluded_scope))
        unwanted += [self._group(group, "shop") for group in match.excluded_groups]
        if match.in_category is not None and (tokens := match.category_tokens):
            (wanted if match.in_category else unwanted).append(self._any_token(tokens))
        if match.is_head is not None:
            (wanted if match.is_head else unwanted).append(self._any_token(match.head_tokens))
        if match.without:
            unwanted.append(self.expression(match.without))
        wanted += [self._any_token(tokens) for tokens in match.required_tokens]
        if phrases := self.any_phrase(match.excluded_phrases):
            unwanted.append(phrases)
        found = self.both.join(f"({one})" for one in wanted)
        return self.but_not.join([f"({found})", *(f"({one})" for one in unwanted)])

    def _query(self, match: TextMatch, scope: TextScope) -> str:
        return self.either.join(
            "(" + self.both.join(f"({self._group(group, scope)})" for group in groups) + ")"
            for groups in match.alternatives
        )

    def _group(self, group: TermGroup, scope: TextScope) -> str:
        tokens = group.category_tokens + (group.shop_tokens if scope == "shop" else ())
        terms = self.any_term(_distinct(group.terms), scope) if group.terms else []
        return self.either.join([*terms, *map(self.token, tokens)])

    def _any_token(self, tokens: Sequence[str]) -> str:
        return self.either.join(map(self.token, tokens))

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
        values = {"shop_tokens": shop_tokens + self.around_texts, "supplier_id": supplier_id}
        run(session, f"{sql} (SELECT product_id FROM product_search WHERE supplier_id = :supplier_id)", values)

    def before_rebuild(self, session: Session) -> None: ...

    def after_rebuild(self, session: Session) -> None: ...


def _distinct(terms: Sequence[Term]) -> list[Term]:
    """`gaming laptop` matches what `laptop gaming` matches."""
    found: dict[tuple[frozenset[str], str | None], Term] = {}
    for term in terms:
        found.setdefault((frozenset(term.words), term.words[-1] if term.is_prefix else None), term)
    return list(found.values())


def _without_literals(expression: str) -> tuple[str, dict[str, object]]:
    """With placeholders and their values instead: an error in the log shows no words of buyers."""
    values: dict[str, object] = {}

    def placeholder(found: "re.Match[str]") -> str:
        values[name := f"text{len(values)}"] = found[1]
        return f":{name}"

    return re.sub("'([^']*)'", placeholder, expression), values


def _like_term(term: Term, scope: TextScope) -> str:
    conditions = []
    for number, word in enumerate(term.words, 1):
        end = "" if term.is_prefix and number == len(term.words) else " "
        texts = (f"w.{text} LIKE '% {word}{end}%'" for text in TEXTS[: _NUM_TEXTS[scope]])
        conditions.append(f"({' OR '.join(texts)})")
    return f"({' AND '.join(conditions)})"
