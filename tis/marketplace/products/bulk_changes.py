"""Changes of many products of a shop at once, all or none."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, model_validator
from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from tis.bounds import MaxItems
from tis.errors import Conflict
from tis.marketplace.kit.branch_shares import units_at_branches, why_least
from tis.marketplace.kit.docs import KEY_USED, Responses, json_example, responses
from tis.marketplace.kit.fields import MAX_ID, Price, ShortName, Stock
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.promotion_clock import apply_due
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.products.product_write import ProductWrite
from tis.marketplace.products.schemas import Condition, Version
from tis.marketplace.products.service import supplier_for_member
from tis.marketplace.products.writing import (
    COLUMN_OF_FIELD,
    TEXT_COLUMNS,
    is_same_value,
    undercut_by,
    value_of,
    write_products,
)
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.tables import Product

MAX_PRODUCTS = 2000
_MAX_STOCK = 1_000_000_000
_FIELDS = ("price", "stock_quantity", "category", "condition", "is_available")
_UNCHANGED: Any = None


class BulkProduct(StrictBody):
    """A field that is left out stays unchanged."""

    id: Annotated[int, Field(ge=1, le=MAX_ID)]
    version: Version | None = Field(None, description="the version that you read; another one is an error")
    price: Price = _UNCHANGED
    stock_quantity: Stock = _UNCHANGED
    stock_by: Annotated[int, Field(ge=-_MAX_STOCK, le=_MAX_STOCK)] = Field(
        _UNCHANGED, description="units more, or fewer: what is sold meanwhile stays sold"
    )
    category: ShortName = _UNCHANGED
    condition: Condition = _UNCHANGED
    is_available: bool = _UNCHANGED

    @model_validator(mode="after")
    def _set_stock_once(self) -> "BulkProduct":
        if self.model_fields_set >= {"stock_quantity", "stock_by"}:
            raise ValueError("send stock_quantity or stock_by")
        return self


class BulkChange(StrictBody):
    products: Annotated[list[BulkProduct], MaxItems(MAX_PRODUCTS), Field(min_length=1)]

    model_config = {
        "json_schema_extra": {
            "example": {"products": [{"id": 1, "version": 3, "price": 16_500_000}, {"id": 2, "stock_by": -2}]}
        }
    }


class BulkProblem(BaseModel):
    id: int
    field: str | None
    message: str


class ChangedProduct(BaseModel):
    """`changes` has the old and the new value of each field that changed: who sends the old ones undoes it."""

    id: int
    version: int
    changes: dict[str, tuple[Any, Any]]


class BulkReport(BaseModel):
    """`errors` is empty, or nothing was changed: it has all products that cannot be changed so."""

    changed: int
    unchanged: int
    products: list[ChangedProduct] = Field(description="those that changed, by their ids")
    errors: list[BulkProblem]
    detail: str | None = None


class BulkRefused(Exception):
    """Raised inside a transaction, to roll it back. The report goes to the client."""

    def __init__(self, report: BulkReport) -> None:
        super().__init__(report.detail)
        self.report = report


_REFUSED = {
    "changed": 0,
    "unchanged": 0,
    "products": [],
    "errors": [{"id": 1, "field": "version", "message": "was changed meanwhile: it is version 4 now"}],
    "detail": "Nothing was changed. Wrong products: 1.",
}
BULK_CHANGED: Responses = responses(
    {
        "changed": 2,
        "unchanged": 0,
        "products": [
            {"id": 1, "version": 4, "changes": {"price": [15_000_000, 16_500_000]}},
            {"id": 2, "version": 8, "changes": {"stock_quantity": [5, 3]}},
        ],
        "errors": [],
        "detail": None,
    },
    {403: "This belongs to another supplier.", 404: "Supplier not found"},
    KEY_USED,
)
BULK_CHANGED[409] = json_example("Nothing was changed", _REFUSED)


def change_products(
    session: Session, search: ProductSearch, principal: Principal, supplier_id: int, wanted: Sequence[BulkProduct]
) -> BulkReport:
    """Raises `BulkRefused` if one of them cannot be changed so."""
    supplier_for_member(session, principal, supplier_id)
    ids = {one.id for one in wanted}
    products = _locked_products(session, supplier_id, ids)
    if due := apply_due(session, products):
        products = _locked_products(session, supplier_id, ids)
    elsewhere = units_at_branches(session, supplier_id)
    writes: list[ProductWrite] = []
    problems: list[BulkProblem] = []
    seen = set[int]()
    for one in wanted:
        product = products.get(one.id)
        if one.id in seen:
            problems.append(BulkProblem(id=one.id, field="id", message="is named twice"))
        elif product is None:
            problems.append(BulkProblem(id=one.id, field="id", message="is no product of this supplier"))
        else:
            changed = _changed_columns(one, product)
            problem = _problem(one, product, changed, elsewhere.get(one.id, 0))
            problems += [problem] if problem else []
            writes += [ProductWrite("change", product, changed)] if changed and not problem else []
        seen.add(one.id)
    if problems:
        detail = f"Nothing was changed. Wrong products: {len({problem.id for problem in problems})}."
        raise BulkRefused(BulkReport(changed=0, unchanged=0, products=[], errors=problems, detail=detail))
    writes.sort(key=lambda write: write.product.id)
    write_products(session, search, principal, writes, sku_taken=Conflict("SKU already registered"), also_changed=due)
    return BulkReport(
        changed=len(writes), unchanged=len(wanted) - len(writes), products=list(map(_changed, writes)), errors=[]
    )


def _locked_products(session: Session, supplier_id: int, ids: set[int]) -> dict[int, Row[Any]]:
    """In the order of their ids, as everybody locks several products."""
    names = (
        "supplier_id",
        "normal_price",
        "reserved",
        "version",
        *(COLUMN_OF_FIELD.get(name, name) for name in _FIELDS),
    )
    columns = [getattr(Product, name) for name in dict.fromkeys((*names, *TEXT_COLUMNS))]
    rows = (
        select(Product.id, *columns)
        .where(Product.supplier_id == supplier_id, Product.deleted_at.is_(None), Product.id.in_(ids))
        .order_by(Product.id)
        .with_for_update(key_share=True)
    )
    return {product.id: product for product in session.execute(rows)}


def _changed_columns(wanted: BulkProduct, product: Row[Any]) -> dict[str, Any]:
    values = {name: getattr(wanted, name) for name in _FIELDS if name in wanted.model_fields_set}
    if "stock_by" in wanted.model_fields_set:
        values["stock_quantity"] = product.on_hand + wanted.stock_by
    columns = {COLUMN_OF_FIELD.get(name, name): value for name, value in values.items()}
    return {name: value for name, value in columns.items() if not is_same_value(value, value_of(product, name))}


def _problem(wanted: BulkProduct, product: Row[Any], changed: dict[str, Any], elsewhere: int) -> BulkProblem | None:
    """`elsewhere`: units that are available at other places than the shop's own address."""
    if wanted.version not in (None, product.version):
        message = f"was changed meanwhile: it is version {product.version} now"
        return BulkProblem(id=product.id, field="version", message=message)
    if why_not := undercut_by(product, changed):
        return BulkProblem(id=product.id, field="price", message=why_not)
    on_hand = changed.get("on_hand", product.on_hand)
    least = product.reserved + elsewhere
    if on_hand != product.on_hand and not least <= on_hand <= _MAX_STOCK:
        message = f"must be at least {why_least(product.reserved, elsewhere)}" if least else "must not be below 0"
        message = f"must be at most {_MAX_STOCK}" if on_hand > _MAX_STOCK else message
        return BulkProblem(id=product.id, field="stock_quantity", message=message)
    return None


def _changed(write: ProductWrite) -> ChangedProduct:
    """Before and after. The row that was read still has the values before."""
    fields = {"on_hand": "stock_quantity"}
    changes = {
        fields.get(name, name): (value_of(write.product, name), value) for name, value in sorted(write.values.items())
    }
    return ChangedProduct(id=write.product.id, version=write.product.version + 1, changes=changes)
