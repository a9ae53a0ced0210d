"""How a response tells which filter, dropped or widened, would find more."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from pydantic import BaseModel, Field

from tis.marketplace.kit.docs import schema_example
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.relaxed_filters import RelaxedFilter

_PARAMETERS = {
    "text": "q",
    "brands": "brand",
    "exclude_brands": "exclude_brand",
    "cities": "city",
    "exclude_cities": "exclude_city",
    "provinces": "province",
    "exclude_terms": "exclude",
    "product_ids": "ids",
    "attributes": "attr.*",
}
_FIELDS = [field.name for field in fields(ProductQuery) if field.name not in ("sort", "tie_order")]
Read = Callable[[ProductQuery], ProductQuery]


class RelaxationView(BaseModel):
    model_config = schema_example(
        {"without": "max_price", "changed": {"max_price": 12500000}, "count": 3, "is_exact": True}
    )
    without: str = Field(description="the filter that is dropped or widened")
    changed: dict[str, Any] = Field(description="the query parameters that change; null: leave it out")
    count: int = Field(description="how many products that finds")
    is_exact: bool = Field(description="else there are more")


def relaxation_view(original: ProductQuery, relaxed: RelaxedFilter, read: Read) -> RelaxationView:
    """`read` makes filters of what the text of a query says."""
    return RelaxationView(
        without=relaxed.without,
        changed=_changed_parameters(original, relaxed.query, read),
        count=relaxed.count,
        is_exact=relaxed.is_exact,
    )


def _changed_parameters(original: ProductQuery, relaxed: ProductQuery, read: Read) -> dict[str, Any]:
    """A filter that the text says stays unless the text changes, too: then all that it says becomes parameters."""
    changed = _differences(read(original), relaxed)
    if _differences(read(replace(original, **changed)), relaxed):
        changed = _differences(original, relaxed)
    parameters: dict[str, Any] = {}
    for name, value in changed.items():
        if name == "origin":
            parameters |= {"user_lat": value and value.latitude, "user_lon": value and value.longitude}
        elif name == "text" and value is not None:
            parameters["q"] = " ".join(value.split())
        else:
            parameters[_PARAMETERS.get(name, name)] = None if value == () else value
    return parameters


def _differences(one: ProductQuery, other: ProductQuery) -> dict[str, Any]:
    return {name: getattr(other, name) for name in _FIELDS if getattr(one, name) != getattr(other, name)}
