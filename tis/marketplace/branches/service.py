"""Adding, changing and closing places of a shop, and moving units between them.

Locks: the supplier, then its branch, then the search; for units the branches, in the order of their ids, then the
product. So nobody closes a branch to which units are on their way.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound
from tis.marketplace.branches.schemas import BranchForm, PlaceStock, StockByPlace, TransferForm
from tis.marketplace.kit import audit
from tis.marketplace.kit.branch_places import places_of
from tis.marketplace.kit.branch_shares import (
    OWN_ADDRESS,
    UnitsAt,
    add_to_share,
    lock_branch_shared,
    lock_open_branch,
    share_at,
    shares_of,
)
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.versions import IfMatch
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.policy import require_supplier, sees_hidden_goods
from tis.marketplace.products.service import find_product, lock_product
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.suppliers.service import lock_supplier_for_update, public_supplier
from tis.marketplace.tables import Branch, BranchStock, Product, StockMovement

_PLACE = {"latitude", "longitude", "shows_place", "is_active"}  # what the search knows of it
_PRIVATE = {"address", "latitude", "longitude"}


def list_branches(session: Session, principal: Principal, supplier_id: int) -> Sequence[Branch]:
    """Oldest first. Closed ones for members."""
    public_supplier(session, principal, supplier_id)
    rows = select(Branch).where(Branch.supplier_id == supplier_id).order_by(Branch.id)
    found = session.scalars(rows).all()
    sees_closed = principal.is_open or sees_hidden_goods(principal, supplier_id)
    return [branch for branch in found if branch.is_active or sees_closed]


def add_branch(
    session: Session,
    principal: Principal,
    search: ProductSearch,
    supplier_id: int,
    form: BranchForm,
    max_branches: int,
) -> Branch:
    lock_supplier_for_update(session, principal, supplier_id)
    number = session.scalar(select(func.count()).where(Branch.supplier_id == supplier_id)) or 0
    if number >= max_branches:
        raise Conflict(f"A supplier has at most {max_branches} places: change a closed one.", code="too_many_branches")
    branch = Branch(supplier_id=supplier_id, **form.model_dump())
    branch.place_code = gazetteer().code_of(branch.city, branch.province)
    session.add(branch)
    session.flush()
    audit.note(session, principal, "branch.create", "branch", branch.id, supplier_id=supplier_id)
    search.refresh_supplier(session, supplier_id)
    return branch


def change_branch(
    session: Session,
    principal: Principal,
    search: ProductSearch,
    supplier_id: int,
    branch_id: int,
    changes: dict[str, Any],
    if_match: IfMatch,
) -> Branch:
    lock_supplier_for_update(session, principal, supplier_id)
    branch = session.get(Branch, branch_id, with_for_update=True, populate_existing=True)
    if branch is None or branch.supplier_id != supplier_id:
        raise NotFound("Branch not found")
    if_match.check(branch.version)
    changes = {name: new for name, new in changes.items() if getattr(branch, name) != new}
    if not changes:
        return branch
    if changes.get("is_active") is False:
        _require_empty(session, branch)
    logged = {name: True if name in _PRIVATE else [getattr(branch, name), new] for name, new in changes.items()}
    for name, value in changes.items():
        setattr(branch, name, value)
    branch.place_code = gazetteer().code_of(branch.city, branch.province)
    branch.version += 1
    session.flush()
    audit.note(session, principal, "branch.change", "branch", branch_id, **logged)
    if _PLACE & changes.keys():
        search.refresh_supplier(session, supplier_id, with_branches=True)
    return branch


def _require_empty(session: Session, branch: Branch) -> None:
    """After it is locked: whoever brings units there has locked it, too, or waits."""
    sums = func.count(), func.sum(BranchStock.on_hand), func.sum(BranchStock.reserved)
    of_branch = select(*sums).where(BranchStock.branch_id == branch.id, BranchStock.on_hand > 0)
    products, on_hand, reserved = session.execute(of_branch).one()
    if products:
        raise Conflict(
            f"{on_hand} units of {products} products lie here, {reserved} of them reserved: move or sell them first.",
            code="branch_has_stock",
            details={"units": int(on_hand), "products": products, "reserved": int(reserved)},
        )


def stock_by_place(session: Session, principal: Principal, product_id: int) -> StockByPlace:
    product = find_product(session, principal, product_id)
    require_supplier(principal, product.supplier_id)
    return _stock_view(session, product)


def transfer_units(
    session: Session, principal: Principal, search: ProductSearch, product_id: int, form: TransferForm
) -> StockByPlace:
    """Both rows of the ledger, or none. Units that are reserved stay where they are. Also of deleted goods, or their
    place could not be closed."""
    supplier_id = find_product(session, principal, product_id).supplier_id
    require_supplier(principal, supplier_id)
    for branch_id in sorted({form.from_branch_id, form.to_branch_id} - {OWN_ADDRESS}):
        if branch_id == form.to_branch_id:
            lock_open_branch(session, branch_id, supplier_id)
        else:
            lock_branch_shared(session, branch_id, supplier_id)
    product = lock_product(session, principal, product_id)
    share = share_at(session, product_id, form.from_branch_id)
    if share.available < form.quantity:
        raise Conflict(
            f"Only {share.available} of {share.on_hand} units at this place are not reserved: this would take "
            f"{form.quantity}.",
            code="units_reserved",
            details={"free": share.available, "on_hand": share.on_hand, "asked": form.quantity},
        )
    for branch_id, delta in ((form.from_branch_id, -form.quantity), (form.to_branch_id, form.quantity)):
        add_to_share(session, UnitsAt(product_id, branch_id), on_hand=delta)
        session.add(
            StockMovement(
                product_id=product_id,
                supplier_id=product.supplier_id,
                delta=delta,
                kind="transfer",
                on_hand=product.on_hand,
                reason=form.reason,
                branch_id=branch_id,
                actor=principal.account,
            )
        )
        session.flush()  # in this order: lists are in the order of the ids
    search.refresh(session, [product_id])
    return _stock_view(session, product)


def _stock_view(session: Session, product: Product) -> StockByPlace:
    shares = shares_of(session, [product.id])[product.id]
    places = places_of(session, product.supplier_id, [share.branch_id for share in shares])
    own = [
        PlaceStock(
            branch_id=share.branch_id,
            name=places[share.branch_id].name,
            on_hand=share.on_hand,
            reserved=share.reserved,
            available_quantity=share.available,
        )
        for share in shares
    ]
    on_hand, reserved = sum(one.on_hand for one in own), sum(one.reserved for one in own)
    return StockByPlace(
        product_id=product.id,
        on_hand=on_hand,
        reserved=reserved,
        available_quantity=on_hand - reserved,
        places=own,
    )
