"""Full text in PostgreSQL: a tsvector of our own tokens with a GIN index; no dictionary and no extension.

Words of the name and of the labels are tokens of their own, too. They could be words of a weight, but of weights the
index knows nothing: PostgreSQL would read all products that have the words anywhere.
"""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from tis.marketplace.search.backends.text_index import RowSource, TextIndex
from tis.marketplace.search.index_entry import IndexEntry
from tis.marketplace.search.index_tokens import is_head_token, is_of_shop
from tis.marketplace.search.sql import id_list, run, run_many
from tis.marketplace.search.text_query import ExcludedPhrase, Term, TextMatch, TextScope

# Before a word of the scope; a word of the labels that is in the name has the sign of the name alone.
_SIGNS: dict[TextScope, tuple[str, ...]] = {"name": ("#",), "labels": ("#", "~"), "text": ("",), "shop": ("",)}
_MAX_POSITION = 16383  # PostgreSQL stores no higher one


class PostgresTextIndex(TextIndex):
    rows_per_look = 5
    both, either, but_not = " & ", " | ", " & !"

    def match_source(self, match: TextMatch, *, stops_early: bool = False) -> RowSource:
        by_id = "p.product_id = m.product_id"
        join = f"JOIN product_search p ON {by_id}"
        if stops_early:
            # A join of its own the planner would make with a hash of all products.
            join = f"CROSS JOIN LATERAL (SELECT * FROM product_search p WHERE {by_id} LIMIT 1) p"
        # Materialized: the planner would search the text index again for every supplier near the buyer.
        return RowSource(
            tables="(WITH found AS MATERIALIZED"
            " (SELECT product_id FROM product_words WHERE words @@ CAST(:match AS tsquery))"
            f" SELECT product_id FROM found) m {join}",
            values={"match": self.expression(match)},
        )

    def without_phrases(self, phrases: Sequence[ExcludedPhrase]) -> tuple[str, dict[str, object]]:
        # Not NOT IN: of a common word it would search the list of its products again for every row.
        matching = "x.product_id = p.product_id AND x.words @@ CAST(:excluded AS tsquery)"
        values: dict[str, object] = {"excluded": self.any_phrase(phrases)}
        return f"NOT EXISTS (SELECT 1 FROM product_words x WHERE {matching})", values

    def matching(self, session: Session, match: TextMatch, product_ids: Sequence[int]) -> set[int]:
        # In a subquery: the planner might read all matches from the index instead.
        sql = (
            "SELECT p.product_id FROM unnest(CAST(:ids AS bigint[])) AS p (product_id) WHERE (SELECT"
            " w.words @@ CAST(:match AS tsquery) FROM product_words w WHERE w.product_id = p.product_id)"
        )
        values = {"ids": list(product_ids), "match": self.expression(match)}
        return {product_id for [product_id] in run(session, sql, values)}

    def estimate(self, session: Session, match: TextMatch, max_counted: int) -> int | None:
        # The guess of the planner: counting takes as long as reading all matches.
        explain = "EXPLAIN (FORMAT JSON) SELECT 1 FROM product_words WHERE words @@ CAST(:match AS tsquery)"
        [(plans,)] = run(session, explain, {"match": self.expression(match)})
        return int(plans[0]["Plan"]["Plan Rows"])

    def indexed_words(self, session: Session, product_ids: Sequence[int]) -> dict[int, set[str]]:
        vectors = _vectors(session, product_ids)
        return {one: {word for word in words if word.isalnum() or is_head_token(word)} for one, words in vectors}

    def shop_tokens(self, session: Session, product_ids: Sequence[int]) -> dict[int, set[str]]:
        return {one: set(filter(is_of_shop, words)) for one, words in _vectors(session, product_ids)}

    def put(self, session: Session, entries: Sequence[IndexEntry]) -> None:
        run_many(
            session,
            "INSERT INTO product_words (product_id, words) VALUES (:product_id, CAST(:words AS tsvector))"
            " ON CONFLICT (product_id) DO UPDATE SET words = excluded.words",
            [{"product_id": entry.product_id, "words": _vector(entry)} for entry in entries],
        )

    def move(self, session: Session, supplier_id: int, shop_tokens: str) -> None:
        old = "ARRAY(SELECT word FROM unnest(tsvector_to_array(words)) word WHERE word ^@ '¤' OR word ^@ '¶')"
        sql = f"UPDATE product_words SET words = ts_delete(words, {old}) || CAST(:new AS tsvector)"
        values = {"new": " ".join(f"'{token}'" for token in shop_tokens.split()), "supplier_id": supplier_id}
        where = "WHERE product_id IN (SELECT product_id FROM product_search WHERE supplier_id = :supplier_id)"
        run(session, f"{sql} {where}", values)

    def before_rebuild(self, session: Session) -> None:
        # Without statistics of rows that were just inserted, the planner scans the whole table for each of them.
        run(session, "ANALYZE products")
        run(session, "ANALYZE suppliers")

    def after_rebuild(self, session: Session) -> None:
        run(session, "ANALYZE product_words")
        run(session, "ANALYZE product_search")

    def any_term(self, terms: Sequence[Term], scope: TextScope) -> list[str]:
        return [f"({_term(term, scope)})" for term in terms]

    def token(self, token: str) -> str:
        return f"'{token}'"

    def any_phrase(self, phrases: Sequence[ExcludedPhrase]) -> str:
        joined = ((" <-> " if one.in_order else " & ").join(f"'{word}'" for word in one.words) for one in phrases)
        return " | ".join(f"({one})" for one in joined)


def _vectors(session: Session, product_ids: Sequence[int]) -> Sequence[tuple[int, list[str]]]:
    sql = "SELECT product_id, tsvector_to_array(words) FROM product_words WHERE product_id IN "
    return [(product_id, words) for product_id, words in run(session, sql + id_list(product_ids))]


def _term(term: Term, scope: TextScope) -> str:
    ends = [*[""] * (len(term.words) - 1), ":*" * term.is_prefix]
    words = (
        " | ".join(f"'{sign}{word}'{end}" for sign in _SIGNS[scope]) for word, end in zip(term.words, ends, strict=True)
    )
    return " & ".join(f"({word})" for word in words)


def _vector(entry: IndexEntry) -> str:
    """Only the words have a position: that is what phrases need."""
    name, labels = entry.name.split(), entry.labels.split()
    words = enumerate([*name, *labels, *entry.description.split()], 1)
    placed = (f"'{word}':{min(position, _MAX_POSITION)}" for position, word in words)
    of_name = dict.fromkeys(f"'#{word}'" for word in name)
    of_labels = dict.fromkeys(f"'~{word}'" for word in labels if word not in name)
    return " ".join([*placed, *of_name, *of_labels, *(f"'{token}'" for token in entry.tokens.split())])
