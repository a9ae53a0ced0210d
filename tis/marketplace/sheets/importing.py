"""Imports a sheet of products into a supplier, all or nothing: first plans every row, then writes them in bulk."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field
from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from tis.errors import Conflict
from tis.marketplace.kit.branch_shares import units_at_branches, why_least
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.promotion_clock import apply_due
from tis.marketplace.products.product_write import ProductWrite
from tis.marketplace.products.service import lock_supplier_shared, require_room_for_products, supplier_for_member
from tis.marketplace.products.writing import COLUMN_OF_FIELD, TEXT_COLUMNS, undercut_by, value_of, write_products
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.sheets.columns import ColumnMapping
from tis.marketplace.sheets.preview import PreviewRow
from tis.marketplace.sheets.rows import RowProblem, Sheet, SheetRow
from tis.marketplace.sheets.sheet_pictures import SheetPictures, are_same_pictures, sources_of
from tis.marketplace.sheets.sheet_variants import VARIANT_COLUMNS, VariantPlan, WrongVariant, plan_variants
from tis.marketplace.tables import Product, Supplier

_REQUIRED = ("name", "price", "category")
# PostgreSQL advisory locks: supplier N takes this number minus N. Nobody else uses numbers below it.
_IMPORT_LOCKS = -(2**40)
MAX_REPORTED_PROBLEMS = 1000
_MAX_SKUS_AT_ONCE = 5000  # a statement takes 32,766 values on SQLite
_OF_VARIANT = (Product.group_id, Product.variant_key)
_COMPARED = ("name", "description", "price", "on_hand", "category", "tags", "brand", "condition", "is_available")


class ImportReport(BaseModel):
    created: int
    updated: int
    unchanged: int
    errors: list[RowProblem]
    dry_run: bool
    detail: str | None = None
    columns: list[ColumnMapping] | None = None
    num_rows: int | None = Field(None, description="of a preview: below the header")
    rows: list[PreviewRow] | None = Field(None, description="of a preview: those with errors, then the first ones")

    @property
    def status(self) -> int:
        return 422 if self.detail else 200

    def text(self) -> str:
        """JSON without what there is not."""
        return self.model_dump_json(exclude={name for name in _OPTIONAL if getattr(self, name) is None})


_OPTIONAL = ("detail", "columns", "num_rows", "rows")


class SheetRefused(Exception):
    """Raised inside a transaction, to roll it back. The report goes to the client."""

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report.detail)
        self.report = report


@dataclass
class SheetPlan:
    supplier_id: int
    problems: list[RowProblem]  # those of the sheet, too
    variants: VariantPlan
    at_branches: dict[int, int] = field(default_factory=dict)  # units that a new total leaves where they are
    accepted: list[SheetRow] = field(default_factory=list)
    created: list[ProductWrite] = field(default_factory=list)
    changed: list[ProductWrite] = field(default_factory=list)
    num_unchanged: int = 0
    num_repictured: int = 0  # of which nothing else changes
    due: list[int] = field(default_factory=list)  # products of which a promotion has just begun or ended
    # Rows that name other pictures than their product has. Those of a new product get its id when it is written.
    pictures: list[tuple[SheetRow, Product | Row[Any]]] = field(default_factory=list)

    @property
    def sheet_pictures(self) -> list[SheetPictures]:
        """After the products are written."""
        return [
            SheetPictures(int(product.id), row.number, row.values["pictures"] or []) for row, product in self.pictures
        ]

    def report(self, *, dry_run: bool = False) -> ImportReport:
        return ImportReport(
            created=len(self.created),
            updated=len(self.changed) + self.num_repictured,
            unchanged=self.num_unchanged,
            errors=self.problems[:MAX_REPORTED_PROBLEMS],
            dry_run=dry_run,
        )

    def refusal(self) -> ImportReport:
        detail = f"Nothing was imported. Wrong rows: {len({problem.row for problem in self.problems})}."
        return self.report().model_copy(update={"created": 0, "updated": 0, "unchanged": 0, "detail": detail})


def plan_sheet(
    session: Session,
    principal: Principal,
    supplier_id: int,
    sheet: Sheet,
    *,
    public_url: str = "",
    locked: bool = False,
    max_products: int | None = None,
) -> SheetPlan:
    """A row whose SKU the supplier has changes that product, any other creates one."""
    supplier_for_member(session, principal, supplier_id)
    products = _products_by_sku(session, supplier_id, sheet.rows, locked=locked)
    due = apply_due(session, [product.id for product in products.values()]) if locked else []
    if due:
        products = _products_by_sku(session, supplier_id, sheet.rows, locked=locked)
    variants = plan_variants(session, supplier_id, sheet.rows, products, locked=locked)
    at_branches = units_at_branches(session, supplier_id) if products else {}
    same_pictures = _same_pictures(session, sheet, products, public_url)
    plan = _plan(supplier_id, sheet.rows, products, same_pictures, variants, at_branches)
    require_room_for_products(session, supplier_id, len(plan.created), max_products)
    plan.problems = sorted(sheet.problems + plan.problems, key=lambda problem: problem.row)
    plan.due = due
    return plan


def import_sheet(
    session: Session,
    principal: Principal,
    search: ProductSearch,
    supplier_id: int,
    sheet: Sheet,
    *,
    public_url: str = "",
    partial: bool = False,
    max_products: int | None = None,
) -> SheetPlan:
    """Skips wrong rows if it is `partial`, else writes nothing if there are any. The caller queues the pictures."""
    supplier_for_member(session, principal, supplier_id)
    _lock_supplier_for_import(session, supplier_id)
    plan = plan_sheet(
        session, principal, supplier_id, sheet, public_url=public_url, locked=True, max_products=max_products
    )
    if plan.problems and not partial:
        return plan
    plan.variants.write_groups(session, supplier_id)
    taken = Conflict("Another request created one of these SKUs meanwhile. Send the sheet again.")
    writes = plan.created + plan.changed
    write_products(session, search, principal, writes, sku_taken=taken, from_sheet=True, also_changed=plan.due)
    return plan


def _lock_supplier_for_import(session: Session, supplier_id: int) -> None:
    """Two imports at once would both create the new SKUs. SQLite has one writer anyway."""
    if session.get_bind().dialect.name == "mysql":
        session.execute(select(Supplier.id).where(Supplier.id == supplier_id).with_for_update())
        return
    lock_supplier_shared(session, supplier_id)
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(_IMPORT_LOCKS - supplier_id)))


def _products_by_sku(
    session: Session, supplier_id: int, rows: Iterable[SheetRow], *, locked: bool
) -> dict[str, Row[Any]]:
    """Locked in the order of their ids, as the sweeper does, so that no two transactions deadlock."""
    skus = sorted({row.values["sku"] for row in rows if row.values.get("sku")})
    if locked and len(skus) > _MAX_SKUS_AT_ONCE:
        raise ValueError("several statements would lock the products in another order")
    return {
        product.sku: product
        for start in range(0, len(skus), _MAX_SKUS_AT_ONCE)
        for product in _products_with(session, supplier_id, skus[start : start + _MAX_SKUS_AT_ONCE], locked=locked)
    }


def _products_with(session: Session, supplier_id: int, skus: list[str], *, locked: bool) -> Iterator[Row[Any]]:
    columns = [getattr(Product, name) for name in dict.fromkeys((*_COMPARED, *TEXT_COLUMNS))]
    statement = (
        select(
            Product.id,
            Product.supplier_id,
            Product.reserved,
            Product.version,
            Product.normal_price,
            *_OF_VARIANT,
            *columns,
        )
        .where(Product.supplier_id == supplier_id, Product.deleted_at.is_(None), Product.sku.in_(skus))
        .order_by(Product.id)
    )
    yield from session.execute(statement.with_for_update(key_share=True) if locked else statement)


def _same_pictures(session: Session, sheet: Sheet, products: dict[str, Row[Any]], public_url: str) -> set[int]:
    """The rows whose products have the pictures already that they name."""
    rows = [(row, products.get(row.values.get("sku") or "")) for row in sheet.rows if "pictures" in row.values]
    known = sorted({product.id for _, product in rows if product})
    same = set[int]()
    for start in range(0, len(known), _MAX_SKUS_AT_ONCE):
        some = frozenset(known[start : start + _MAX_SKUS_AT_ONCE])
        sources = sources_of(session, some)
        for row, product in rows:
            if product and product.id in some:
                urls = row.values["pictures"] or []
                if are_same_pictures(urls, sources.get(product.id, ()), public_url):
                    same.add(row.number)
    return same


def _plan(
    supplier_id: int,
    rows: Iterable[SheetRow],
    products_by_sku: dict[str, Row[Any]],
    same_pictures: set[int],
    variants: VariantPlan,
    at_branches: dict[int, int],
) -> SheetPlan:
    plan = SheetPlan(supplier_id, [], variants, at_branches)
    row_of_sku: dict[str, int] = {}
    for row in rows:
        others = ("pictures", *VARIANT_COLUMNS)
        columns = {COLUMN_OF_FIELD.get(name, name): value for name, value in row.values.items() if name not in others}
        has_pictures = "pictures" in row.values and row.number not in same_pictures
        sku = columns.get("sku")
        if sku in row_of_sku:
            message = f"is the same as in row {row_of_sku[sku]}"
            plan.problems.append(RowProblem(row=row.number, field="sku", message=message))
            continue
        if sku:
            row_of_sku[sku] = row.number
        product = products_by_sku.get(sku or "")
        try:
            variant = variants.of_row(row)
        except WrongVariant as wrong:
            plan.problems.append(RowProblem(row=row.number, field=wrong.column, message=str(wrong)))
            continue
        if product:
            write = _plan_change(plan, row, product, columns, variant.columns, has_pictures=has_pictures)
        else:
            write = _plan_create(plan, row, columns | variant.columns)
        if write and variant.group and variant.columns:
            variants.joins(write, variant.group)
    return plan


def _plan_create(plan: SheetPlan, row: SheetRow, columns: dict[str, Any]) -> ProductWrite | None:
    missing = [name for name in _REQUIRED if name not in columns]
    if missing:
        plan.problems += [
            RowProblem(row=row.number, field=name, message="is required for a new product") for name in missing
        ]
        return None
    product = Product(supplier_id=plan.supplier_id)
    plan.created.append(ProductWrite("create", product, columns))
    plan.accepted.append(row)
    if row.values.get("pictures"):
        plan.pictures.append((row, product))
    return plan.created[-1]


def _plan_change(
    plan: SheetPlan,
    row: SheetRow,
    product: Row[Any],
    columns: dict[str, Any],
    of_variant: dict[str, Any],
    *,
    has_pictures: bool,
) -> ProductWrite | None:
    # An empty text and NULL are the same cell of a sheet.
    changed = {
        name: value
        for name, value in columns.items()
        if name in _COMPARED and (value or None) != (value_of(product, name) or None)
    } | of_variant
    if why_not := undercut_by(product, changed):
        plan.problems.append(RowProblem(row=row.number, field="price", message=why_not))
        return None
    elsewhere = plan.at_branches.get(product.id, 0)
    if "on_hand" in changed and changed["on_hand"] < product.reserved + elsewhere:
        message = f"must be at least {why_least(product.reserved, elsewhere)}"
        plan.problems.append(RowProblem(row=row.number, field="stock_quantity", message=message))
        return None
    plan.accepted.append(row)
    if has_pictures:
        plan.pictures.append((row, product))
    if changed:
        plan.changed.append(ProductWrite("change", product, changed))
        return plan.changed[-1]
    if has_pictures:
        plan.num_repictured += 1
    else:
        plan.num_unchanged += 1
    return None
