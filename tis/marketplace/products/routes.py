"""Products: create, read, change, delete, restore, compare, price history."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from tis.errors import NotFound, Unprocessable
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.fields import MAX_ID, Id
from tis.marketplace.kit.idempotency import IdempotencyKeyDep
from tis.marketplace.kit.origin import OriginDep
from tis.marketplace.kit.paging import Before, Limit, page_response
from tis.marketplace.kit.picture_links import pictures_of
from tis.marketplace.kit.promoted_prices import current_prices
from tis.marketplace.kit.responses import json_response
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.kit.versions import IfMatchDep, set_etag
from tis.marketplace.products.compare import Comparison, compare
from tis.marketplace.products.product_detail import (
    LanguageDep,
    PriceView,
    ProductDetail,
    detail_of,
    price_history,
    view_from,
)
from tis.marketplace.products.schemas import (
    COMPARED,
    DELETED_PRODUCTS_LISTED,
    PRICES_SEEN,
    PRODUCT_CHANGED,
    PRODUCT_CREATED,
    PRODUCT_DELETED,
    PRODUCT_RESTORED,
    PRODUCT_SEEN,
    ProductChange,
    ProductForm,
    ProductView,
    product_view,
)
from tis.marketplace.products.service import (
    change_product,
    create_product,
    delete_product,
    find_product,
    list_deleted_products,
    restore_product,
)
from tis.marketplace.search.goods_places import nearest_places
from tis.marketplace.tables import PriceChange, Product

router = APIRouter(tags=["products"], route_class=CheckedRoute)


@router.post("/suppliers/{supplier_id}/products", response_model=ProductDetail, responses=PRODUCT_CREATED)
def create(supplier_id: Id, form: ProductForm, context: ContextDep, idempotency_key: IdempotencyKeyDep) -> JSONResponse:
    """Create a product of a supplier."""
    search, values = context.market.search, form.model_dump()
    max_products = context.market.rules.max_products_per_supplier
    with context.writing() as (session, principal):

        def create() -> JSONResponse:
            product = create_product(session, search, principal, supplier_id, values, max_products)
            return _with_etag(detail_of(session, product))

        return idempotency_key.answer(session, principal, create)


@router.get(
    "/suppliers/{supplier_id}/products/deleted",
    response_model=list[ProductView],
    responses=DELETED_PRODUCTS_LISTED,
)
def list_deleted(
    supplier_id: Id, context: ContextDep, request: Request, before: Before = None, limit: Limit = 50
) -> JSONResponse:
    """List the deleted products of a supplier, newest first, for its members, who may restore them."""
    with context.reading() as (session, principal):
        products = list_deleted_products(session, principal, supplier_id, before, limit + 1)
        pictures = pictures_of(session, [product.id for product in products])

        def view(product: Product) -> ProductView:
            return product_view(product, picture=next(iter(pictures[product.id]), None))

        return page_response(request, products, limit, view, lambda product: product.id)


@router.get("/products/compare", response_model=Comparison, responses=COMPARED)
def compare_products(
    ids: Annotated[
        str,
        Query(max_length=1000, description="2 to 10 ids, separated by commas", pattern=r"^[0-9]{1,19}(,[0-9]{1,19})*$"),
    ],
    context: ContextDep,
    origin: OriginDep,
    language: LanguageDep,
) -> Comparison:
    """Compare products side by side, read straight from the database."""
    product_ids = list(dict.fromkeys(int(number) for number in ids.split(",")))
    if not 2 <= len(product_ids) <= 10:
        raise Unprocessable("Compare 2 to 10 products.")
    with context.reading() as (session, principal):
        products = []
        for product_id in product_ids:
            try:
                products.append(find_product(session, principal, min(product_id, MAX_ID)))
            except NotFound:
                raise NotFound(f"Product {product_id} not found") from None
        pictures = pictures_of(session, product_ids)
        prices = current_prices(session, products)
        nearest = nearest_places(session, product_ids, origin) if origin else {}
        views = [view_from(product, origin, language, pictures, prices, nearest) for product in products]
    return compare(views, language)


@router.get("/products/{product_id}", response_model=ProductDetail, responses=PRODUCT_SEEN)
def get(product_id: Id, context: ContextDep, origin: OriginDep, language: LanguageDep) -> JSONResponse:
    """Read a product; with `user_lat` and `user_lon`, its distance and the best way of delivery."""
    with context.reading() as (session, principal):
        return _with_etag(detail_of(session, find_product(session, principal, product_id), origin, language))


@router.put("/products/{product_id}", response_model=ProductDetail, responses=PRODUCT_CHANGED)
def change(product_id: Id, form: ProductChange, context: ContextDep, if_match: IfMatchDep) -> JSONResponse:
    """Change the sent fields of a product, and no others."""
    search, values = context.market.search, form.model_dump(exclude_unset=True, exclude={"version"})
    with context.writing() as (session, principal):
        product = change_product(
            session, search, principal, product_id, values, if_match.with_body_version(form.version)
        )
        return _with_etag(detail_of(session, product))


@router.delete("/products/{product_id}", response_model=ProductDetail, responses=PRODUCT_DELETED)
def delete(product_id: Id, context: ContextDep, if_match: IfMatchDep) -> JSONResponse:
    """Delete a product. It can be restored."""
    with context.writing() as (session, principal):
        product = delete_product(session, context.market.search, principal, product_id, if_match)
        return _with_etag(detail_of(session, product))


@router.post("/products/{product_id}/restore", response_model=ProductDetail, responses=PRODUCT_RESTORED)
def restore(product_id: Id, context: ContextDep, if_match: IfMatchDep) -> JSONResponse:
    """Restore a deleted product. Idempotent."""
    with context.writing() as (session, principal):
        max_products = context.market.rules.max_products_per_supplier
        product = restore_product(session, context.market.search, principal, product_id, if_match, max_products)
        return _with_etag(detail_of(session, product))


@router.get("/products/{product_id}/price-history", response_model=list[PriceView], responses=PRICES_SEEN)
def prices(
    product_id: Id, context: ContextDep, request: Request, before: Before = None, limit: Limit = 50
) -> JSONResponse:
    """List the current and earlier prices of a product, newest first."""
    with context.reading() as (session, principal):
        find_product(session, principal, product_id)
        changes = price_history(session, product_id, before, limit + 1)
        return page_response(request, changes, limit, _price_view, lambda change: change.id)


def _price_view(change: PriceChange) -> PriceView:
    return PriceView(price=change.price, valid_from=change.valid_from)


def _with_etag(detail: ProductDetail) -> JSONResponse:
    response = json_response(detail)
    set_etag(response, detail.version)
    return response
