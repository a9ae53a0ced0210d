"""Makes, changes and dissolves groups of variants.

Products are locked first, in the order of their ids, then their groups: whoever has locked a variant knows its group.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, selectinload

from tis.errors import Conflict, NotFound
from tis.marketplace.columns import now
from tis.marketplace.kit import audit
from tis.marketplace.kit.fields import key_of
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.versions import IfMatch
from tis.marketplace.policy import require_supplier, sees_hidden_goods
from tis.marketplace.products.product_write import ProductWrite
from tis.marketplace.products.service import supplier_for_member
from tis.marketplace.products.variant_keys import variant_key
from tis.marketplace.products.writing import is_same_value, write_products
from tis.marketplace.reading.attribute_values import attribute_key
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.tables import Product, ProductGroup, Supplier
from tis.marketplace.variants.schemas import MAX_VARIANTS, GroupChange, NewGroup, NewVariant

_CHANGED_MEANWHILE = "The group was changed meanwhile. Read it again."
_FULL = f"A group has at most {MAX_VARIANTS} variants."
_NAME_TAKEN = "The shop has another group of this name."
_SKU_TAKEN = Conflict("SKU already registered")  # nobody changes one here


def find_group(session: Session, principal: Principal, group_id: int) -> ProductGroup:
    """Of a closed or suspended shop, only for its members."""
    rows = select(ProductGroup, Supplier).join(Supplier, Supplier.id == ProductGroup.supplier_id)
    row = session.execute(rows.where(ProductGroup.id == group_id)).one_or_none()
    if row is None or not (row[1].is_active or sees_hidden_goods(principal, row[1].id)):
        raise NotFound("Group not found")
    return row[0]


def list_groups(
    session: Session, principal: Principal, supplier_id: int, before: int | None, limit: int
) -> Sequence[ProductGroup]:
    """Newest first."""
    supplier_for_member(session, principal, supplier_id)
    groups = select(ProductGroup).where(ProductGroup.supplier_id == supplier_id)
    if before is not None:
        groups = groups.where(ProductGroup.id < before)
    return session.scalars(groups.order_by(ProductGroup.id.desc()).limit(limit)).all()


def create_group(
    session: Session, search: ProductSearch, principal: Principal, supplier_id: int, form: NewGroup
) -> ProductGroup:
    supplier_for_member(session, principal, supplier_id)
    products = _lock_products(session, supplier_id, [one.product_id for one in form.variants])
    group = ProductGroup(supplier_id=supplier_id, name=form.name, name_key=key_of(form.name), axes=form.axes)
    session.add(group)
    _flush(session)
    audit.note(session, principal, "create", "product_group", group.id, name=[None, form.name], axes=[None, form.axes])
    _join(session, search, principal, group, form.variants, products)
    return group


def add_variant(
    session: Session, search: ProductSearch, principal: Principal, group_id: int, variant: NewVariant
) -> ProductGroup:
    supplier_id = _supplier_of(session, principal, group_id)
    products = _lock_products(session, supplier_id, [variant.product_id])
    group = _lock_group(session, group_id)
    _touch(group)
    session.flush()
    _join(session, search, principal, group, [variant], products)
    return group


def remove_variant(
    session: Session, search: ProductSearch, principal: Principal, group_id: int, product_id: int
) -> None:
    """It stays on sale, as a product alone."""
    _supplier_of(session, principal, group_id)
    products = _locked(session, [product_id])
    if not products or products[0].group_id != group_id:
        raise NotFound("This product is no variant of the group.")
    group = _lock_group(session, group_id)
    _touch(group)
    session.flush()
    _leave(session, search, principal, products)


def change_group(
    session: Session,
    search: ProductSearch,
    principal: Principal,
    group_id: int,
    change: GroupChange,
    if_match: IfMatch,
) -> ProductGroup:
    _supplier_of(session, principal, group_id)
    products, group = _lock_all(session, group_id)
    if_match.check(group.version)
    before = {"name": group.name, "axes": list(group.axes)}
    if "name" in change.model_fields_set:
        group.name, group.name_key = change.name, key_of(change.name)
    renamed: dict[str, str] = {}
    if "axes" in change.model_fields_set:
        renamed = {axis.was: axis.name for axis in change.axes if axis.was is not None}
        if unknown := [name for name in renamed if name not in group.axes]:
            raise Conflict(f"`{unknown[0]}` is no axis of the group.", code="unknown_axis")
        group.axes = [axis.name for axis in change.axes]
    changed = {name: [old, getattr(group, name)] for name, old in before.items() if getattr(group, name) != old}
    if changed:
        _touch(group)
        _flush(session)  # before the search, as everybody locks
        audit.note(session, principal, "change", "product_group", group.id, **changed)
    if "axes" in changed:
        _change_axes(session, search, principal, group, renamed, products)
    return group


def dissolve(session: Session, search: ProductSearch, principal: Principal, group_id: int) -> None:
    """Its variants stay on sale, each as a product alone."""
    _supplier_of(session, principal, group_id)
    products, group = _lock_all(session, group_id)
    audit.note(session, principal, "delete", "product_group", group.id, name=[group.name, None])
    session.flush()
    session.expunge(group)  # who has no variants is deleted
    _leave(session, search, principal, products)


def _supplier_of(session: Session, principal: Principal, group_id: int) -> int:
    supplier_id = find_group(session, principal, group_id).supplier_id
    require_supplier(principal, supplier_id)
    return supplier_id


def _lock_products(session: Session, supplier_id: int, ids: Sequence[int]) -> dict[int, Product]:
    products = {product.id: product for product in _locked(session, ids)}
    for one in ids:
        if one not in products or products[one].supplier_id != supplier_id:
            raise NotFound(f"Product {one} not found")
        if products[one].group_id is not None:
            raise Conflict(f"Product {one} is a variant of another group: remove it there first.", code="in_a_group")
    return products


def _locked(session: Session, ids: Iterable[int]) -> Sequence[Product]:
    """In the order of their ids, as everybody locks several products."""
    rows = select(Product).where(Product.id.in_(list(ids)), Product.deleted_at.is_(None)).order_by(Product.id)
    rows = rows.options(selectinload(Product.supplier)).with_for_update(key_share=True)
    return session.scalars(rows.execution_options(populate_existing=True)).all()


def _lock_group(session: Session, group_id: int) -> ProductGroup:
    rows = select(ProductGroup).where(ProductGroup.id == group_id).with_for_update()
    group = session.scalar(rows.execution_options(populate_existing=True))
    if group is None:
        raise NotFound("Group not found")
    return group


def _lock_all(session: Session, group_id: int) -> tuple[Sequence[Product], ProductGroup]:
    ids = session.scalars(select(Product.id).where(Product.group_id == group_id)).all()
    products = _locked(session, ids)
    group = _lock_group(session, group_id)
    now_in_it = session.scalars(select(Product.id).where(Product.group_id == group_id)).all()
    if set(now_in_it) != {product.id for product in products}:
        raise Conflict(_CHANGED_MEANWHILE)
    return products, group


def _join(
    session: Session,
    search: ProductSearch,
    principal: Principal,
    group: ProductGroup,
    variants: Sequence[NewVariant],
    products: Mapping[int, Product],
) -> None:
    num_there = session.scalar(select(func.count()).where(Product.group_id == group.id)) or 0
    if num_there + len(variants) > MAX_VARIANTS:
        raise Conflict(_FULL, code="too_many_variants")
    writes = []
    for variant in sorted(variants, key=lambda one: one.product_id):
        product = products[variant.product_id]
        if unknown := [name for name in variant.values if name not in group.axes]:
            raise Conflict(f"`{unknown[0]}` is no axis of the group.", code="unknown_axis")
        attributes = with_values(product.attributes, variant.values)
        values = {"group_id": group.id, "variant_key": variant_key(group.axes, attributes)}
        if not is_same_value(attributes, product.attributes):
            values["attributes"] = attributes
        writes.append(ProductWrite("change", product, values))
    write_products(session, search, principal, writes, sku_taken=_SKU_TAKEN)
    session.expire(group)


def _leave(session: Session, search: ProductSearch, principal: Principal, products: Iterable[Product]) -> None:
    alone = {"group_id": None, "variant_key": None}
    writes = [ProductWrite("change", product, dict(alone)) for product in products]
    write_products(session, search, principal, writes, sku_taken=_SKU_TAKEN)


def _change_axes(
    session: Session,
    search: ProductSearch,
    principal: Principal,
    group: ProductGroup,
    renamed: Mapping[str, str],
    products: Iterable[Product],
) -> None:
    writes = []
    for product in products:
        attributes = _renamed(product.attributes, renamed)
        new = {"variant_key": variant_key(group.axes, attributes), "attributes": attributes}
        values = {name: value for name, value in new.items() if not is_same_value(value, getattr(product, name))}
        if values:
            # With the group, so that nobody makes a key of the axes that it had.
            writes.append(ProductWrite("change", product, {"group_id": group.id, **values}))
    write_products(session, search, principal, writes, sku_taken=_SKU_TAKEN)


def with_values(attributes: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Of attributes whose names count as the same, the new one stays."""
    keys = {attribute_key(name) for name in values}
    return {name: value for name, value in attributes.items() if attribute_key(name) not in keys} | dict(values)


def _renamed(attributes: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    new_names = {attribute_key(old): new for old, new in names.items()}
    keys = {name: attribute_key(name) for name in attributes}
    renamed = {new_names[key]: attributes[name] for name, key in keys.items() if key in new_names}
    return with_values({name: attributes[name] for name, key in keys.items() if key not in new_names}, renamed)


def _touch(group: ProductGroup) -> None:
    group.version += 1
    group.updated_at = now()


def _flush(session: Session) -> None:
    try:
        session.flush()
    except IntegrityError as error:
        raise Conflict(_NAME_TAKEN, code="name_taken") from error
