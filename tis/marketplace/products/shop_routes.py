"""Routes for the members of a shop: its goods in a list, and many changes of them at once."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter

from tis.marketplace.context import ContextDep
from tis.marketplace.kit.cursor_key import FOREIGN_CURSOR
from tis.marketplace.kit.docs import responses
from tis.marketplace.kit.fields import Id, Keyword, Words
from tis.marketplace.kit.idempotency import IdempotencyKeyDep
from tis.marketplace.kit.paging import MAX_COUNTED, link_headers, parameters_without, total_headers
from tis.marketplace.kit.picture_links import pictures_of
from tis.marketplace.kit.promoted_prices import current_prices
from tis.marketplace.kit.responses import JSONText, json_response
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.products.bulk_changes import (
    BULK_CHANGED,
    BulkChange,
    BulkRefused,
    BulkReport,
    change_products,
)
from tis.marketplace.products.schemas import PRODUCT, Condition, ProductView, product_view
from tis.marketplace.products.shop_goods import GoodsOrder, GoodsQuery, list_goods, position_of

router = APIRouter(tags=["products"], route_class=CheckedRoute)
_VIEWS: TypeAdapter[list[ProductView]] = TypeAdapter(list[ProductView])
_MAX_STOCK = 1_000_000_000
_MAX_CURSOR_CHARS = 2000  # the last name may have 255 characters
_GOODS_LISTED = responses(
    [PRODUCT], {400: FOREIGN_CURSOR}, {403: "This belongs to another supplier.", 404: "Supplier not found"}
)


@router.get("/suppliers/{supplier_id}/products", response_model=list[ProductView], responses=_GOODS_LISTED)
def list_goods_of_shop(
    request: Request,
    supplier_id: Id,
    context: ContextDep,
    q: Annotated[Words | None, Query(description="words: each is a part of the name, the SKU or the brand")] = None,
    category: Keyword | None = None,
    condition: Condition | None = None,
    is_available: Annotated[bool | None, Query(description="`false`: those that are not offered")] = None,
    max_stock: Annotated[int | None, Query(ge=0, le=_MAX_STOCK, description="units on hand; `0`: none is left")] = None,
    sort: GoodsOrder = "newest",
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    cursor: Annotated[str | None, Query(max_length=_MAX_CURSOR_CHARS, description="from the `Link` header")] = None,
) -> JSONResponse:
    """List the goods of a shop for its members, those that are not on sale, too.

    `X-Total-Count` has their number, up to 1,000. A cursor is valid with the filters and the order it was made for.
    """
    query = GoodsQuery(q, category, condition, is_available, max_stock, sort)
    key, filters = context.market.search.cursor_key, parameters_without(request, "cursor", "limit")
    of_list = f"{request.url.path}?{sorted(filters)}".encode()
    after = None if cursor is None else key.decode(cursor, of_list)
    with context.reading() as (session, principal):
        goods, total = list_goods(session, principal, supplier_id, query, after, limit + 1)
        page = goods[:limit]
        pictures = pictures_of(session, [product.id for product in page])
        prices = current_prices(session, page)
        views = [
            product_view(product, picture=next(iter(pictures[product.id]), None), current=prices[product.id])
            for product in page
        ]
    response = JSONText(_VIEWS.dump_json(views).decode())
    response.headers.update(total_headers(min(total, MAX_COUNTED), is_exact=total <= MAX_COUNTED))
    if len(goods) > limit:
        following = key.encode(position_of(page[-1], sort), of_list)
        response.headers.update(link_headers(request, [*filters, ("limit", limit), ("cursor", following)]))
    return response


@router.post("/suppliers/{supplier_id}/products/bulk", response_model=BulkReport, responses=BULK_CHANGED)
def change_many(
    supplier_id: Id, body: BulkChange, context: ContextDep, idempotency_key: IdempotencyKeyDep
) -> JSONResponse:
    """Change price, stock, category, condition or offer of up to 2,000 products of a shop, all or none.

    The answer has the old and the new values. If one product cannot be changed so, nothing changes, and the 409 names
    all such products. `stock_by` adds to what is on hand at that moment.
    """
    try:
        with context.writing() as (session, principal):
            return idempotency_key.answer(
                session,
                principal,
                lambda: json_response(
                    change_products(session, context.market.search, principal, supplier_id, body.products)
                ),
            )
    except BulkRefused as refused:  # it may be sent again under the same key: nothing was written
        return JSONText(refused.report.model_dump_json(), 409)
