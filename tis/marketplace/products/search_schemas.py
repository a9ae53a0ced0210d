"""Query parameters, response and documentation of the product list and search."""

from math import ceil, floor
from typing import Annotated, Any, Literal, get_args

from fastapi import Depends, Query
from pydantic import BaseModel, Field

from tis.errors import Unprocessable
from tis.marketplace.kit.cursor_key import FOREIGN_CURSOR
from tis.marketplace.kit.docs import Responses, responses
from tis.marketplace.kit.fields import MAX_ID, VERIFIED_DESCRIPTION, Keyword, Latitude, Longitude
from tis.marketplace.kit.geo import Point
from tis.marketplace.products.attribute_parameters import AttributesDep
from tis.marketplace.products.filter_parameters import (
    BrandsParameter,
    CitiesParameter,
    ExcludedBrandsParameter,
    ExcludedCitiesParameter,
    ExcludedTermsParameter,
    FulfilmentParameter,
    OptionalIdsParameter,
    ProvincesParameter,
    QuantityParameter,
    SkuParameter,
    one_or_more,
    parse_ids,
)
from tis.marketplace.products.relaxation_view import RelaxationView
from tis.marketplace.products.schemas import PRODUCT, ProductView
from tis.marketplace.search.cursor import MAX_CURSOR_CHARS
from tis.marketplace.search.highlights import Highlights
from tis.marketplace.search.query import FacetList, FacetName, PageRequest, ProductQuery, Sort
from tis.marketplace.search.suggestions import SuggestionKind

_MAX_SKIP = 10_000
_MAX_TEXT_CHARS = 2000
_FACET_NAMES: tuple[FacetName, ...] = get_args(FacetName)
_Price = Annotated[float, Query(ge=0, le=1e15, allow_inf_nan=False)]


class HighlightedProduct(ProductView):
    """A product of a search with `highlight=1`."""

    highlights: Highlights


class NearestView(BaseModel):
    """Where the place that `city` or the text names has nothing: what is nearest to its centre."""

    place: str
    items: list[ProductView]


class ProductPage(BaseModel):
    """The response with `envelope=1`."""

    items: list[HighlightedProduct | ProductView]
    total: int | None
    total_is_exact: bool
    next_cursor: str | None
    corrected: str | None
    did_you_mean: str | None
    relaxed: bool
    by_meaning: list[int] | None = Field(
        None, description="ids of items that match none of the words, but are near to the query in meaning"
    )
    understood: dict[str, Any] | None = Field(
        None, description="filters and the order that were read in `q`; `no_goods_of`: brands that no product has"
    )
    cut: bool
    relaxations: list[RelaxationView] = Field(
        default=[], description="if fewer than five were found: what finds more, nearest to the request first"
    )
    unknown_attributes: list[str] | None = None  # of an empty list: names in its filters that no product has
    facets: dict[str, FacetList] | None = None
    facets_are_exact: bool | None = None  # else each count is a lower bound
    nearest: NearestView | None = None


class LookedUpProducts(BaseModel):
    items: list[ProductView] = Field(description="in the order of the ids")
    not_found: list[int] = Field(description="ids of deleted products, of products of closed shops, and of none")


class SuggestionView(BaseModel):
    text: str = Field(description="what to search for")
    kind: SuggestionKind
    category: str | None = Field(description="the slug of a category, for the filter")
    product_id: int | None


