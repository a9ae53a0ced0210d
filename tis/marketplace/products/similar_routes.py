"""Products that are like what a picture shows."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter

from tis.errors import NotImplementedHere
from tis.http.admission import ticket_of
from tis.marketplace.context import ContextDep, RequestContext
from tis.marketplace.kit.docs import responses
from tis.marketplace.kit.geo import Point
from tis.marketplace.kit.origin import OriginDep
from tis.marketplace.kit.picture_links import NO_PICTURE
from tis.marketplace.kit.responses import JSONText
from tis.marketplace.kit.threads import in_thread
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.products.product_detail import LanguageDep
from tis.marketplace.products.schemas import PRODUCT, ProductView
from tis.marketplace.products.search_routes import hit_view
from tis.marketplace.rates import limited
from tis.marketplace.search.meaning.meaning_search import NO_SIGHT
from tis.marketplace.search.query import MAX_LOOKED_UP, SearchHit

router = APIRouter(tags=["products"], route_class=CheckedRoute)
_VIEWS: TypeAdapter[Any] = TypeAdapter(list[ProductView])
_MAX_SIMILAR = 50
_MAX_NEAR = 10 * MAX_LOOKED_UP  # variants are near each other
ImageParameter = Annotated[
    str,
    Query(
        min_length=1,
        max_length=8192,
        description="the id or the address of a picture here, or an http(s) URL that the server fetches",
    ),
]
SIMILAR = responses(
    [PRODUCT], {400: "The image could not be fetched from its URL."}, {404: NO_PICTURE}, {501: NO_SIGHT}
)


@router.get(
    "/products/similar",
    response_model=list[ProductView],
    responses=SIMILAR,
    dependencies=[limited("searches")],
)
async def similar_products(
    request: Request,
    image: ImageParameter,
    context: ContextDep,
    origin: OriginDep,
    language: LanguageDep,
    limit: Annotated[int, Query(ge=1, le=_MAX_SIMILAR)] = 20,
) -> JSONResponse:
    """Find products whose words say what a picture shows, nearest first, by an embedding model that sees.

    Without one (`MARKETPLACE_EMBEDDING_MODEL`) the answer is a 501.
    """
    market = context.market
    meaning = market.meaning
    if meaning is None:
        raise NotImplementedHere(NO_SIGHT)
    await in_thread(meaning.require_sight)
    seen = await market.pictures.seen(image, market.rules.public_url, ticket_of(request))
    ids = await in_thread(meaning.near_picture, seen.pixels, seen.data, _MAX_NEAR)
    hits = await in_thread(_sold, context, ids, origin, limit)
    return JSONText(_VIEWS.dump_json([hit_view(hit, language) for hit in hits]).decode())


def _sold(context: RequestContext, ids: Sequence[int], origin: Point | None, count: int) -> list[SearchHit]:
    """The first of those that can be bought, in this order; of a group of variants one."""
    found: dict[int, SearchHit] = {}
    with context.reading() as (session, _):
        for start in range(0, len(ids), MAX_LOOKED_UP):
            for hit in context.market.search.lookup(session, ids[start : start + MAX_LOOKED_UP], origin):
                product = hit.product
                if product.is_available and product.on_hand > product.reserved:
                    found.setdefault(product.group_id or -product.id, hit)
            if len(found) >= count:
                break
    return list(found.values())[:count]
