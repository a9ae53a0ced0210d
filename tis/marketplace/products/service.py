"""Products of a supplier: find, create, change, delete, restore.

A change locks the row of the product first (on SQLite the transaction is the lock), so that what was checked still
holds when it is written.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ScalarSelect, select
from sqlalchemy.orm import Session, joinedload, selectinload

from tis.errors import BadRequest, Conflict, NotFound
from tis.marketplace.columns import now
from tis.marketplace.kit.branch_shares import (
    OWN_ADDRESS,
    UnitsAt,
    add_to_share,
    lock_open_branch,
    share_at,
    units_at_branches,
)
from tis.marketplace.kit.fields import MAX_STOCK
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.promotion_clock import apply_due, end_promotions
from tis.marketplace.kit.versions import IfMatch
from tis.marketplace.policy import may_grant, require_supplier, sees_hidden_goods
from tis.marketplace.products.product_write import ProductWrite
from tis.marketplace.products.writing import (
    COLUMN_OF_FIELD,
    is_same_value,
    undercut_by,
    value_of,
    write_products,
)
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.tables import Product, ProductFacts, Supplier

_SKU_TAKEN = "SKU already registered"
_ANY_VERSION = IfMatch()
WITH_SUPPLIER = joinedload(Product.supplier, innerjoin=True)


def find_product(session: Session, principal: Principal, product_id: int) -> Product:
    """With its supplier. Deleted products and those of closed suppliers exist only for those who may restore them."""
    product = session.scalar(select(Product).where(Product.id == product_id).options(WITH_SUPPLIER))
    if product is None or (_is_hidden(product) and not sees_hidden_goods(principal, product.supplier_id)):
        raise NotFound("Product not found")
    return product


def require_room_for_products(session: Session, supplier_id: int, number: int, max_products: int | None) -> None:
    """Requests at the same moment may each find the last room. None: no limit."""
    if max_products is None or not number:
        return
    of_supplier = select(ProductFacts.product_id).where(ProductFacts.supplier_id == supplier_id)
    if number > max_products or session.scalar(of_supplier.offset(max_products - number).limit(1)) is not None:
        raise Conflict(f"A supplier has at most {max_products} products: delete some first.", code="too_many_products")


def create_product(
    session: Session,
    search: ProductSearch,
    principal: Principal,
    supplier_id: int,
    values: Mapping[str, Any],
    max_products: int | None = None,
) -> Product:
    """`values` are the fields of a `ProductForm`."""
    supplier = lock_supplier_shared(session, supplier_id)
    if supplier is None or supplier.deleted_at is not None:
        raise NotFound("Supplier not found")
    require_supplier(principal, supplier_id)
    require_room_for_products(session, supplier_id, 1, max_products)
    product = Product(supplier=supplier)
    _write(session, search, principal, ProductWrite("create", product, _columns_of(values, principal)))
    return product


def change_product(
    session: Session,
    search: ProductSearch,
    principal: Principal,
    product_id: int,
    values: Mapping[str, Any],
    if_match: IfMatch = _ANY_VERSION,
) -> Product:
    """Changes only the fields in `values`. `stock_quantity` is the stock on hand, reserved units included."""
    product = lock_product(session, principal, product_id)
    if product.deleted_at is not None:
        raise NotFound("Product not found")
    if_match.check(product.version)
    columns = _columns_of(values, principal)
    due = _read_again(session, product, apply_due(session, [product.id])) if "price" in columns else []
    changed = {name: value for name, value in columns.items() if not is_same_value(value, value_of(product, name))}
    if not changed:
        search.refresh(session, due)
        return product
    if why_not := undercut_by(product, changed):
        raise Conflict(f"price {why_not}.", code="promotion_not_lower")
    if "on_hand" in changed:
        _require_stock(session, product, changed["on_hand"])
    _write(session, search, principal, ProductWrite("change", product, changed), due)
    return product


def _require_stock(session: Session, product: Product, on_hand: int) -> None:
    """After the product is locked. A new total changes what lies at the shop's own address."""
    if on_hand < product.reserved:
        raise Conflict(f"{product.reserved} units are reserved: stock_quantity cannot be {on_hand}.")
    elsewhere = units_at_branches(session, product.supplier_id).get(product.id, 0)
    if on_hand < product.reserved + elsewhere:
        raise Conflict(
            f"{product.reserved} units are reserved, and {elsewhere} lie at other places: stock_quantity cannot be "
            f"{on_hand}. Correct the stock there, or move it.",
            code="stock_at_branches",
        )