async def _filters(
    attributes: AttributesDep,
    category: Annotated[Keyword | None, Query(description="`laptop`, or another name of a known category")] = None,
    brand: BrandsParameter = None,
    exclude_brand: ExcludedBrandsParameter = None,
    city: CitiesParameter = None,
    province: ProvincesParameter = None,
    exclude_city: ExcludedCitiesParameter = None,
    exclude: ExcludedTermsParameter = None,
    ids: OptionalIdsParameter = None,
    sku: SkuParameter = None,
    quantity: QuantityParameter = None,
    fulfilment: FulfilmentParameter = None,
    verified: Annotated[bool, Query(description=VERIFIED_DESCRIPTION)] = False,
    on_promotion: Annotated[bool, Query(description="only goods whose price a promotion lowers now")] = False,
    supplier_id: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None,
    condition: Literal["new", "used"] | None = None,
    min_price: Annotated[_Price | None, Query(description="in rupiah")] = None,
    max_price: Annotated[_Price | None, Query()] = None,
    min_rating: Annotated[float | None, Query(ge=0, le=5, allow_inf_nan=False)] = None,
    available_only: Annotated[bool, Query(description="`false` also shows what is sold out or not on sale")] = True,
    variants: Annotated[
        Literal["best", "all"],
        Query(description="`best`: of a group of variants the first one in the order of the list; `all`: each"),
    ] = "best",
    user_lat: Annotated[Latitude | None, Query(description="where the buyer is: products gain `distance_km`")] = None,
    user_lon: Annotated[Longitude | None, Query()] = None,
    radius_km: Annotated[float | None, Query(ge=0, le=20_100, allow_inf_nan=False)] = None,
) -> ProductQuery:
    if min_price is not None and max_price is not None and min_price > max_price:
        raise Unprocessable("min_price is more than max_price.")
    if (user_lat is None) != (user_lon is None):
        raise Unprocessable("user_lat and user_lon belong together.")
    origin = Point(user_lat, user_lon) if user_lat is not None and user_lon is not None else None
    if radius_km is not None and origin is None:
        raise Unprocessable("radius_km needs user_lat and user_lon.")
    return ProductQuery(
        category=category,
        **one_or_more("brand", "brands", brand),
        **one_or_more("city", "cities", city),
        exclude_brands=tuple(exclude_brand or ()),
        provinces=tuple(province or ()),
        exclude_cities=tuple(exclude_city or ()),
        exclude_terms=tuple(exclude or ()),
        product_ids=None if ids is None else parse_ids(ids),
        sku=sku,
        quantity=quantity,
        fulfilment=fulfilment,
        of_verified_shops=verified,
        on_promotion=on_promotion,
        supplier_id=supplier_id,
        condition=condition,
        min_price=None if min_price is None else ceil(min_price),
        max_price=None if max_price is None else floor(max_price),
        min_rating=min_rating,
        attributes=attributes,
        available_only=available_only,
        origin=origin,
        radius_km=radius_km,
        shows_all_variants=variants == "all",
    )


FiltersDep = Annotated[ProductQuery, Depends(_filters)]
TextParameter = Annotated[
    str, Query(min_length=1, max_length=_MAX_TEXT_CHARS, description="words; order and case do not matter")
]
OptionalTextParameter = Annotated[str | None, Query(min_length=1, max_length=_MAX_TEXT_CHARS)]
SuggestTextParameter = Annotated[
    str, Query(min_length=1, max_length=100, description="what is typed so far; two letters of a word at least")
]
SortParameter = Annotated[
    Sort | None, Query(description="`distance` needs user_lat and user_lon; `relevance` uses them: rings, then rating")
]
SkipParameter = Annotated[int, Query(ge=0, description="for the first pages; further on, follow the `Link` header")]
CursorParameter = Annotated[str | None, Query(max_length=MAX_CURSOR_CHARS, description="from the `Link` header")]
EnvelopeParameter = Annotated[
    bool, Query(description="`1`: an object with `items`, `total`, `next_cursor`, … around the list")
]
HighlightParameter = Annotated[
    bool,
    Query(
        description="`1`: each product has `highlights`, where in its texts the words matched: `[begin, end]` in "
        "characters (Unicode code points; in JavaScript `[...text].slice(begin, end).join('')`), the end excluded"
    ),
]
FacetsParameter = Annotated[
    str | None, Query(max_length=100, description="any of category, brand, city, price, attributes")
]


def validate_text(text: str) -> str:
    if not text.strip():
        raise Unprocessable("q must not be empty.")
    return text


def validate_sort(sort: Sort | None, query: ProductQuery) -> Sort | None:
    if sort == "distance" and query.origin is None:
        raise Unprocessable("sort=distance needs user_lat and user_lon.")
    return sort


def page_request(limit: int, skip: int, cursor: str | None) -> PageRequest:
    if cursor is not None and skip:
        raise Unprocessable("skip counts from the beginning of a list: send it or a cursor.")
    if skip > _MAX_SKIP:
        raise Unprocessable(f"skip is at most {_MAX_SKIP}: use the cursor of the `Link` header.")
    return PageRequest(limit, skip, cursor)


def parse_facets(facets: str | None) -> list[FacetName]:
    requested = [name.strip() for name in (facets or "").split(",") if name.strip()]
    if unknown := [name for name in requested if name not in _FACET_NAMES]:
        raise Unprocessable(f"facets are {', '.join(_FACET_NAMES)}; {unknown[0][:50]!r} is none.")
    return [name for name in _FACET_NAMES if name in requested]


