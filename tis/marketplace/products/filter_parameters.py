"""Query parameters of the filters that take several values, of stock and of shops."""

from typing import Annotated, Any

from fastapi import Query

from tis.errors import Unprocessable
from tis.marketplace.kit.fields import CITY_FILTER_DESCRIPTION, MAX_ID, Keyword, Sku
from tis.marketplace.search.query import FulfilmentKind

MAX_IDS = 100
_MAX_NAMES = 20
_Names = list[Keyword] | None


def _repeatable(description: str) -> Any:
    return Query(max_length=_MAX_NAMES, description=description)


def _ids_query() -> Any:
    return Query(
        max_length=20 * MAX_IDS,
        pattern=r"^[0-9]{1,19}(,[0-9]{1,19})*$",
        description=f"at most {MAX_IDS} ids, separated by commas",
    )


BrandsParameter = Annotated[_Names, _repeatable("of several, any: `brand=asus&brand=lenovo`")]
ExcludedBrandsParameter = Annotated[_Names, _repeatable("goes before `brand`")]
CitiesParameter = Annotated[_Names, _repeatable(f"{CITY_FILTER_DESCRIPTION}; of several, any")]
ProvincesParameter = Annotated[_Names, _repeatable("the city lies in one of these: `Jawa Barat`, `jabar`, `East Java`")]
ExcludedCitiesParameter = Annotated[_Names, _repeatable("named as in `city`; goes before `city` and `province`")]
ExcludedTermsParameter = Annotated[
    _Names, _repeatable("a word, or words in this order, that are nowhere in name, brand, tags, category and text")
]
IdsParameter = Annotated[str, _ids_query()]
OptionalIdsParameter = Annotated[str | None, _ids_query()]
SkuParameter = Annotated[Sku | None, Query(description="the whole SKU; case, blanks, hyphens and points do not count")]
QuantityParameter = Annotated[int | None, Query(ge=1, le=10**9, description="so many can be bought at once")]
FulfilmentParameter = Annotated[
    FulfilmentKind | None,
    Query(description="what the shop offers; `delivery` as far as it delivers, with user_lat and user_lon"),
]


def parse_ids(ids: str) -> tuple[int, ...]:
    """In their order, each once. Numbers beyond `MAX_ID` are ids of no product."""
    parsed = tuple(dict.fromkeys(min(int(number), MAX_ID) for number in ids.split(",")))
    if len(parsed) > MAX_IDS:
        raise Unprocessable(f"ids are at most {MAX_IDS}.")
    return parsed


def one_or_more(single: str, several: str, names: list[str] | None) -> dict[str, Any]:
    """The fields of a `ProductQuery` for a parameter that may be repeated."""
    return {single: names[0]} if names and len(names) == 1 else {several: tuple(names or ())}
