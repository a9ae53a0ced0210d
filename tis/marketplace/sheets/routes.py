"""Import of products from a sheet, and its progress if it is large."""

import json
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from sqlalchemy.orm import Session

from tis.marketplace.context import ContextDep, MarketServices, RequestContext
from tis.marketplace.kit.docs import json_example, responses
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.idempotency import KeyHeader, key_for_content
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.responses import JSONText
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.rates import limited
from tis.marketplace.sheets.cell_edits import parse_edits
from tis.marketplace.sheets.columns import parse_columns
from tis.marketplace.sheets.importing import ImportReport, SheetRefused, import_sheet, plan_sheet
from tis.marketplace.sheets.jobs import add_import, add_picture_import, find_import, list_imports, num_fetches
from tis.marketplace.sheets.preview import MAX_PREVIEWED_ROWS, preview_rows
from tis.marketplace.sheets.rows import RowProblem, Sheet, UnknownColumns, read_rows
from tis.marketplace.sheets.upload import MAX_SHEET_BYTES, OPENAPI_BODY, SheetDep
from tis.marketplace.tables import SheetImport

router = APIRouter(tags=["products"], route_class=CheckedRoute)
_MAX_COLUMNS_CHARS = 2000
_COLUMNS_DESCRIPTION = (
    "the field of each column, whatever its name: `name,price,,sku`; a blank one is ignored, as all behind the last"
)
_PREVIEW_DESCRIPTION = (
    "of a dry run: so many `rows` as they stand in the file, those with errors first; `columns` says what was guessed"
)


class ImportSummary(BaseModel):
    """An import in the background. `rows_done` counts wrong rows, too."""

    id: str
    status: Literal["waiting", "running", "done", "failed"]
    rows: int
    rows_done: int
    created: int
    updated: int
    unchanged: int
    pictures_left: int = Field(description="rows whose pictures are still to be fetched")
    detail: str | None
    created_at: datetime
    ended_at: datetime | None


class ImportProgress(ImportSummary):
    errors: list[RowProblem] = Field(description="at most 1,000")


_REPORT = {"created": 12, "updated": 3, "unchanged": 40, "errors": [], "dry_run": False}
_PROBLEM = {
    "row": 7,
    "field": "price",
    "message": "must be a whole number, such as 15999000, 15.999.000 or 15.999.000,00",
}
_REFUSED_REPORT = _REPORT | {"created": 0, "updated": 0, "unchanged": 0, "errors": [_PROBLEM]}
_REFUSED_REPORT |= {"detail": "Nothing was imported. Wrong rows: 1."}
_SUMMARY = {
    "id": "5f0f7a4e-6c0f-4f0a-9a53-0c2b1e9d7c11",
    "status": "running",
    "rows": 20_000,
    "rows_done": 4500,
    "created": 4000,
    "updated": 480,
    "unchanged": 20,
    "pictures_left": 3,
    "detail": None,
    "created_at": "2026-11-22T08:30:00Z",
    "ended_at": None,
}
_PROGRESS = _SUMMARY | {"errors": []}

_IMPORT_RESPONSES = responses(_REPORT, {413: f"A sheet has at most {MAX_SHEET_BYTES:,} bytes."})
_IMPORT_RESPONSES[202] = json_example("Imported in the background", _PROGRESS | {"status": "waiting", "rows_done": 0})
_IMPORT_RESPONSES[422] = json_example("Nothing was imported", _REFUSED_REPORT)


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
    sent: SheetDep,
    context: ContextDep,
    idempotency_key: KeyHeader = None,
    dry_run: Annotated[bool, Query(description="report errors and how columns are read; change nothing")] = False,
    partial: Annotated[bool, Query(description="import the valid rows even if others have errors")] = False,
    ignore_unknown: Annotated[bool, Query(description="ignore columns whose names are not known")] = False,
    columns: Annotated[str | None, Query(max_length=_MAX_COLUMNS_CHARS, description=_COLUMNS_DESCRIPTION)] = None,
    preview: Annotated[int, Query(ge=0, le=MAX_PREVIEWED_ROWS, description=_PREVIEW_DESCRIPTION)] = 0,
) -> JSONResponse:
    """Create and change products from a sheet (CSV, xlsx), all or none: a row with a known `sku` changes that product.

    The header has the names of the fields, or Indonesian ones such as `nama`, `harga`, `stok`. A sheet of more than
    5,000 rows answers 202 once its rows are checked, and is imported in the background: `Location` shows its progress.
    So does a smaller one with new pictures: its rows are imported at once, the `pictures` (URLs with spaces between
    them) are fetched then. The `edits` of a form, `[[row, column, "text"]]`, mend cells without a new file.
    """
    chosen, edits = None if columns is None else parse_columns(columns), parse_edits(sent.edits)
    with context.market.sheet_slots.slot(supplier_id):
        unknown: UnknownColumns = "ignore" if ignore_unknown else "report" if dry_run else "refuse"
        is_preview = dry_run and preview > 0
        sheet = read_rows(sent.data, unknown, chosen=chosen, edits=edits, for_preview=is_preview)
        if dry_run:
            return _dry_run(context, supplier_id, sheet, preview)
        key = key_for_content(request, idempotency_key, sent.content)
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


@router.get(
    "/suppliers/{supplier_id}/products/imports",
    responses=responses([_SUMMARY], {403: "This belongs to another supplier.", 404: "Supplier not found"}),
)
def list_of_imports(supplier_id: Id, context: ContextDep) -> list[ImportSummary]:
    """List the imports of a supplier in the background, newest first, for its members. The last 20 are kept."""
    with context.reading() as (session, principal):
        jobs = list_imports(session, principal, supplier_id)
        pictures_left = num_fetches(session, [job.id for job in jobs])
        return [ImportSummary(**_summary(job, pictures_left.get(job.id, 0))) for job in jobs]


def _dry_run(context: RequestContext, supplier_id: int, sheet: Sheet, preview: int) -> JSONResponse:
    with context.reading() as (session, principal):
        max_products = context.market.rules.max_products_per_supplier
        public_url = context.market.rules.public_url
        plan = plan_sheet(session, principal, supplier_id, sheet, public_url=public_url, max_products=max_products)
        report = plan.report(dry_run=True)
    shown: dict[str, Any] = {"columns": sheet.columns}
    if preview:
        shown |= {"num_rows": sheet.num_rows, "rows": preview_rows(sheet, plan.problems, preview)}
    return _report_response(report.model_copy(update=shown))


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
    errors = [RowProblem.model_validate(problem) for problem in job.problems]
    left = num_fetches(session, [job.id]).get(job.id, 0)
    return ImportProgress(**_summary(job, left), errors=errors).model_dump_json()


def _summary(job: SheetImport, pictures_left: int) -> dict[str, Any]:
    return {
        "id": job.id,
        "status": job.status,
        "rows": job.num_rows,
        "rows_done": job.num_done,
        "created": job.num_created,
        "updated": job.num_updated,
        "unchanged": job.num_unchanged,
        "pictures_left": pictures_left,
        "detail": job.detail,
        "created_at": job.created_at,
        "ended_at": job.ended_at,
    }


def _report_response(report: ImportReport) -> JSONResponse:
    return JSONText(report.text(), report.status)