_FOUND_PRODUCT: dict[str, Any] = {
    **PRODUCT,
    "distance_km": 3.2,
    "fulfilment": {
        "suggestion": "pickup",
        "reason": "Toko hanya 3,2 km dari Anda: bisa diambil sendiri hari ini.",
    },
}
_VARIANT: dict[str, Any] = {
    **PRODUCT,
    "id": 8,
    "name": "Sepatu Lari Rinjani",
    "attributes": {"ukuran": 42, "warna": "merah"},
    "group_id": 3,
    "variants": {
        "group_id": 3,
        "name": "Sepatu Lari Rinjani",
        "count": 5,
        "price_from": 399000,
        "price_to": 429000,
        "options": {"ukuran": ["40", "41", "42"], "warna": ["merah", "hitam"]},
    },
}
_FOREIGN_CURSOR = {400: FOREIGN_CURSOR}
_LIST_HEADERS = {
    "X-Total-Count": {
        "description": "number of products, at most 1000; a group of variants counts once",
        "schema": {"type": "integer"},
    },
    "X-Total-Count-Is": {"description": "`lower-bound` if there are more", "schema": {"type": "string"}},
    "Link": {"description": 'the next page, `rel="next"`', "schema": {"type": "string"}},
    "X-Unknown-Attributes": {
        "description": "of an empty list: the first names in `attr.` filters that no product has, URL-encoded",
        "schema": {"type": "string"},
    },
    "X-Nothing-In-Place": {
        "description": "the place of the query, URL-encoded, if it has nothing and other places have: `nearest` of"
        " `envelope=1` lists the nearest",
        "schema": {"type": "string"},
    },
}
_SEARCH_HEADERS = {
    **_LIST_HEADERS,
    "X-Understood": {
        "description": "filters and the order that were read in `q`, such as `max_price=2000000; sort=price_asc`, with"
        " values URL-encoded; `no_goods_of` names brands that no product has",
        "schema": {"type": "string"},
    },
    "X-Corrected-Query": {
        "description": "the text after spelling correction, URL-encoded",
        "schema": {"type": "string"},
    },
    "X-Did-You-Mean": {
        "description": "of a word that hardly any product has, a text with a common word that is like it, URL-encoded",
        "schema": {"type": "string"},
    },
    "X-Cut-Query": {
        "description": "`true` if the text has more words than are looked for",
        "schema": {"type": "string"},
    },
    "X-Relaxed-Query": {
        "description": "`true` if few products matched all words: those that match some follow",
        "schema": {"type": "string"},
    },
}


def _with_headers(documented: Responses, headers: dict[str, Any]) -> Responses:
    return {**documented, 200: {**documented[200], "headers": headers}}


LIST_RESPONSES = _with_headers(
    responses([PRODUCT, _VARIANT], _FOREIGN_CURSOR, {422: "radius_km needs user_lat and user_lon."}), _LIST_HEADERS
)
SEARCH_RESPONSES = _with_headers(
    responses([_FOUND_PRODUCT], _FOREIGN_CURSOR, {422: "q must not be empty."}), _SEARCH_HEADERS
)
FACETS_RESPONSES = responses(
    {
        "category": [{"value": "laptop", "label": "Laptop", "count": 12}],
        "brand": [{"value": "asus", "label": "ASUS", "count": 7}],
        "city": [{"value": "jakarta selatan", "label": "Jakarta Selatan", "count": 5}],
        "price": [{"least": 10000000, "most": 19999999, "count": 9}],
        "attributes": [
            {
                "name": "ram_gb",
                "label": "RAM (GB)",
                "count": 11,
                "values": [{"value": "8", "label": "8", "count": 4}, {"value": "16", "label": "16", "count": 7}],
                "least": 8,
                "most": 16,
                "ranges": None,
            },
            {
                "name": "weight_kg",
                "label": "Weight (kg)",
                "count": 10,
                "values": [],
                "least": 0.98,
                "most": 3.1,
                "ranges": [{"least": 0.98, "most": 1.6, "count": 5}, {"least": 1.7, "most": 3.1, "count": 5}],
            },
        ],
    },
    {422: "min_price is more than max_price."},
)
LOOKED_UP = responses({"items": [_FOUND_PRODUCT], "not_found": [7]}, {422: "ids are at most 100."})
SUGGESTED = responses(
    [
        {"text": "laptop gaming", "kind": "word", "category": None, "product_id": None},
        {"text": "laptop", "kind": "category", "category": "laptop", "product_id": None},
        {"text": "lapindo", "kind": "brand", "category": None, "product_id": None},
        {"text": "Laptop Gaming Rinjani G15", "kind": "product", "category": None, "product_id": 1},
    ],
    {422: "q must not be empty."},
)
