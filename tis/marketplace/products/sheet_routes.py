"""Import and export of all products of a supplier as a CSV sheet."""

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.datastructures import UploadFile
from starlette.requests import ClientDisconnect

from tis.errors import BadRequest, TooLarge, Unprocessable
from tis.marketplace.context import ContextDep, MarketServices
from tis.marketplace.kit.docs import Responses, json_example, responses
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.responses import JSONText
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.products.service import list_supplier_products, supplier_for_member
from tis.marketplace.products.sheet_import import ImportReport, import_sheet
from tis.marketplace.products.sheet_rows import COLUMNS, read_rows, write_rows
from tis.marketplace.rates import limited
from tis.marketplace.tables import Product

router = APIRouter(tags=["products"], route_class=CheckedRoute)
_EXPORT_BATCH = 500
MAX_SHEET_BYTES = 5_000_000
_FORM_OVERHEAD_BYTES = 10_000
_OPENAPI_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "text/csv": {
                "schema": {"type": "string"},
                "example": "sku,name,price,stock_quantity,category\nASU-1,Laptop ASUS ROG,15.999.000,5,laptop\n",
            },
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            },
        },
    }
}

_REPORT = {"created": 12, "updated": 3, "unchanged": 40, "errors": [], "dry_run": False}
_PROBLEM = {"row": 7, "field": "price", "message": "must be a whole number, such as 15999000 or 15.999.000"}
_REFUSED_REPORT = _REPORT | {"created": 0, "updated": 0, "unchanged": 0, "errors": [_PROBLEM]}
_REFUSED_REPORT |= {"detail": "Nothing was imported. Wrong rows: 1."}
_SHEET = "\ufeffname,description,price,stock_quantity,category,tags,sku,brand,condition,is_available\r\n"
_SHEET += 'Laptop ASUS ROG,Gaming laptop,15999000,5,laptop,"gaming,asus",ASU-1,ASUS,new,true\r\n'

_IMPORT_RESPONSES = responses(_REPORT, {413: f"A sheet has at most {MAX_SHEET_BYTES:,} bytes."})
_IMPORT_RESPONSES[422] = json_example("Nothing was imported", _REFUSED_REPORT)
_EXPORT_RESPONSES: Responses = {200: {"description": "OK", "content": {"text/csv": {"example": _SHEET}}}}


async def _read_sheet(request: Request) -> bytes:
    """A dependency, because routes run in threads and only the event loop can read the body."""
    try:
        if int(request.headers.get("content-length", "0")) > MAX_SHEET_BYTES + _FORM_OVERHEAD_BYTES:
            raise _too_large()
        is_form = request.headers.get("content-type", "").lower().startswith("multipart/form-data")
        data = await (_read_file(request) if is_form else _read_body(request))
    except ClientDisconnect:
        raise BadRequest("The body ended before it was complete.") from None
    if len(data) > MAX_SHEET_BYTES:
        raise _too_large()
    return data


async def _read_body(request: Request) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_SHEET_BYTES:
            raise _too_large()
    return bytes(data)


async def _read_file(request: Request) -> bytes:
    try:
        async with request.form(max_files=1, max_fields=10) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise Unprocessable("The form has no file called `file`.")
            return await file.read(MAX_SHEET_BYTES + 1)
    except HTTPException as error:
        raise BadRequest(f"The form could not be read: {error.detail}") from None


def _too_large() -> TooLarge:
    return TooLarge(f"A sheet has at most {MAX_SHEET_BYTES:,} bytes.")


SheetDep = Annotated[bytes, Depends(_read_sheet)]


@router.post(
    "/suppliers/{supplier_id}/products/import",
    response_model=ImportReport,
    responses=_IMPORT_RESPONSES,
    openapi_extra=_OPENAPI_BODY,
    dependencies=[limited("imports")],
)
def import_products(
    supplier_id: Id,
    data: SheetDep,
    context: ContextDep,
    dry_run: Annotated[bool, Query(description="validate and report only; change nothing")] = False,
    partial: Annotated[bool, Query(description="import the valid rows even if others have errors")] = False,
) -> JSONResponse:
    """Create and change products from a CSV sheet, all or none: a row with a known `sku` changes that product."""
    with context.reading() as (session, principal):
        supplier_for_member(session, principal, supplier_id)
    sheet = read_rows(data)  # before the transaction, which blocks other writers
    search = context.market.search
    with context.reading() if dry_run else context.writing() as (session, principal):
        report = import_sheet(session, principal, search, supplier_id, sheet, partial=partial, dry_run=dry_run)
    return JSONText(
        report.model_dump_json(exclude=set() if report.detail else {"detail"}), 422 if report.detail else 200
    )


@router.get("/suppliers/{supplier_id}/products/export", response_class=StreamingResponse, responses=_EXPORT_RESPONSES)
def export_products(supplier_id: Id, context: ContextDep) -> StreamingResponse:
    """Export all products of a supplier, for its members, as a sheet that the import accepts."""
    with context.reading() as (session, principal):
        supplier_for_member(session, principal, supplier_id)
        first = list_supplier_products(session, supplier_id, 0, _EXPORT_BATCH)
        rows, last = [_sheet_row(product) for product in first], first[-1].id if first else None
    headers = {"Content-Disposition": f'attachment; filename="products-{supplier_id}.csv"'}
    parts = _csv_parts(context.market, supplier_id, rows, last)
    return StreamingResponse(parts, media_type="text/csv; charset=utf-8", headers=headers)


def _csv_parts(market: MarketServices, supplier_id: int, rows: list[dict[str, Any]], last: int | None) -> Iterator[str]:
    """One transaction per batch, so that a slow client holds neither a connection nor an old snapshot."""
    yield write_rows(rows, with_header=True)
    while last is not None and len(rows) == _EXPORT_BATCH:
        with market.reading() as session:
            products = list_supplier_products(session, supplier_id, last, _EXPORT_BATCH)
            rows, last = [_sheet_row(product) for product in products], products[-1].id if products else None
        yield write_rows(rows)


def _sheet_row(product: Product) -> dict[str, Any]:
    return {name: getattr(product, "on_hand" if name == "stock_quantity" else name) for name in COLUMNS}
