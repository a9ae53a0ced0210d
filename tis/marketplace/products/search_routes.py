"""Routes that list, search and count products."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter
from sqlalchemy.orm import Session

from tis.errors import Unprocessable
from tis.marketplace.columns import now
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.origin import OriginDep
from tis.marketplace.kit.paging import Limit, link_headers, parameters_without, total_headers
from tis.marketplace.kit.responses import JSONText, json_response
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.products.attribute_parameters import ATTRIBUTE_DOCS
from tis.marketplace.products.delivery import Language, advise, is_there_today
from tis.marketplace.products.filter_parameters import IdsParameter, parse_ids
from tis.marketplace.products.product_detail import LanguageDep
from tis.marketplace.products.relaxation_view import RelaxationView, relaxation_view
from tis.marketplace.products.schemas import ProductView, VariantsView, product_view
from tis.marketplace.products.search_schemas import (
    FACETS_RESPONSES,
    LIST_RESPONSES,
    LOOKED_UP,
    SEARCH_RESPONSES,
    SUGGESTED,
    CursorParameter,
    EnvelopeParameter,
    FacetsParameter,
    FiltersDep,
    HighlightedProduct,
    HighlightParameter,
    LookedUpProducts,
    NearestView,
    OptionalTextParameter,
    ProductPage,
    SkipParameter,
    SortParameter,
    SuggestionView,
    SuggestTextParameter,
    TextParameter,
    page_request,
    parse_facets,
    validate_sort,
    validate_text,
)
from tis.marketplace.rates import count_in_thread, limited
from tis.marketplace.search.highlights import Highlighter
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.query import (
    FacetCounts,
    FacetList,
    Facets,
    NearestElsewhere,
    PageRequest,
    ProductQuery,
    SearchHit,
    SearchResults,
)
from tis.marketplace.search.relaxed_filters import FEW
from tis.marketplace.search.suggestions import suggest

router = APIRouter(tags=["products"], route_class=CheckedRoute)
_MAX_NAMES_IN_HEADER, _MAX_NAME_CHARS = 5, 60
_MAX_UNDERSTOOD_CHARS = 100
_FIRST_FEW = PageRequest(limit=3, with_total=False)
_VIEWS: TypeAdapter[Any] = TypeAdapter(list[ProductView])
_HIGHLIGHTED_VIEWS: TypeAdapter[Any] = TypeAdapter(list[HighlightedProduct])
_FACETS: TypeAdapter[Facets] = TypeAdapter(Facets)


@router.get(
    "/products",
    response_model=list[ProductView] | ProductPage,
    responses=LIST_RESPONSES,
    openapi_extra=ATTRIBUTE_DOCS,
    dependencies=[limited("searches")],
)
def list_products(
    request: Request,
    context: ContextDep,
    language: LanguageDep,
    filters: FiltersDep,
    sort: SortParameter = None,
    limit: Limit = 100,
    skip: SkipParameter = 0,
    cursor: CursorParameter = None,
    envelope: EnvelopeParameter = False,
) -> JSONResponse:
    """List products, oldest first unless `sort` says otherwise."""
    query = replace(filters, sort=validate_sort(sort, filters))
    page = page_request(limit, skip, cursor)
    with context.reading() as (session, _):
        search = context.market.search
        results = search.find(session, query, page)
        relaxations = _relaxations(search, session, query, query) if envelope and _are_few(page, results) else []
    return _results_response(request, results, language, in_envelope=envelope, relaxations=relaxations)


@router.get(
    "/products/search",
    response_model=list[HighlightedProduct | ProductView] | ProductPage,
    responses=SEARCH_RESPONSES,
    openapi_extra=ATTRIBUTE_DOCS,
    dependencies=[limited("searches")],
)
def search_products(
    request: Request,
    context: ContextDep,
    language: LanguageDep,
    filters: FiltersDep,
    q: TextParameter,
    sort: SortParameter = None,
    limit: Limit = 50,
    skip: SkipParameter = 0,
    cursor: CursorParameter = None,
    envelope: EnvelopeParameter = False,
    facets: FacetsParameter = None,
    highlight: HighlightParameter = False,
) -> JSONResponse:
    """Search products by words, sorted by relevance.

    With `user_lat` and `user_lon`, those that match alike are sorted by rings of 5, 15, 40, 100 and 300 km around the
    buyer, and by rating inside a ring. `sort=distance` sorts by distance alone.

    All words match, in any order. Synonyms match too, and typos are corrected (`X-Corrected-Query`). If few
    products match all words, those that match the rarest words follow (`X-Relaxed-Query`). Of a long text the 24
    words that say most are looked for (`X-Cut-Query`). A price, a place and what is not wanted filter, and `murah`,
    `terdekat` and the like order: `kopi di Medan di bawah 50rb`, `hp murah selain Oppo`; `X-Understood` says what was
    read so. A parameter goes before what the text says. With `MARKETPLACE_EMBEDDING_MODEL`, products that are near in
    meaning and match none of the words are named in `X-By-Meaning`.
    """
    asked = replace(filters, text=validate_text(q), sort=validate_sort(sort, filters))
    page, facet_names = page_request(limit, skip, cursor), parse_facets(facets)
    if facet_names and not envelope:
        raise Unprocessable("facets need envelope=1.")
    if facet_names:
        count_in_thread(request, "facets")
    with context.reading() as (session, _):
        search = context.market.search
        reading = search.read(session, asked)
        query = reading.query
        results = search.find(session, query, page)
        counts = search.facets(session, query, facet_names) if facet_names else None
        relaxations = _relaxations(search, session, asked, query) if envelope and _are_few(page, results) else []
    meaning = context.market.meaning
    if meaning and (fused := meaning.beside(query, results)):  # no transaction is open while a model computes
        with context.reading() as (session, _):
            results = search.find(session, query, page, fused)
    return _results_response(
        request,
        results,
        language if asked.origin else None,
        in_envelope=envelope,
        counts=counts,
        relaxations=relaxations,
        is_highlighted=highlight,
        understood=reading.said,
    )


@router.get(
    "/products/facets",
    response_model=dict[str, FacetList],
    responses=FACETS_RESPONSES,
    openapi_extra=ATTRIBUTE_DOCS,
    dependencies=[limited("facets")],
)
def facets_of_products(
    context: ContextDep,
    filters: FiltersDep,
    facets: FacetsParameter = "category,brand,city,price",
    q: OptionalTextParameter = None,
) -> JSONResponse:
    """Count products per category, brand, city and price range; each count ignores its own filter.

    `facets=attributes` counts the values of the ten attributes that most products have, of at most 10,000 candidates.
    Of more than 10,000 candidates only so many are counted: `X-Facet-Counts-Are` is `lower-bound` then.
    A city is counted by its full name. The filter `city=jakarta` also matches Jakarta Selatan.
    """
    asked, facet_names = filters if q is None else replace(filters, text=validate_text(q)), parse_facets(facets)
    with context.reading() as (session, _):
        query = context.market.search.read(session, asked).query
        counts = context.market.search.facets(session, query, facet_names)
    return JSONText(_FACETS.dump_json(counts.facets).decode(), headers=_facet_headers(counts))


@router.get("/products/suggest", responses=SUGGESTED, dependencies=[limited("searches")])
def suggest_while_typing(context: ContextDep, q: SuggestTextParameter) -> list[SuggestionView]:
    """How a text may go on: common words of the catalogue, categories, and products that are found by it."""
    with context.reading() as (session, _):
        found = suggest(session, context.market.search, validate_text(q))
    return [SuggestionView.model_validate(vars(one)) for one in found]


@router.get(
    "/products/lookup", response_model=LookedUpProducts, responses=LOOKED_UP, dependencies=[limited("searches")]
)
def look_products_up(ids: IdsParameter, context: ContextDep, origin: OriginDep, language: LanguageDep) -> JSONResponse:
    """Read products by their ids, in this order. `not_found` names the ids that nobody finds any more."""
    wanted = parse_ids(ids)
    with context.reading() as (session, _):
        hits = context.market.search.lookup(session, wanted, origin)
    found = {hit.product.id for hit in hits}
    items = [hit_view(hit, language) for hit in hits]
    return json_response(LookedUpProducts(items=items, not_found=[one for one in wanted if one not in found]))


def _are_few(page: PageRequest, results: SearchResults) -> bool:
    """Whether this is the whole list."""
    return not (page.cursor or page.skip or results.next_cursor) and len(results.hits) < FEW


def _relaxations(
    search: ProductSearch, session: Session, asked: ProductQuery, read: ProductQuery
) -> list[RelaxationView]:
    def read_again(query: ProductQuery) -> ProductQuery:
        return search.read(session, query).query

    return [relaxation_view(asked, one, read_again) for one in search.relaxations(session, read)]


def _results_response(
    request: Request,
    results: SearchResults,
    language: Language | None,
    *,
    in_envelope: bool,
    counts: FacetCounts | None = None,
    relaxations: Sequence[RelaxationView] = (),
    is_highlighted: bool = False,
    understood: Mapping[str, Any] | None = None,
) -> JSONResponse:
    """A JSON array with the rest in headers, or all of it in one object. The headers are set either way."""
    views: list[HighlightedProduct | ProductView] = [hit_view(hit, language) for hit in results.hits]
    if is_highlighted:
        highlighter = Highlighter(results.text_query)
        views = [
            HighlightedProduct(**dict(view), highlights=highlighter.highlights(hit.product))
            for view, hit in zip(views, results.hits, strict=True)
        ]
    if in_envelope:
        page = ProductPage(
            items=views,
            total=results.total,
            total_is_exact=results.total_is_exact,
            next_cursor=results.next_cursor,
            corrected=results.corrected,
            did_you_mean=results.did_you_mean,
            relaxed=results.relaxed,
            by_meaning=list(results.by_meaning) or None,
            understood=dict(understood) if understood else None,
            cut=results.is_cut,
            relaxations=list(relaxations),
            unknown_attributes=list(results.unknown_attributes) or None,
            facets=None if counts is None else dict(counts.facets),
            facets_are_exact=None if counts is None else counts.are_exact,
            nearest=_nearest_view(results.nearest),
        )
        response = JSONText(page.model_dump_json())
    else:
        adapter = _HIGHLIGHTED_VIEWS if is_highlighted else _VIEWS
        response = JSONText(adapter.dump_json(views).decode())
    response.headers.update(_headers(request, results))
    if understood:
        response.headers["X-Understood"] = _understood_text(understood)
    if counts is not None:
        response.headers.update(_facet_headers(counts))
    return response


def _understood_text(understood: Mapping[str, Any]) -> str:
    """`max_price=2000000; cities=Bandung; sort=price_asc`."""
    lists = {name: value if isinstance(value, list) else [value] for name, value in understood.items()}
    texts = {name: ",".join(map(str, values[:_MAX_NAMES_IN_HEADER])) for name, values in lists.items()}
    texts |= {name: "true" for name, value in understood.items() if value is True}
    return "; ".join(f"{name}={quote(text[:_MAX_UNDERSTOOD_CHARS], safe=',.')}" for name, text in texts.items())


def _facet_headers(counts: FacetCounts) -> dict[str, str]:
    return {} if counts.are_exact else {"X-Facet-Counts-Are": "lower-bound"}


def hit_view(hit: SearchHit, language: Language | None = None) -> ProductView:
    """Without a language there is no advice on delivery: the distance is not from the buyer."""
    distance_km, supplier = hit.shown_km, hit.product.supplier
    variants = None if hit.variants is None else VariantsView(**vars(hit.variants))
    advice = None
    if distance_km is not None and language is not None:
        advice = advise(distance_km, supplier, language, today=is_there_today(hit.product, now(), hit.branch))
    return product_view(hit.product, distance_km, advice, variants=variants, place=hit.place)


def _nearest_view(nearest: NearestElsewhere | None) -> NearestView | None:
    if nearest is None:
        return None
    return NearestView(place=nearest.place, items=[hit_view(hit) for hit in nearest.hits])


def _headers(request: Request, results: SearchResults) -> dict[str, str]:
    headers: dict[str, str] = {}
    if results.total is not None:
        headers |= total_headers(results.total, is_exact=results.total_is_exact)
    if results.next_cursor:
        parameters = [*parameters_without(request, "cursor", "skip"), ("cursor", results.next_cursor)]
        headers |= link_headers(request, parameters)
    if results.corrected:
        headers["X-Corrected-Query"] = quote(results.corrected)
    if results.did_you_mean:
        headers["X-Did-You-Mean"] = quote(results.did_you_mean)
    if results.relaxed:
        headers["X-Relaxed-Query"] = "true"
    if results.by_meaning:
        headers["X-By-Meaning"] = ",".join(map(str, results.by_meaning))
    if results.is_cut:
        headers["X-Cut-Query"] = "true"
    if results.unknown_attributes:
        names = [name[:_MAX_NAME_CHARS] for name in results.unknown_attributes[:_MAX_NAMES_IN_HEADER]]
        headers["X-Unknown-Attributes"] = quote(",".join(names), safe=",")
    if results.nearest:
        headers["X-Nothing-In-Place"] = quote(results.nearest.place)
    return headers
