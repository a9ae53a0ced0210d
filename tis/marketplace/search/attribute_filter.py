"""Attributes of products: the rows that are kept of them, and the filters that read these."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy.orm import Session

from tis.marketplace.reading.attribute_values import AttributeValue, attribute_key, attribute_value
from tis.marketplace.search.sql import id_list, placeholders, run, run_many

AttributeOperator = Literal["eq", "ne", "gte", "gt", "lte", "lt"]
_NO_LIMIT = 1_000_000_000
_SIGNS = {"gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}


@dataclass(frozen=True)
class AttributeFilter:
    """`eq` takes any number of values and passes one of them; `ne` also passes products without the attribute."""

    name: str
    operator: AttributeOperator
    numbers: tuple[float, ...] = ()
    keys: tuple[str, ...] = ()  # of texts

    def tests(self, prefix: str) -> tuple[list[str], dict[str, object]]:
        """Conditions on a row of this name, one of which must hold; each is a range of an index."""
        if self.operator in _SIGNS:
            return [f"a.number {_SIGNS[self.operator]} :{prefix}_n"], {f"{prefix}_n": self.numbers[0]}
        tests, values = list[str](), dict[str, object]()
        for column, own in (("number", self.numbers), ("text_key", self.keys)):
            if own:
                names, named = placeholders(f"{prefix}_{column[0]}", own)
                tests.append(f"a.{column} IN {names}")
                values |= named
        return tests, values


def attribute_conditions(
    filters: Sequence[AttributeFilter], rare: Sequence[AttributeFilter], product_id: str
) -> Iterator[tuple[str, dict[str, object]]]:
    """`product_id` is the column of the candidates."""
    for number, one in enumerate(filters):
        name = f"attr{number}"
        tests, values = one.tests(name)
        if one in rare:
            # With a LIMIT it is read once: PostgreSQL would read the range of numbers again for each product.
            ids = f"SELECT product_id FROM ({_product_ids(name, tests)} LIMIT {_NO_LIMIT}) y"
            condition = f"{product_id} IN ({ids})"
        else:
            row = (
                f"(SELECT 1 FROM product_attributes a WHERE a.product_id = {product_id}"
                f" AND a.name = :{name} AND ({' OR '.join(tests)}))"
            )
            condition = f"{row} IS NULL" if one.operator == "ne" else f"{row} = 1"
        yield condition, {name: one.name, **values}


def rare_filters(
    session: Session, filters: Iterable[AttributeFilter], max_products: int
) -> tuple[AttributeFilter, ...]:
    """Those that at most so many products pass."""
    return tuple(
        one for one in filters if one.operator != "ne" and _count(session, one, max_products + 1) <= max_products
    )


def unknown_attributes(session: Session, filters: Iterable[AttributeFilter]) -> tuple[str, ...]:
    """Names that no product has."""
    names = dict.fromkeys(one.name for one in filters)
    sql = "SELECT 1 FROM product_attributes WHERE name = :name LIMIT 1"
    return tuple(name for name in names if not run(session, sql, {"name": name}))


def _count(session: Session, one: AttributeFilter, most: int) -> int:
    tests, values = one.tests("attr")
    sql = f"SELECT count(*) FROM (SELECT product_id FROM ({_product_ids('attr', tests)}) y LIMIT :most) x"
    [(count,)] = run(session, sql, {"attr": one.name, "most": most, **values})
    return int(count)


def _product_ids(prefix: str, tests: Sequence[str]) -> str:
    return " UNION ALL ".join(
        f"SELECT a.product_id FROM product_attributes a WHERE a.name = :{prefix} AND {test}" for test in tests
    )


MAX_ATTRIBUTES = 50  # of a product
_INSERT = (
    "INSERT INTO product_attributes (product_id, name, number, text_key, label)"
    " VALUES (:product_id, :name, :number, :text_key, :label)"
)


@dataclass(frozen=True)
class IndexedAttributes:
    product_id: int
    values: Mapping[str, AttributeValue]

    @property
    def digest_lines(self) -> list[str]:
        """None without attributes, so that the digest of such a product is that of its words."""
        return [f"{key}\t{value.number!r}\t{value.key}\t{value.label}" for key, value in self.values.items()]

    @property
    def counted_text(self) -> str | None:
        """What facets read of all candidates. Neither keys nor labels contain a tab or the end of a line."""
        return "\n".join(self.digest_lines) or None


def indexed_attributes(product_id: int, attributes: Mapping[str, Any] | None) -> IndexedAttributes:
    """Of names that count as the same, the first of the alphabet: PostgreSQL keeps no other order."""
    values: dict[str, AttributeValue] = {}
    for name, value in sorted((attributes or {}).items(), key=lambda one: one[0])[:MAX_ATTRIBUTES]:
        key = attribute_key(name)
        if key and key not in values and (read := attribute_value(key, value)):
            values[key] = read
    return IndexedAttributes(product_id, dict(sorted(values.items())))


def put_attributes(session: Session, entries: Iterable[IndexedAttributes], outdated: Sequence[int]) -> None:
    """Instead of the rows of the products `outdated`."""
    delete_attributes(session, outdated)
    run_many(
        session,
        _INSERT,
        [
            {
                "product_id": entry.product_id,
                "name": key,
                "number": value.number,
                "text_key": value.key,
                "label": value.label,
            }
            for entry in entries
            for key, value in entry.values.items()
        ],
    )


def delete_attributes(session: Session, product_ids: Sequence[int]) -> None:
    if product_ids:
        run(session, f"DELETE FROM product_attributes WHERE product_id IN {id_list(product_ids)}")
