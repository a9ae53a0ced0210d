"""Text search with LIKE, for databases without a full-text index: it reads every row, so it is slow on large tables."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from tis.marketplace.search.backends.text_index import IndexEntry, RowSource, TextIndex
from tis.marketplace.search.sql import id_list, run, run_many
from tis.marketplace.search.text_query import ExcludedPhrase, Term, TextMatch, TextScope

_COLUMNS: dict[TextScope, tuple[str, ...]] = {
    "name": ("name",),
    "labels": ("name", "labels"),
    "text": ("name", "labels", "description"),
    "shop": ("name", "labels", "description"),
}


class LikeIndex(TextIndex):
    rows_per_look = 1
    end_of_tokens = " "

    def __init__(self, least_function: str = "least") -> None:
        self.least_function = least_function

    def match_source(self, match: TextMatch) -> RowSource:
        values: dict[str, object] = {}
        return RowSource(
            tables="product_words w JOIN product_search p ON p.product_id = w.product_id",
            conditions=(self.expression(match, values),),
            values=values,
        )

    def without_phrases(self, phrases: Sequence[ExcludedPhrase]) -> tuple[str, dict[str, object]]:
        values: dict[str, object] = {}
        matching = f"w.product_id = p.product_id AND ({self.any_phrase(phrases, values)})"
        return f"NOT EXISTS (SELECT 1 FROM product_words w WHERE {matching})", values

    def matching(self, session: Session, match: TextMatch, product_ids: Sequence[int]) -> set[int]:
        values: dict[str, object] = {}
        sql = f"SELECT w.product_id FROM product_words w WHERE w.product_id IN {id_list(product_ids)} AND "
        return {product_id for [product_id] in run(session, sql + self.expression(match, values), values)}

    def put(self, session: Session, entries: Sequence[IndexEntry]) -> None:
        if entries:
            self.delete(session, [entry.product_id for entry in entries])
        # With a space before and after each text, `% word %` matches whole words only.
        run_many(
            session,
            "INSERT INTO product_words (product_id, name, labels, description, tokens)"
            " VALUES (:product_id, :name, :labels, :description, :tokens)",
            [
                {name: value if name == "product_id" else f" {value} " for name, value in vars(entry).items()}
                for entry in entries
            ],
        )

    def any_term(self, terms: Sequence[Term], scope: TextScope, values: dict[str, object]) -> list[str]:
        return [_term(term, scope, values) for term in terms]

    def token(self, token: str, values: dict[str, object]) -> str:
        return f"w.tokens LIKE :{_add_value(f'% {token} %', values)}"

    def any_phrase(self, phrases: Sequence[ExcludedPhrase], values: dict[str, object]) -> str:
        terms = [
            [Term((" ".join(one.words),))] if one.in_order else [Term((word,)) for word in one.words] for one in phrases
        ]
        return " OR ".join("(" + " AND ".join(_term(term, "text", values) for term in every) + ")" for every in terms)


def _term(term: Term, scope: TextScope, values: dict[str, object]) -> str:
    conditions = []
    for number, word in enumerate(term.words, 1):
        end = "%" if term.is_prefix and number == len(term.words) else " %"
        name = _add_value(f"% {word}{end}", values)
        conditions.append("(" + " OR ".join(f"w.{column} LIKE :{name}" for column in _COLUMNS[scope]) + ")")
    return "(" + " AND ".join(conditions) + ")"


def _add_value(value: str, values: dict[str, object]) -> str:
    name = f"text{len(values)}"
    values[name] = value
    return name