def correct_stock(
    session: Session,
    search: ProductSearch,
    principal: Principal,
    product_id: int,
    delta: int,
    reason: str,
    branch_id: int = OWN_ADDRESS,
) -> Product:
    """Adds `delta` to the stock on hand: unlike a change, two corrections at once both count."""
    if branch_id != OWN_ADDRESS:
        found = find_product(session, principal, product_id)
        require_supplier(principal, found.supplier_id)
        lock_open_branch(session, branch_id, found.supplier_id)
    product = lock_product(session, principal, product_id)
    if product.deleted_at is not None:
        raise NotFound("Product not found")
    share = share_at(session, product_id, branch_id)
    if share.available + delta < 0:
        here = " at this place" if branch_id or share.on_hand != product.on_hand else ""
        raise Conflict(
            f"Only {share.available} of {share.on_hand} units{here} are not reserved: this would take {-delta}.",
            code="units_reserved",
            details={"free": share.available, "on_hand": share.on_hand, "asked": -delta},
        )
    on_hand = product.on_hand + delta
    if on_hand > MAX_STOCK:
        raise Conflict(f"A product has at most {MAX_STOCK} units on hand.")
    add_to_share(session, UnitsAt(product_id, branch_id), on_hand=delta)
    _write(session, search, principal, ProductWrite("change", product, {"on_hand": on_hand}, reason, branch_id))
    return product


def delete_product(
    session: Session, search: ProductSearch, principal: Principal, product_id: int, if_match: IfMatch = _ANY_VERSION
) -> Product:
    """Keeps the row, because sales, prices and reviews refer to it. Its promotions end. Idempotent."""
    product = lock_product(session, principal, product_id)
    if_match.check(product.version)
    if product.deleted_at is None:
        _read_again(session, product, end_promotions(session, product.id, "deleted"))
        _write(session, search, principal, ProductWrite("delete", product, {"deleted_at": now()}))
    return product


def restore_product(
    session: Session,
    search: ProductSearch,
    principal: Principal,
    product_id: int,
    if_match: IfMatch = _ANY_VERSION,
    max_products: int | None = None,
) -> Product:
    lock_supplier_shared(session, select(Product.supplier_id).where(Product.id == product_id).scalar_subquery())
    product = lock_product(session, principal, product_id)
    if_match.check(product.version)
    if product.deleted_at is not None:
        require_room_for_products(session, product.supplier_id, 1, max_products)
        write = ProductWrite("restore", product, {"deleted_at": None})
        taken = Conflict(f"{_SKU_TAKEN}: another product took it meanwhile.")
        write_products(session, search, principal, [write], sku_taken=taken)
    return product


def list_deleted_products(
    session: Session, principal: Principal, supplier_id: int, before: int | None, limit: int
) -> Sequence[Product]:
    """The newest products first, whenever they were deleted."""
    supplier_for_member(session, principal, supplier_id)
    products = select(Product).where(Product.supplier_id == supplier_id, Product.deleted_at.is_not(None))
    if before is not None:
        products = products.where(Product.id < before)
    return session.scalars(products.order_by(Product.id.desc()).limit(limit).options(WITH_SUPPLIER)).all()


def supplier_for_member(session: Session, principal: Principal, supplier_id: int) -> Supplier:
    require_supplier(principal, supplier_id)
    supplier = session.scalar(select(Supplier).where(Supplier.id == supplier_id, Supplier.deleted_at.is_(None)))
    if supplier is None:
        raise NotFound("Supplier not found")
    return supplier


def lock_supplier_shared(session: Session, supplier_id: int | ScalarSelect[int]) -> Supplier | None:
    """Call it before products are added or restored: a change of the supplier waits, then indexes the new products too.

    Lock the supplier first, then its products. A change of existing products needs no lock of the supplier, because a
    change of the supplier locks these products to index them again.
    """
    rows = select(Supplier).where(Supplier.id == supplier_id).with_for_update(read=True)
    return session.scalar(rows.execution_options(populate_existing=True))


def lock_product(session: Session, principal: Principal, product_id: int) -> Product:
    """`FOR NO KEY UPDATE`: rows that refer to the product (reviews, reservations) can still be inserted.

    The supplier is read in a second statement: MariaDB would lock it, too.
    """
    rows = select(Product).where(Product.id == product_id).options(selectinload(Product.supplier))
    rows = rows.with_for_update(key_share=True).execution_options(populate_existing=True)
    product = session.scalar(rows)
    sees_hidden = product is not None and (principal.is_open or sees_hidden_goods(principal, product.supplier_id))
    if product is None or (_is_hidden(product) and not sees_hidden):
        raise NotFound("Product not found")
    require_supplier(principal, product.supplier_id)
    return product


def _write(
    session: Session,
    search: ProductSearch,
    principal: Principal,
    write: ProductWrite,
    also_changed: Sequence[int] = (),
) -> None:
    taken = BadRequest(_SKU_TAKEN)
    write_products(session, search, principal, [write], sku_taken=taken, also_changed=also_changed)


def _read_again(session: Session, product: Product, changed: list[int]) -> list[int]:
    """What `apply_due` has written."""
    if changed:
        session.refresh(product, ["price", "normal_price", "version", "updated_at"])
    return changed


def _is_hidden(product: Product) -> bool:
    return product.deleted_at is not None or not product.supplier.is_active


def _columns_of(values: Mapping[str, Any], principal: Principal) -> dict[str, Any]:
    columns = {COLUMN_OF_FIELD.get(name, name): value for name, value in values.items()}
    if not may_grant(principal):
        columns.pop("granted_rating", None)
    if "attributes" in columns:
        columns["attributes"] = columns["attributes"] or {}
    return columns
