"""Compares a few products field by field and marks the best value of each. Pure functions."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pydantic import BaseModel

from tis.marketplace.products.delivery import Language
from tis.marketplace.products.schemas import ProductView
from tis.marketplace.reading.attribute_values import attribute_key, attribute_label


class ComparedField(BaseModel):
    field: str
    label: str
    values: list[str | bool | int | float | None]
    best: int | None = None


class Comparison(BaseModel):
    products: list[ProductView]
    rows: list[ComparedField]


class ComparableProduct(Protocol):
    """The fields of `ProductView` that rows are made of; cards of the assistant have them, too."""

    @property
    def distance_km(self) -> float | None: ...
    @property
    def attributes(self) -> Mapping[str, Any]: ...


def compare(products: Sequence[ProductView], language: Language = "id") -> Comparison:
    return Comparison(products=list(products), rows=compared_rows(products, language))


def compared_rows(products: Sequence[ComparableProduct], language: Language = "id") -> list[ComparedField]:
    rows = [_row(products, field, labels[language], better) for field, labels, better in _FIELDS]
    if all(product.distance_km is None for product in products):
        rows = [row for row in rows if row.field != "distance_km"]
    return rows + _attribute_rows(products)


def _attribute_rows(products: Sequence[ComparableProduct]) -> list[ComparedField]:
    """One for all spellings of a name; first those that several products have. Which value is better is not known."""
    spellings: dict[str, str] = {}
    of_products: list[dict[str, Any]] = []
    for product in products:
        own: dict[str, Any] = {}
        for name in sorted(product.attributes):
            key = attribute_key(name) or name
            spellings.setdefault(key, name)
            if own.get(key) is None:
                own[key] = product.attributes[name]
        of_products.append(own)
    rows = [
        ComparedField(
            field=f"attributes.{name}", label=attribute_label(key), values=[own.get(key) for own in of_products]
        )
        for key, name in spellings.items()
    ]
    return sorted(rows, key=lambda row: sum(value is not None for value in row.values) < 2)


LOWER, HIGHER, _NEITHER = -1, 1, 0
# Field, label, and whether a smaller or a larger value is better.
_FIELDS: list[tuple[str, dict[Language, str], int]] = [
    ("price", {"id": "Harga", "en": "Price"}, LOWER),
    ("available_quantity", {"id": "Stok tersedia", "en": "Available"}, HIGHER),
    ("rating", {"id": "Penilaian", "en": "Rating"}, HIGHER),
    ("rating_count", {"id": "Jumlah ulasan", "en": "Reviews"}, _NEITHER),
    ("distance_km", {"id": "Jarak (km)", "en": "Distance (km)"}, LOWER),
    ("category", {"id": "Kategori", "en": "Category"}, _NEITHER),
    ("brand", {"id": "Merek", "en": "Brand"}, _NEITHER),
    ("condition", {"id": "Kondisi", "en": "Condition"}, _NEITHER),
    ("supplier_name", {"id": "Toko", "en": "Shop"}, _NEITHER),
    ("city", {"id": "Kota", "en": "City"}, _NEITHER),
]


def _row(products: Sequence[ComparableProduct], field: str, label: str, better: int) -> ComparedField:
    values = [getattr(product, field) for product in products]
    return ComparedField(field=field, label=label, values=values, best=best_index(values, better))


def best_index(values: Sequence[Any], better: int) -> int | None:
    """Index of the best value; None if two share the first place."""
    known = [value for value in values if value is not None]
    if better == _NEITHER or len(known) < 2:
        return None
    best = max(known) if better == HIGHER else min(known)
    return values.index(best) if known.count(best) == 1 else None
