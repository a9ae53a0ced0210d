"""Import of products from a sheet, its progress if it is large, and export of all products of a supplier."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.context import ContextDep, MarketServices, RequestContext
from tis.marketplace.kit.docs import Responses, json_example, responses
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.idempotency import KeyHeader, key_for_content
from tis.marketplace.kit.picture_links import pictures_of
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.responses import JSONText
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.products.service import supplier_for_member
from tis.marketplace.products.writing import COLUMN_OF_FIELD
from tis.marketplace.rates import limited
from tis.marketplace.sheets.columns import COLUMNS
from tis.marketplace.sheets.importing import ImportReport, SheetRefused, import_sheet, plan_sheet
from tis.marketplace.sheets.jobs import add_import, add_picture_import, find_import, num_fetches
from tis.marketplace.sheets.rows import RowProblem, Sheet, read_rows, write_rows
from tis.marketplace.sheets.upload import MAX_SHEET_BYTES, OPENAPI_BODY, SheetDep
from tis.marketplace.tables import Product, SheetImport

router = APIRouter(tags=["products"], route_class=CheckedRoute)
_EXPORT_BATCH = 500


class ImportProgress(BaseModel):
    """An import in the background. `rows_done` counts wrong rows, too; `errors` has at most 1,000."""

    id: str
    status: Literal["waiting", "running", "done", "failed"]
    rows: int
    rows_done: int
    created: int
    updated: int
    unchanged: int
    pictures_left: int = Field(description="rows whose pictures are still to be fetched")
    errors: list[RowProblem]
    detail: str | None
    created_at: datetime
    ended_at: datetime | None


_REPORT = {"created": 12, "updated": 3, "unchanged": 40, "errors": [], "dry_run": False}
_PROBLEM = {
    "row": 7,
    "field": "price",
    "message": "must be a whole number, such as 15999000, 15.999.000 or 15.999.000,00",
}
_REFUSED_REPORT = _REPORT | {"created": 0, "updated": 0, "unchanged": 0, "errors": [_PROBLEM]}
_REFUSED_REPORT |= {"detail": "Nothing was imported. Wrong rows: 1."}
_PROGRESS = {
    "id": "5f0f7a4e-6c0f-4f0a-9a53-0c2b1e9d7c11",
    "status": "running",
    "rows": 20_000,
    "rows_done": 4500,
    "created": 4000,
    "updated": 480,
    "unchanged": 20,
    "pictures_left": 3,
    "errors": [],
    "detail": None,
    "created_at": "2026-11-22T08:30:00Z",
    "ended_at": None,
}
_SHEET = "\ufeffname,description,price,stock_quantity,category,tags,sku,brand,condition,is_available,pictures\r\n"
_SHEET += 'Laptop ASUS ROG,Gaming laptop,15999000,5,laptop,"gaming,asus",ASU-1,ASUS,new,true,https://example.com/laptop.jpg\r\n'

_IMPORT_RESPONSES = responses(_REPORT, {413: f"A sheet has at most {MAX_SHEET_BYTES:,} bytes."})
_IMPORT_RESPONSES[202] = json_example("Imported in the background", _PROGRESS | {"status": "waiting", "rows_done": 0})
_IMPORT_RESPONSES[422] = json_example("Nothing was imported", _REFUSED_REPORT)
_EXPORT_RESPONSES: Responses = {200: {"description": "OK", "content": {"text/csv": {"example": _SHEET}}}}


@router.post(
    "/suppliers/{supplier_id}/products/import",
    response_model=ImportReport,
    responses=_IMPORT_RESPONSES,
    openapi_extra=OPENAPI_BODY,
    dependencies=[limited("imports")],
)
def import_products(
    request: Request,
    supplier_id: Id,
    data: SheetDep,
    context: ContextDep,
    idempotency_key: KeyHeader = None,
    dry_run: Annotated[bool, Query(description="report errors and how columns are read; change nothing")] = False,
    partial: Annotated[bool, Query(description="import the valid rows even if others have errors")] = False,
    ignore_unknown: Annotated[bool, Query(description="ignore columns whose names are not known")] = False,
) -> JSONResponse:
    """Create and change products from a sheet (CSV, xlsx), all or none: a row with a known `sku` changes that product.

    The header has the names of the fields, or Indonesian ones such as `nama`, `harga`, `stok`. A sheet of more than
    5,000 rows answers 202 once its rows are checked, and is imported in the background: `Location` shows its progress.
    So does a smaller one with new pictures: its rows are imported at once, the `pictures` (URLs with spaces between
    them) are fetched then.
    """
    with context.market.sheet_slots.slot(supplier_id):
        sheet = read_rows(data, "ignore" if ignore_unknown else "report" if dry_run else "refuse")
        if dry_run:
            return _dry_run(context, supplier_id, sheet)
        key = key_for_content(request, idempotency_key, data)
        is_large = sheet.num_rows > context.market.rules.max_sheet_rows_at_once
        work = _begin_import if is_large else _import_now
        try:
            with context.writing() as (session, principal):
                response = key.answer(
                    session,
                    principal,
                    lambda: work(context.market, session, principal, supplier_id, sheet, partial=partial),
                )
        except SheetRefused as refused:  # it may be sent again under the same key: nothing was written
            return _report_response(refused.report)
    if response.status_code == 202:
        response.headers["Location"] = f"{request.url.path}s/{json.loads(bytes(response.body))['id']}"
        context.market.wake_importer()
    return response


@router.get(
    "/suppliers/{supplier_id}/products/imports/{import_id}",
    response_model=ImportProgress,
    responses=responses(_PROGRESS, {404: "Import not found"}),
)
def import_progress(supplier_id: Id, import_id: UUID, context: ContextDep) -> JSONResponse:
    """Read the progress of an import in the background, for members. The last 20 of a supplier are kept."""
    with context.reading() as (session, principal):
        return JSONText(_progress(session, find_import(session, principal, supplier_id, str(import_id))))


def _dry_run(context: RequestContext, supplier_id: int, sheet: Sheet) -> JSONResponse:
    with context.reading() as (session, principal):
        max_products = context.market.rules.max_products_per_supplier
        public_url = context.market.rules.public_url
        plan = plan_sheet(session, principal, supplier_id, sheet, public_url=public_url, max_products=max_products)
        report = plan.report(dry_run=True)
    return _report_response(report.model_copy(update={"columns": sheet.columns}))


def _import_now(
    market: MarketServices, session: Session, principal: Principal, supplier_id: int, sheet: Sheet, *, partial: bool
) -> JSONResponse:
    plan = import_sheet(
        session,
        principal,
        market.search,
        supplier_id,
        sheet,
        public_url=market.rules.public_url,
        partial=partial,
        max_products=market.rules.max_products_per_supplier,
    )
    if plan.problems and not partial:
        raise SheetRefused(plan.refusal())
    if plan.pictures:
        return JSONText(_progress(session, add_picture_import(session, principal, plan)), 202)
    return _report_response(plan.report())


def _begin_import(
    market: MarketServices, session: Session, principal: Principal, supplier_id: int, sheet: Sheet, *, partial: bool
) -> JSONResponse:
    rules = market.rules
    plan = plan_sheet(
        session,
        principal,
        supplier_id,
        sheet,
        public_url=rules.public_url,
        max_products=rules.max_products_per_supplier,
    )
    if plan.problems and not partial:
        raise SheetRefused(plan.refusal())
    return JSONText(_progress(session, add_import(session, principal, plan, rules.sheet_batch_rows)), 202)


def _progress(session: Session, job: SheetImport) -> str:
    return ImportProgress(
        id=job.id,
        status=job.status,
        rows=job.num_rows,
        rows_done=job.num_done,
        created=job.num_created,
        updated=job.num_updated,
        unchanged=job.num_unchanged,
        pictures_left=num_fetches(session, job.id),
        errors=[RowProblem.model_validate(problem) for problem in job.problems],
        detail=job.detail,
        created_at=job.created_at,
        ended_at=job.ended_at,
    ).model_dump_json()


def _report_response(report: ImportReport) -> JSONResponse:
    return JSONText(report.text(), report.status)


@router.get("/suppliers/{supplier_id}/products/export", response_class=StreamingResponse, responses=_EXPORT_RESPONSES)
def export_products(supplier_id: Id, context: ContextDep) -> StreamingResponse:
    """Export all products of a supplier, for its members, as a sheet that the import accepts."""
    with context.reading() as (session, principal):
        supplier_for_member(session, principal, supplier_id)
        rows, last = _sheet_rows(session, supplier_id, 0, context.market.rules.public_url)
    headers = {"Content-Disposition": f'attachment; filename="products-{supplier_id}.csv"'}
    parts = _csv_parts(context.market, supplier_id, rows, last)
    return StreamingResponse(parts, media_type="text/csv; charset=utf-8", headers=headers)


def _products_of(session: Session, supplier_id: int, after: int, limit: int) -> Sequence[Product]:
    """Products of a supplier with an id greater than `after`, by id."""
    products = (
        select(Product)
        .where(Product.supplier_id == supplier_id, Product.deleted_at.is_(None), Product.id > after)
        .order_by(Product.id)
        .limit(limit)
    )
    return session.scalars(products).all()


def _csv_parts(market: MarketServices, supplier_id: int, rows: list[dict[str, Any]], last: int | None) -> Iterator[str]:
    """One transaction per batch, so that a slow client holds neither a connection nor an old snapshot."""
    yield write_rows(rows, with_header=True)
    while last is not None and len(rows) == _EXPORT_BATCH:
        with market.reading() as session:
            rows, last = _sheet_rows(session, supplier_id, last, market.rules.public_url)
        yield write_rows(rows)


def _sheet_rows(
    session: Session, supplier_id: int, after: int, public_url: str
) -> tuple[list[dict[str, Any]], int | None]:
    """With the last id."""
    products = _products_of(session, supplier_id, after, _EXPORT_BATCH)
    pictures = pictures_of(session, [product.id for product in products])
    rows = []
    for product in products:
        row = {name: getattr(product, COLUMN_OF_FIELD.get(name, name)) for name in COLUMNS if name != "pictures"}
        urls = [f"{public_url.rstrip('/')}{one.urls.large}" for one in pictures[product.id]]
        rows.append({**row, "pictures": urls})
    return rows, products[-1].id if products else None
