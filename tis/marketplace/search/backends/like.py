"""Text search with LIKE, for databases without a full-text index: it reads every row, so it is slow on large tables."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from tis.marketplace.reading.tokens import is_of_shop
from tis.marketplace.search.backends.text_index import IndexEntry, RowSource, counted_words
from tis.marketplace.search.sql import id_list, run, run_many
from tis.marketplace.search.text_query import ExcludedPhrase, Term, TermGroup, TextMatch, TextScope

_COLUMNS: dict[TextScope, tuple[str, ...]] = {
    "name": ("name",),
    "labels": ("name", "labels"),
    "text": ("name", "labels", "description"),
    "shop": ("name", "labels", "description"),
}


class LikeIndex:
    ordered_join = "JOIN"
    rows_per_look = 1

    def __init__(self, least_function: str = "least") -> None:
        self.least_function = least_function

    def match_source(self, match: TextMatch) -> RowSource:
        values: dict[str, object] = {}
        return RowSource(
            tables="product_words w JOIN product_search p ON p.product_id = w.product_id",
            conditions=tuple(_conditions(match, values)),
            values=values,
        )

    def without_phrases(self, phrases: Sequence[ExcludedPhrase]) -> tuple[str, dict[str, object]]:
        values: dict[str, object] = {}
        matching = f"w.product_id = p.product_id AND ({_any_phrase(phrases, values)})"
        return f"NOT EXISTS (SELECT 1 FROM product_words w WHERE {matching})", values

    def matching(self, session: Session, match: TextMatch, product_ids: Sequence[int]) -> set[int]:
        values: dict[str, object] = {}
        conditions = [f"w.product_id IN {id_list(product_ids)}", *_conditions(match, values)]
        sql = f"SELECT w.product_id FROM product_words w WHERE {' AND '.join(conditions)}"
        return {product_id for [product_id] in run(session, sql, values)}

    def estimate(self, session: Session, match: TextMatch, max_counted: int) -> int | None:
        return None

    def indexed_words(self, session: Session, product_ids: Sequence[int]) -> dict[int, set[str]]:
        sql = "SELECT product_id, name, labels, description, tokens FROM product_words WHERE product_id IN "
        rows = run(session, sql + id_list(product_ids))
        return {product_id: counted_words(*texts) for product_id, *texts in rows}

    def shop_tokens(self, session: Session, product_ids: Sequence[int]) -> dict[int, set[str]]:
        rows = run(session, f"SELECT product_id, tokens FROM product_words WHERE product_id IN {id_list(product_ids)}")
        return {product_id: set(filter(is_of_shop, tokens.split())) for product_id, tokens in rows}

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

    def delete(self, session: Session, product_ids: Sequence[int]) -> None:
        run(session, f"DELETE FROM product_words WHERE product_id IN {id_list(product_ids)}")

    def move(self, session: Session, supplier_id: int, shop_tokens: str) -> None:
        # From the cell on: it is followed by the words of the shop.
        tokens = "replace(tokens, substr(tokens, instr(tokens, '¤')), :shop_tokens)"
        sql = f"UPDATE product_words SET tokens = {tokens} WHERE product_id IN"
        values = {"shop_tokens": f"{shop_tokens} ", "supplier_id": supplier_id}
        run(session, f"{sql} (SELECT product_id FROM product_search WHERE supplier_id = :supplier_id)", values)

    def before_rebuild(self, session: Session) -> None:
        pass

    def after_rebuild(self, session: Session) -> None:
        pass


def _conditions(match: TextMatch, values: dict[str, object]) -> list[str]:
    conditions = [_query(match, match.scope, values)]
    if match.excluded_scope:
        conditions.append(f"NOT ({_query(match, match.excluded_scope, values)})")
    conditions += [f"NOT {_group(group, 'shop', values)}" for group in match.excluded_groups]
    if match.in_category is not None and match.category_tokens:
        tokens = _any_token(match.category_tokens, values)
        conditions.append(tokens if match.in_category else f"NOT {tokens}")
    if match.is_head is not None:
        heads = _any_token(match.head_tokens, values)
        conditions.append(heads if match.is_head else f"NOT {heads}")
    if match.without:
        conditions.append(f"NOT ({' AND '.join(_conditions(match.without, values))})")
    if match.excluded_phrases:
        conditions.append(f"NOT ({_any_phrase(match.excluded_phrases, values)})")
    return conditions + [_any_token(alternatives, values) for alternatives in match.required_tokens]


def _any_phrase(phrases: Sequence[ExcludedPhrase], values: dict[str, object]) -> str:
    terms = [
        [Term((" ".join(one.words),))] if one.in_order else [Term((word,)) for word in one.words] for one in phrases
    ]
    return " OR ".join("(" + " AND ".join(_term(term, "text", values) for term in every) + ")" for every in terms)


def _query(match: TextMatch, scope: TextScope, values: dict[str, object]) -> str:
    alternatives = (" AND ".join(_group(group, scope, values) for group in groups) for groups in match.alternatives)
    return "(" + " OR ".join(f"({one})" for one in alternatives) + ")"


def _group(group: TermGroup, scope: TextScope, values: dict[str, object]) -> str:
    conditions = [_term(term, scope, values) for term in group.terms]
    if tokens := group.category_tokens + (group.shop_tokens if scope == "shop" else ()):
        conditions.append(_any_token(tokens, values))
    return "(" + " OR ".join(conditions) + ")"


def _term(term: Term, scope: TextScope, values: dict[str, object]) -> str:
    conditions = []
    for number, word in enumerate(term.words, 1):
        end = "%" if term.is_prefix and number == len(term.words) else " %"
        name = _add_value(f"% {word}{end}", values)
        conditions.append("(" + " OR ".join(f"w.{column} LIKE :{name}" for column in _COLUMNS[scope]) + ")")
    return "(" + " AND ".join(conditions) + ")"


def _any_token(tokens: Sequence[str], values: dict[str, object]) -> str:
    return "(" + " OR ".join(f"w.tokens LIKE :{_add_value(f'% {token} %', values)}" for token in tokens) + ")"


def _add_value(value: str, values: dict[str, object]) -> str:
    name = f"text{len(values)}"
    values[name] = value
    return name
