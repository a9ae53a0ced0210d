"""Keeps `product_attributes`: what a product can be filtered and counted by, in the transaction that changes it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from tis.marketplace.search.attribute_values import AttributeValue, attribute_key, attribute_value
from tis.marketplace.search.sql import id_list, run, run_many

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
