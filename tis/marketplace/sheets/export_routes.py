"""Export of all products of a supplier, as CSV or as a workbook."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.context import ContextDep, MarketServices
from tis.marketplace.kit.docs import Responses
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.picture_links import pictures_of
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.products.service import supplier_for_member
from tis.marketplace.products.writing import COLUMN_OF_FIELD, value_of
from tis.marketplace.sheets.columns import COLUMNS
from tis.marketplace.sheets.rows import write_rows
from tis.marketplace.sheets.sheet_variants import VARIANT_COLUMNS, variant_cells
from tis.marketplace.sheets.upload import XLSX
from tis.marketplace.sheets.workbook import workbook_parts
from tis.marketplace.tables import Product

router = APIRouter(tags=["products"], route_class=CheckedRoute)
_EXPORT_BATCH = 500
_SHEET = "\ufeffname,description,price,stock_quantity,category,tags,sku,brand,condition,is_available,pictures,"
_SHEET += "variant_group,variant_values\r\n"
_SHEET += 'Laptop ASUS ROG,Gaming laptop,15999000,5,laptop,"gaming,asus",ASU-1,ASUS,new,true,https://example.com/laptop.jpg,,\r\n'
_BINARY = {"schema": {"type": "string", "format": "binary"}, "example": "(a workbook)"}
_EXPORT_RESPONSES: Responses = {
    200: {"description": "OK", "content": {"text/csv": {"example": _SHEET}, XLSX: _BINARY}},
}
_Rows = Iterator[list[dict[str, Any]]]


@router.get("/suppliers/{supplier_id}/products/export", response_class=StreamingResponse, responses=_EXPORT_RESPONSES)
def export_products(
    supplier_id: Id,
    context: ContextDep,
    format: Annotated[Literal["csv", "xlsx"], Query(description="`xlsx`: a workbook of Excel and the like")] = "csv",
) -> StreamingResponse:
    """Export all products of a supplier, for its members, as a sheet that the import accepts."""
    with context.reading() as (session, principal):
        supplier_for_member(session, principal, supplier_id)
        first, last = _sheet_rows(session, supplier_id, 0, context.market.rules.public_url)
    batches = _batches(context.market, supplier_id, first, last)
    headers = {"Content-Disposition": f'attachment; filename="products-{supplier_id}.{format}"'}
    if format == "xlsx":
        return StreamingResponse(workbook_parts(batches), media_type=XLSX, headers=headers)
    return StreamingResponse(_csv_parts(batches), media_type="text/csv; charset=utf-8", headers=headers)


def _csv_parts(batches: _Rows) -> Iterator[str]:
    for number, rows in enumerate(batches):
        yield write_rows(rows, with_header=number == 0)


def _batches(market: MarketServices, supplier_id: int, rows: list[dict[str, Any]], last: int | None) -> _Rows:
    """One transaction per batch, so that a slow client holds neither a connection nor an old snapshot."""
    yield rows
    while last is not None and len(rows) == _EXPORT_BATCH:
        with market.reading() as session:
            rows, last = _sheet_rows(session, supplier_id, last, market.rules.public_url)
        yield rows


def _products_of(session: Session, supplier_id: int, after: int, limit: int) -> Sequence[Product]:
    """Products of a supplier with an id greater than `after`, by id."""
    products = (
        select(Product)
        .where(Product.supplier_id == supplier_id, Product.deleted_at.is_(None), Product.id > after)
        .order_by(Product.id)
        .limit(limit)
    )
    return session.scalars(products).all()


def _sheet_rows(
    session: Session, supplier_id: int, after: int, public_url: str
) -> tuple[list[dict[str, Any]], int | None]:
    """With the last id."""
    products = _products_of(session, supplier_id, after, _EXPORT_BATCH)
    pictures = pictures_of(session, [product.id for product in products])
    rows = []
    for product in products:
        names = [name for name in COLUMNS if name not in ("pictures", *VARIANT_COLUMNS)]
        row = {name: value_of(product, COLUMN_OF_FIELD.get(name, name)) for name in names} | variant_cells(product)
        urls = [f"{public_url.rstrip('/')}{one.urls.large}" for one in pictures[product.id]]
        rows.append({**row, "pictures": urls})
    return rows, products[-1].id if products else None
