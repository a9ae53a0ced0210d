"""Variants in sheets: the column `variant_group` names the group of a row, `variant_values` its value of each axis."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from tis.errors import Conflict
from tis.marketplace.kit.fields import key_of
from tis.marketplace.products.product_write import ProductWrite
from tis.marketplace.products.variant_keys import variant_key
from tis.marketplace.reading.attribute_values import attribute_key
from tis.marketplace.search.variant_groups import axis_values
from tis.marketplace.sheets.rows import SheetRow
from tis.marketplace.tables import Product, ProductGroup
from tis.marketplace.variants.schemas import MAX_VARIANTS
from tis.marketplace.variants.service import with_values

GROUP, VALUES = "variant_group", "variant_values"
VARIANT_COLUMNS = (GROUP, VALUES)
_MAX_NAMES_AT_ONCE = 5000


class WrongVariant(Exception):
    """A problem of a row, in one of the two columns."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column


def variant_cells(product: Product) -> dict[str, Any]:
    """Of an export."""
    group = product.group
    if group is None:
        return {GROUP: None, VALUES: None}
    return {GROUP: group.name, VALUES: list(axis_values(group.axes, product.attributes).items())}


@dataclass
class PlannedGroup:
    """A group that a sheet names: one that there is, or a new one without an id."""

    name: str
    axes: Sequence[str]
    id: int | None = None
    key_of_product: dict[int, str] = field(default_factory=dict)  # of its variants that the sheet leaves as they are
    row_of_key: dict[str, int] = field(default_factory=dict)  # of those that rows put into it


@dataclass(frozen=True)
class PlannedVariant:
    """What changes of the product of a row beside its other columns, and the group that it is in then."""

    columns: dict[str, Any]
    group: PlannedGroup | None = None
    key: str | None = None


_NO_VARIANT = PlannedVariant({})


class VariantPlan:
    """Which groups the rows of a sheet make, join and leave. `write_groups` comes before the products are written."""

    def __init__(self, groups: dict[str, PlannedGroup]) -> None:
        self._groups = groups
        self._variants: dict[int, PlannedVariant | WrongVariant] = {}
        self._joined: list[tuple[ProductWrite, PlannedGroup]] = []

    def plan(self, row: SheetRow, product: Row[Any] | None) -> None:
        """Call it for all rows first: whether a value is free depends on what the others leave."""
        for group in self._groups.values():
            if product is not None and GROUP in row.values:
                group.key_of_product.pop(product.id, None)
        try:
            self._variants[row.number] = self._planned(row, product)
        except WrongVariant as wrong:
            self._variants[row.number] = wrong

    def of_row(self, row: SheetRow) -> PlannedVariant:
        """Raises WrongVariant."""
        planned = self._variants.get(row.number, _NO_VARIANT)
        if isinstance(planned, WrongVariant):
            raise planned
        if planned.group and planned.key in planned.group.key_of_product.values():
            raise WrongVariant(VALUES, "are those of another variant of the group")
        return planned

    def joins(self, write: ProductWrite, group: PlannedGroup) -> None:
        self._joined.append((write, group))

    def write_groups(self, session: Session, supplier_id: int) -> None:
        for write, group in self._joined:
            if group.id is None:
                names = {"name": group.name, "name_key": key_of(group.name), "axes": list(group.axes)}
                row = ProductGroup(supplier_id=supplier_id, **names)
                session.add(row)
                session.flush()
                group.id = row.id
            write.values["group_id"] = group.id

    def _planned(self, row: SheetRow, product: Row[Any] | None) -> PlannedVariant:
        name, said = row.values.get(GROUP), dict[str, str](row.values.get(VALUES) or ())
        if name is None:
            if said:
                raise WrongVariant(GROUP, f"is needed where `{VALUES}` is given")
            leaves = GROUP in row.values and product is not None and product.group_id is not None
            return PlannedVariant({"group_id": None, "variant_key": None}) if leaves else _NO_VARIANT
        group = self._groups.setdefault(key_of(name), PlannedGroup(name, list(said)))
        if not group.axes:
            raise WrongVariant(VALUES, "is needed in the first row of a new group, such as `ukuran: 42; warna: merah`")
        attributes = with_values({} if product is None else product.attributes, _values(group, said))
        try:
            key = variant_key(group.axes, attributes)
        except Conflict as error:
            raise WrongVariant(VALUES, error.message) from error
        if key in group.row_of_key:
            raise WrongVariant(VALUES, f"are the same as in row {group.row_of_key[key]}")
        if len(group.row_of_key) + len(group.key_of_product) >= MAX_VARIANTS:
            raise WrongVariant(GROUP, f"has {MAX_VARIANTS} variants already, the most that there may be")
        group.row_of_key[key] = row.number
        columns: dict[str, Any] = {"group_id": group.id, "variant_key": key, "attributes": attributes}
        if product is not None and group.id is not None:
            columns = {column: value for column, value in columns.items() if value != getattr(product, column)}
        return PlannedVariant(columns, group, key)


def _values(group: PlannedGroup, said: Mapping[str, str]) -> dict[str, str]:
    axes = {attribute_key(axis): axis for axis in group.axes}
    if unknown := [name for name in said if attribute_key(name) not in axes]:
        raise WrongVariant(VALUES, f"`{unknown[0]}` is no axis of the group, which has {', '.join(group.axes)}")
    return {axes[attribute_key(name)]: value for name, value in said.items()}


def plan_variants(
    session: Session,
    supplier_id: int,
    rows: Sequence[SheetRow],
    products_by_sku: Mapping[str, Row[Any]],
    *,
    locked: bool,
) -> VariantPlan:
    """After the products are locked."""
    if not any(name in row.values for row in rows for name in VARIANT_COLUMNS):
        return VariantPlan({})
    plan = VariantPlan(_groups_of(session, supplier_id, rows, locked=locked))
    for row in rows:
        plan.plan(row, products_by_sku.get(row.values.get("sku") or ""))
    return plan


def _groups_of(
    session: Session, supplier_id: int, rows: Iterable[SheetRow], *, locked: bool
) -> dict[str, PlannedGroup]:
    names = sorted({key_of(row.values[GROUP]) for row in rows if row.values.get(GROUP)})
    known: list[ProductGroup] = []
    for start in range(0, len(names), _MAX_NAMES_AT_ONCE):
        some = ProductGroup.name_key.in_(names[start : start + _MAX_NAMES_AT_ONCE])
        statement = select(ProductGroup).where(ProductGroup.supplier_id == supplier_id, some).order_by(ProductGroup.id)
        statement = statement.execution_options(populate_existing=True)
        known += session.scalars(statement.with_for_update() if locked else statement)
    groups = {group.id: PlannedGroup(group.name, list(group.axes), group.id) for group in known}
    of_shop = select(Product.id, Product.group_id, Product.variant_key).where(
        Product.supplier_id == supplier_id, Product.group_id.is_not(None)
    )
    for product in session.execute(of_shop) if groups else ():
        if product.group_id in groups:
            groups[product.group_id].key_of_product[product.id] = str(product.variant_key)
    return {group.name_key: groups[group.id] for group in known}
