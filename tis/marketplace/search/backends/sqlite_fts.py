"""Full text in SQLite: FTS5 over `product_words`, updated by triggers."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from tis.marketplace.reading.tokens import is_of_shop
from tis.marketplace.search.backends.text_index import IndexEntry, RowSource, counted_words
from tis.marketplace.search.sql import id_list, run, run_many
from tis.marketplace.search.text_query import ExcludedPhrase, Term, TermGroup, TextMatch, TextScope

_TEXTS = tuple(f"' ' || w.{column} || ' '" for column in ("name", "labels", "description"))
_COLUMN_FILTERS: dict[TextScope, str] = {"name": "{name} : ", "labels": "{name labels} : ", "text": "", "shop": ""}


class SqliteFtsIndex:
    rows_per_look = 40
    least_function = "min"
    # SQLite reorders the tables of any other join.
    ordered_join = "CROSS JOIN"

    def match_source(self, match: TextMatch) -> RowSource:
        without, values = _without_texts("f.rowid", match.excluded_phrases)
        return RowSource(
            tables="product_fts f CROSS JOIN product_search p ON p.product_id = f.rowid",
            conditions=("product_fts MATCH :match", *without),
            values={"match": match_expression(match), **values},
            product_id="f.rowid",
        )

    def without_phrases(self, phrases: Sequence[ExcludedPhrase]) -> tuple[str, dict[str, object]]:
        conditions, values = _without_texts("p.product_id", phrases)
        if words := _any_word(phrases):
            conditions.append("p.product_id NOT IN (SELECT rowid FROM product_fts WHERE product_fts MATCH :excluded)")
            values["excluded"] = words
        return " AND ".join(conditions), values

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

    def shop_tokens(self, session: Session, product_ids: Sequence[int]) -> dict[int, set[str]]:
        rows = run(session, f"SELECT product_id, tokens FROM product_words WHERE product_id IN {id_list(product_ids)}")
        return {product_id: set(filter(is_of_shop, tokens.split())) for product_id, tokens in rows}

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

    def move(self, session: Session, supplier_id: int, shop_tokens: str) -> None:
        # From the cell on: it is followed by the words of the shop.
        tokens = "replace(tokens, substr(tokens, instr(tokens, '¤')), :shop_tokens)"
        sql = f"UPDATE product_words SET tokens = {tokens} WHERE product_id IN"
        values = {"shop_tokens": shop_tokens, "supplier_id": supplier_id}
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
        expression = f"({expression}) NOT ({_group(group, 'shop')})"
    tokens = _any_token(match.category_tokens)
    if match.in_category is not None and tokens:
        expression = f"({expression}) {'AND' if match.in_category else 'NOT'} ({tokens})"
    if match.is_head is not None:
        expression = f"({expression}) {'AND' if match.is_head else 'NOT'} ({_any_token(match.head_tokens)})"
    if match.without:
        expression = f"({expression}) NOT ({match_expression(match.without)})"
    for alternatives in match.required_tokens:
        expression = f"({expression}) AND ({_any_token(alternatives)})"
    if words := _any_word(match.excluded_phrases):
        expression = f"({expression}) NOT ({words})"
    return expression


def _any_word(phrases: Sequence[ExcludedPhrase]) -> str:
    return " OR ".join(f"({_term(Term(one.words))})" for one in phrases if not one.is_text)


def _without_texts(product_id: str, phrases: Sequence[ExcludedPhrase]) -> tuple[list[str], dict[str, object]]:
    """The index does not know the order of words: the words of each product that matches otherwise are read."""
    texts = [one for one in phrases if one.is_text]
    if not texts:
        return [], {}
    values: dict[str, object] = {
        f"excluded_text{number}": f" {' '.join(one.words)} " for number, one in enumerate(texts)
    }
    is_there = " OR ".join(
        f"instr(' ' || w.{column} || ' ', :{name}) > 0"
        for column in ("name", "labels", "description")
        for name in values
    )
    matching = f"SELECT 1 FROM product_words w WHERE w.product_id = {product_id} AND ({is_there})"
    return [f"NOT EXISTS ({matching})"], values


def _query(match: TextMatch, scope: TextScope) -> str:
    return " OR ".join(
        f"({' AND '.join(f'({_group(group, scope)})' for group in groups)})" for groups in match.alternatives
    )


def _group(group: TermGroup, scope: TextScope) -> str:
    terms = " OR ".join(f"({_term(term)})" for term in group.terms)
    tokens = group.category_tokens + (group.shop_tokens if scope == "shop" else ())
    said = [f"({_COLUMN_FILTERS[scope]}({terms}))"] if terms else []
    return " OR ".join([*said, *(f'"{token}"' for token in tokens)])


def _term(term: Term) -> str:
    *whole, last = (f'"{word}"' for word in term.words)
    return " AND ".join([*whole, last + "*" * term.is_prefix])


def _any_token(tokens: Sequence[str]) -> str:
    return " OR ".join(f'"{token}"' for token in tokens)
