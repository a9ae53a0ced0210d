"""What a search takes and returns."""

from dataclasses import dataclass
from typing import Literal

from tis.marketplace.kit.geo import Point
from tis.marketplace.search.product_rows import ProductRow

Sort = Literal["relevance", "distance", "price_asc", "price_desc", "rating", "newest"]
FacetName = Literal["category", "brand", "city", "price"]


@dataclass(frozen=True)
class ProductQuery:
    """All fields but `sort` filter. Without `text` and `sort`, products are sorted by id."""

    text: str | None = None
    category: str | None = None
    brand: str | None = None
    city: str | None = None
    supplier_id: int | None = None
    condition: str | None = None
    min_price: int | None = None
    max_price: int | None = None
    min_rating: float | None = None
    available_only: bool = True
    origin: Point | None = None
    radius_km: float | None = None
    sort: Sort | None = None


@dataclass(frozen=True)
class PageRequest:
    """Which page: after a cursor, or after the first `skip` products."""

    limit: int = 100
    skip: int = 0
    cursor: str | None = None
    with_total: bool = True


@dataclass(frozen=True)
class SearchHit:
    product: ProductRow
    distance_km: float | None = None


@dataclass(frozen=True)
class NearestElsewhere:
    """Where the place of the query has nothing: its name, and what is nearest to it. Distances are from its centre."""

    place: str
    hits: list[SearchHit]


@dataclass(frozen=True)
class SearchResults:
    """One page. `total` is None if it was not requested, and a lower bound if it is not exact."""

    hits: list[SearchHit]
    total: int | None = None
    total_is_exact: bool = True
    next_cursor: str | None = None
    corrected: str | None = None  # the query after spelling correction, if a word was corrected
    relaxed: bool = False  # few products match all words; behind them are those that match some
    is_cut: bool = False  # the text has more words than are looked for
    nearest: NearestElsewhere | None = None


@dataclass(frozen=True)
class FacetValue:
    """`value` is what the filter takes, `label` is how a seller writes it."""

    value: str
    label: str
    count: int


@dataclass(frozen=True)
class PriceRange:
    """Prices from `least` to `most`, both included, as `min_price` and `max_price` take them."""

    least: int
    most: int | None
    count: int


Facets = dict[FacetName, list[FacetValue] | list[PriceRange]]


@dataclass(frozen=True)
class FacetCounts:
    facets: Facets
    are_exact: bool = True  # else each count is a lower bound
