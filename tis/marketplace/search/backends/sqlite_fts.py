"""Full text in SQLite: FTS5 over `product_words`, updated by triggers."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from tis.marketplace.search.backends.text_index import TEXTS, RowSource, TextIndex
from tis.marketplace.search.index_entry import IndexEntry
from tis.marketplace.search.sql import id_list, run, run_many
from tis.marketplace.search.text_query import ExcludedPhrase, Term, TextMatch, TextScope

_COLUMN_FILTERS: dict[TextScope, str] = {"name": "{name} : ", "labels": "{name labels} : ", "text": "", "shop": ""}


class SqliteFtsIndex(TextIndex):
    rows_per_look = 40
    # SQLite reorders the tables of any other join.
    ordered_join = "CROSS JOIN"
    but_not = " NOT "
    around_texts = ""

    def match_source(self, match: TextMatch, *, stops_early: bool = False) -> RowSource:
        without, values = _without_texts("f.rowid", match.excluded_phrases)
        return RowSource(
            tables="product_fts f CROSS JOIN product_search p ON p.product_id = f.rowid",
            conditions=("product_fts MATCH :match", *without),
            values={"match": self.expression(match), **values},
            product_id="f.rowid",
        )

    def without_phrases(self, phrases: Sequence[ExcludedPhrase]) -> tuple[str, dict[str, object]]:
        conditions, values = _without_texts("p.product_id", phrases)
        if words := self.any_phrase(phrases):
            conditions.append("p.product_id NOT IN (SELECT rowid FROM product_fts WHERE product_fts MATCH :excluded)")
            values["excluded"] = words
        return " AND ".join(conditions), values

    def matching(self, session: Session, match: TextMatch, product_ids: Sequence[int]) -> set[int]:
        sql = f"SELECT rowid FROM product_fts WHERE rowid IN {id_list(product_ids)} AND product_fts MATCH :match"
        return {product_id for [product_id] in run(session, sql, {"match": self.expression(match)})}

    def estimate(self, session: Session, match: TextMatch, max_counted: int) -> int | None:
        newest = "SELECT rowid FROM product_fts WHERE product_fts MATCH :match ORDER BY rowid DESC LIMIT :most"
        sql = f"SELECT count(*), min(rowid), (SELECT max(product_id) FROM product_search) FROM ({newest}) x"
        [(count, oldest, max_id)] = run(session, sql, {"match": self.expression(match), "most": max_counted})
        # Older products are assumed to match as often as the newest.
        return int(count if count < max_counted else count * max_id / max(1, max_id - oldest + 1))

    def put(self, session: Session, entries: Sequence[IndexEntry]) -> None:
        # `INSERT OR REPLACE` would not fire the trigger that removes the old words.
        run_many(
            session,
            "INSERT INTO product_words (product_id, name, labels, description, tokens)"
            " VALUES (:product_id, :name, :labels, :description, :tokens) ON CONFLICT (product_id) DO UPDATE SET"
            " name = excluded.name, labels = excluded.labels, description = excluded.description,"
            " tokens = excluded.tokens",
            [entry.rows for entry in entries],
        )

    def after_rebuild(self, session: Session) -> None:
        run(session, "INSERT INTO product_fts (product_fts) VALUES ('optimize')")

    def any_term(self, terms: Sequence[Term], scope: TextScope) -> list[str]:
        return [f"({_COLUMN_FILTERS[scope]}({' OR '.join(f'({_term(term)})' for term in terms)}))"]

    def token(self, token: str) -> str:
        return f'"{token}"'

    def any_phrase(self, phrases: Sequence[ExcludedPhrase]) -> str:
        """But for texts: the index does not know the order of words."""
        return " OR ".join(f"({_term(Term(one.words))})" for one in phrases if not one.is_text)


def _without_texts(product_id: str, phrases: Sequence[ExcludedPhrase]) -> tuple[list[str], dict[str, object]]:
    """The words of each product that matches otherwise are read."""
    texts = [f" {' '.join(one.words)} " for one in phrases if one.is_text]
    values: dict[str, object] = {f"excluded_text{number}": text for number, text in enumerate(texts)}
    is_there = " OR ".join(f"instr(' ' || w.{column} || ' ', :{name}) > 0" for column in TEXTS for name in values)
    matching = f"SELECT 1 FROM product_words w WHERE w.product_id = {product_id} AND ({is_there})"
    return [f"NOT EXISTS ({matching})"] if texts else [], values


def _term(term: Term) -> str:
    *whole, last = (f'"{word}"' for word in term.words)
    return " AND ".join([*whole, last + "*" * term.is_prefix])
