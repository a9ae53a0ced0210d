"""What a search takes and returns."""

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from tis.marketplace.kit.geo import Point, shown_distance
from tis.marketplace.kit.ratings import rating_rank_of, weighted_stars
from tis.marketplace.search.product_rows import ProductRow, parse_json
from tis.marketplace.search.text_query import TextQuery

Sort = Literal["relevance", "distance", "price_asc", "price_desc", "rating", "newest"]
FacetName = Literal["category", "brand", "city", "price", "attributes"]
FulfilmentKind = Literal["delivery", "pickup"]
AttributeOperator = Literal["eq", "ne", "gte", "gt", "lte", "lt"]
Names = tuple[str, ...]
MAX_CANDIDATES = 200
MAX_LOOKED_UP = 100
_COMFORTABLE_SHARE = 0.2  # of a limit: a price that far from it fits well


@dataclass(frozen=True)
class AttributeFilter:
    """`eq` takes any number of values and passes one of them; `ne` also passes products without the attribute."""

    name: str
    operator: AttributeOperator
    numbers: tuple[float, ...] = ()
    keys: Names = ()  # of texts


@dataclass(frozen=True)
class ProductQuery:
    """All fields but `sort`, `tie_order` and `shows_all_variants` filter.

    Without `text` and `sort`, products are sorted by id. Of several brands or cities a product has any. What a product
    must not have goes before what it may have.
    `available_only` is the `in_stock` of a structured query, unless that is false.
    """

    text: str | None = None
    category: str | None = None
    brand: str | None = None
    brands: Names = ()  # with `brand`
    exclude_brands: Names = ()
    city: str | None = None
    cities: Names = ()  # with `city`
    provinces: Names = ()  # the city lies in one of these
    exclude_cities: Names = ()
    exclude_terms: Names = ()  # words and phrases that are nowhere in name, labels and text
    product_ids: tuple[int, ...] | None = None
    sku: str | None = None
    quantity: int | None = None  # that so many can be bought at once
    fulfilment: FulfilmentKind | None = None  # what the shop offers; delivery also reaches the origin, if that is known
    of_verified_shops: bool = False
    on_promotion: bool = False
    supplier_id: int | None = None
    condition: str | None = None
    min_price: int | None = None
    max_price: int | None = None
    min_rating: float | None = None
    attributes: tuple[AttributeFilter, ...] = ()
    available_only: bool = True
    origin: Point | None = None
    radius_km: float | None = None
    sort: Sort | None = None
    tie_order: Sort | None = None  # of what matches a text equally well, where the sort is by relevance
    shows_all_variants: bool = False  # else a list has one product of a group: the first in its order

    def with_default_sort(self) -> "ProductQuery":
        """A text is sorted by relevance by default; without a text there is no relevance."""
        if self.text is not None and self.sort is None:
            return replace(self, sort="relevance")
        if self.text is None and self.sort == "relevance":
            return replace(self, sort=None)
        return self

    @property
    def large_quantity(self) -> int | None:
        """The quantity, unless every available product has it."""
        return None if self.quantity == 1 and self.available_only else self.quantity

    @property
    def is_grouped(self) -> bool:
        """Who names products by their ids gets each of them."""
        return not self.shows_all_variants and self.product_ids is None

    @property
    def any_brand(self) -> Names:
        return self.brands if self.brand is None else (self.brand, *self.brands)

    @property
    def any_city(self) -> Names:
        return self.cities if self.city is None else (self.city, *self.cities)


@dataclass(frozen=True)
class SearchLimits:
    max_counted: int = 1000  # a total is exact up to here; counting further takes longer than the search
    max_sorted: int = 2000  # matches of a tier; of more, the best rated are looked for; 0: always
    max_walked: int = 8000  # rows of the index of ratings, in search of products that pass the filters
    max_products_of_rare_cities: int = 1000
    max_products_of_large_stock: int = 1000
    max_products_of_rare_attributes: int = 10_000
    max_faceted: int = 10_000  # of more candidates, this many are counted: about 15 ms
    max_faceted_with_attributes: int = 10_000  # reading the attributes of one takes as long as counting ten


@dataclass(frozen=True)
class PageRequest:
    """Which page: after a cursor, or after the first `skip` products."""

    limit: int = 100
    skip: int = 0
    cursor: str | None = None
    with_total: bool = True


@dataclass(frozen=True)
class VariantSummary:
    """What there is to choose from in a group: of its variants that can be bought now, or of all if none can."""

    group_id: int
    name: str
    count: int
    price_from: int
    price_to: int
    options: dict[str, list[str]]  # by the names of the axes, in their order


