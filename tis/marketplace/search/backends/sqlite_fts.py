"""Full text in SQLite: FTS5 over `product_words`, updated by triggers."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from tis.marketplace.search.backends.text_index import IndexEntry, RowSource, counted_words
from tis.marketplace.search.sql import id_list, run, run_many
from tis.marketplace.search.text_query import Term, TermGroup, TextMatch, TextScope

_COLUMN_FILTERS: dict[TextScope, str] = {"name": "{name} : ", "labels": "{name labels} : ", "text": ""}


class SqliteFtsIndex:
    rows_per_look = 40
    least_function = "min"
    # SQLite reorders the tables of any other join.
    ordered_join = "CROSS JOIN"

    def match_source(self, match: TextMatch) -> RowSource:
        return RowSource(
            tables="product_fts f CROSS JOIN product_search p ON p.product_id = f.rowid",
            conditions=("product_fts MATCH :match",),
            values={"match": match_expression(match)},
            product_id="f.rowid",
        )

    def matching(self, session: Session, match: TextMatch, product_ids: Sequence[int]) -> set[int]:
        sql = f"SELECT rowid FROM product_fts WHERE rowid IN {id_list(product_ids)} AND product_fts MATCH :match"
        return {product_id for [product_id] in run(session, sql, {"match": match_expression(match)})}

    def estimate(self, session: Session, match: TextMatch, max_counted: int) -> int | None:
        newest = "SELECT rowid FROM product_fts WHERE product_fts MATCH :match ORDER BY rowid DESC LIMIT :most"
        sql = f"SELECT count(*), min(rowid), (SELECT max(product_id) FROM product_search) FROM ({newest}) x"
        [(count, oldest, max_id)] = run(session, sql, {"match": match_expression(match), "most": max_counted})
        # Older products are assumed to match as often as the newest.
        return int(count if count < max_counted else count * max_id / max(1, max_id - oldest + 1))

    def indexed_words(self, session: Session, product_ids: Sequence[int]) -> dict[int, set[str]]:
        sql = "SELECT product_id, name, labels, description, tokens FROM product_words WHERE product_id IN "
        rows = run(session, sql + id_list(product_ids))
        return {product_id: counted_words(*texts) for product_id, *texts in rows}

    def put(self, session: Session, entries: Sequence[IndexEntry]) -> None:
        # `INSERT OR REPLACE` would not fire the trigger that removes the old words.
        run_many(
            session,
            "INSERT INTO product_words (product_id, name, labels, description, tokens)"
            " VALUES (:product_id, :name, :labels, :description, :tokens) ON CONFLICT (product_id) DO UPDATE SET"
            " name = excluded.name, labels = excluded.labels, description = excluded.description,"
            " tokens = excluded.tokens",
            [vars(entry) for entry in entries],
        )

    def delete(self, session: Session, product_ids: Sequence[int]) -> None:
        run(session, f"DELETE FROM product_words WHERE product_id IN {id_list(product_ids)}")

    def move(self, session: Session, supplier_id: int, old_cell: str, new_cell: str) -> None:
        sql = "UPDATE product_words SET tokens = replace(tokens, :old_cell, :new_cell) WHERE product_id IN"
        values = {"old_cell": old_cell, "new_cell": new_cell, "supplier_id": supplier_id}
        run(session, f"{sql} (SELECT product_id FROM product_search WHERE supplier_id = :supplier_id)", values)

    def before_rebuild(self, session: Session) -> None:
        pass

    def after_rebuild(self, session: Session) -> None:
        run(session, "INSERT INTO product_fts (product_fts) VALUES ('optimize')")


def match_expression(match: TextMatch) -> str:
    """Words are quoted and contain only letters and digits, so no text of a user becomes FTS5 syntax."""
    expression = _query(match, match.scope)
    if match.excluded_scope:
        expression = f"({expression}) NOT ({_query(match, match.excluded_scope)})"
    for group in match.excluded_groups:
        expression = f"({expression}) NOT ({_group(group, 'text')})"
    tokens = _any_token(match.category_tokens)
    if match.in_category is not None and tokens:
        expression = f"({expression}) {'AND' if match.in_category else 'NOT'} ({tokens})"
    if match.is_head is not None:
        expression = f"({expression}) {'AND' if match.is_head else 'NOT'} ({_any_token(match.head_tokens)})"
    if match.without:
        expression = f"({expression}) NOT ({match_expression(match.without)})"
    for alternatives in match.required_tokens:
        expression = f"({expression}) AND ({_any_token(alternatives)})"
    return expression


def _query(match: TextMatch, scope: TextScope) -> str:
    return " OR ".join(
        f"({' AND '.join(f'({_group(group, scope)})' for group in groups)})" for groups in match.alternatives
    )


def _group(group: TermGroup, scope: TextScope) -> str:
    terms = " OR ".join(f"({_term(term)})" for term in group.terms)
    return " OR ".join([f"({_COLUMN_FILTERS[scope]}({terms}))", *(f'"{token}"' for token in group.category_tokens)])


def _term(term: Term) -> str:
    *whole, last = (f'"{word}"' for word in term.words)
    return " AND ".join([*whole, last + "*" * term.is_prefix])


def _any_token(tokens: Sequence[str]) -> str:
    return " OR ".join(f'"{token}"' for token in tokens)