@dataclass(frozen=True)
class NearestPlace:
    """Of a shop with several places: the nearest that has the goods. It has the columns of `ShopTimes`."""

    branch_id: int  # 0: the own address, of which the columns of the shop say the rest
    distance_km: float
    public_longitude: float
    name: str | None = None
    city: str | None = None
    shows_place: bool = False
    opening_hours: dict[str, Any] | None = None
    time_zone: str | None = None

    @classmethod
    def of(
        cls,
        branch_id: int,
        distance_km: float,
        longitude: float,
        name: str | None,
        city: str | None,
        raw_shows_place: Any,
        raw_opening_hours: Any,
        time_zone: str | None,
    ) -> Self:
        """Of a row as the driver returns it."""
        hours = parse_json(raw_opening_hours)
        return cls(branch_id, distance_km, longitude, name, city, bool(raw_shows_place), hours, time_zone)


@dataclass(frozen=True)
class SearchHit:
    product: ProductRow
    distance_km: float | None = None  # from the nearest place that has it
    variants: VariantSummary | None = None  # of the group of a variant
    place: NearestPlace | None = None  # if it lies at several; its distance is the one above

    @property
    def shown_km(self) -> float | None:
        if self.distance_km is None:
            return None
        at = self.place if self.place and self.place.branch_id else self.product.supplier
        return shown_distance(self.distance_km, shows_place=at.shows_place)

    @property
    def branch(self) -> NearestPlace | None:
        """Whose hours count, if it is not the own address."""
        return self.place if self.place and self.place.branch_id else None


@dataclass(frozen=True)
class Candidate:
    """A product that keeps every filter of the query.

    `tier` is 0 for the best match of the words. `price_fit` is None if the query has no price: 1 for a price a fifth
    or more below the highest (above the lowest), falling to 0 at the limit itself. `rating` is the Bayesian mean that
    lists are sorted by; None without reviews.
    """

    product: ProductRow
    tier: int
    distance_km: float | None
    price_fit: float | None
    rating: float | None
    available_quantity: int

    @classmethod
    def of(cls, hit: SearchHit, query: ProductQuery, tier: int) -> Self:
        product = hit.product
        stars, weight = weighted_stars(product)
        is_rated = bool(weight) or product.granted_rating is not None
        return cls(
            product=product,
            tier=tier,
            distance_km=hit.distance_km,
            price_fit=price_fit(product.price, query.min_price, query.max_price),
            rating=rating_rank_of(product.granted_rating, stars, weight) if is_rated else None,
            available_quantity=product.on_hand - product.reserved,
        )


def price_fit(price: int, least: int | None, most: int | None) -> float | None:
    """Between two limits that are near each other, the middle fits best."""
    if least is None and most is None:
        return None
    half = (most - least) / 2 if least is not None and most is not None else None
    fits = [
        _distance_from_limit(price - least, _COMFORTABLE_SHARE * least, half) if least is not None else 1.0,
        _distance_from_limit(most - price, _COMFORTABLE_SHARE * most, half) if most is not None else 1.0,
    ]
    return min(fits)


def _distance_from_limit(distance: float, comfortable: float, half: float | None) -> float:
    comfortable = comfortable if half is None else min(comfortable, half)
    return 1.0 if distance >= comfortable else max(distance, 0.0) / comfortable


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
    did_you_mean: str | None = None  # a query of common words, if a word is rare and like one of them
    corrected: str | None = None  # the query after spelling correction, if a word was corrected
    relaxed: bool = False  # few products match all words; behind them are those that match some
    has_few_matches: bool = False  # of all words, in a list by relevance; not said of a page behind a cursor
    by_meaning: tuple[int, ...] = ()  # of this page: what matches none of the words
    is_cut: bool = False  # the text has more words than are looked for
    nearest: NearestElsewhere | None = None
    text_query: TextQuery | None = None  # what was looked for in the text index
    unknown_attributes: tuple[str, ...] = ()  # of an empty list: names in its filters that no product has


@dataclass(frozen=True)
class ProductCount:
    """How many products match; a lower bound if it is not exact."""

    count: int
    is_exact: bool = True


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


@dataclass(frozen=True)
class NumberRange:
    """Numbers from `least` to `most`, both included, as `attr.….gte` and `attr.….lte` take them."""

    least: int | float
    most: int | float
    count: int


@dataclass(frozen=True)
class AttributeFacet:
    """`name` is what the filters `attr.…` take. Numbers with more than 20 values have `ranges` instead of `values`."""

    name: str
    label: str
    count: int  # products that have it
    values: list[FacetValue]
    least: int | float | None = None
    most: int | float | None = None
    ranges: list[NumberRange] | None = None


FacetList = list[FacetValue] | list[PriceRange] | list[AttributeFacet]
Facets = dict[FacetName, FacetList]


@dataclass(frozen=True)
class FacetCounts:
    facets: Facets
    are_exact: bool = True  # else each count is a lower bound
