"""The units of a product by place, of which the buyer names one, or the nearest or the fullest is chosen.

A share of a branch is a row of `branch_stock`; that of the shop's own address is what is left of the counters of the
product. They change under the lock of the product, so they always add up to these.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound
from tis.marketplace.kit.geo import Point, kilometres_between
from tis.marketplace.tables import Branch, BranchStock, Product, Supplier

OWN_ADDRESS = 0  # the number of the shop's own address, where no branch has the units


class UnitsAt(NamedTuple):
    """Of which product, and where."""

    product_id: int
    branch_id: int = OWN_ADDRESS


class Share(NamedTuple):
    branch_id: int
    on_hand: int
    reserved: int
    place: Point  # that the shop shows
    is_open: bool = True

    @property
    def available(self) -> int:
        return self.on_hand - self.reserved


@dataclass(frozen=True)
class PlaceWish:
    """Where a buyer wants units from. Without a name: the nearest place that has all, or the one with most."""

    branch_id: int | None = None
    near: Point | None = None

    def first_of(self, shares: Sequence[Share], quantity: int) -> Share | None:
        """Of the places that have so many units."""
        fitting = [share for share in self.allowed(shares) if share.available >= quantity]
        return min(fitting, key=self._rank, default=None)

    def allowed(self, shares: Sequence[Share]) -> list[Share]:
        return [share for share in shares if self.branch_id in (None, share.branch_id)]

    def max_at_one(self, shares: Sequence[Share]) -> int:
        return max((share.available for share in self.allowed(shares)), default=0)

    def _rank(self, share: Share) -> tuple[float, int]:
        if self.near is None:
            return -share.available, share.branch_id
        return kilometres_between(self.near, share.place), share.branch_id


ANYWHERE = PlaceWish()


def is_any_spread(session: Session, product_ids: Collection[int]) -> bool:
    """Over several places. Most goods are not, and pay no more than this look at an index."""
    rows = select(BranchStock.product_id).where(BranchStock.product_id.in_(product_ids))
    return session.scalar(rows.limit(1)) is not None


def shares_of(session: Session, product_ids: Collection[int]) -> dict[int, list[Share]]:
    """By product, the own address first. One statement, so that the shares of a product fit together."""
    rows = (
        select(
            Product.id,
            Product.on_hand,
            Product.reserved,
            Supplier.public_latitude,
            Supplier.public_longitude,
            BranchStock.branch_id,
            BranchStock.on_hand,
            BranchStock.reserved,
            Branch.public_latitude,
            Branch.public_longitude,
            Branch.is_active,
        )
        .join(Supplier, Supplier.id == Product.supplier_id)
        .outerjoin(BranchStock, BranchStock.product_id == Product.id)
        .outerjoin(Branch, Branch.id == BranchStock.branch_id)
        .where(Product.id.in_(product_ids))
    )
    found: dict[int, list[Share]] = {}
    for product_id, on_hand, reserved, latitude, longitude, branch_id, *of_branch in session.execute(rows):
        own = Share(OWN_ADDRESS, on_hand, reserved, Point(latitude, longitude))
        shares = found.setdefault(product_id, [own])
        if branch_id is not None:
            there, held, its_latitude, its_longitude, is_open = of_branch
            share = Share(branch_id, there, held, Point(its_latitude, its_longitude), is_open)
            own = shares[0]
            shares[0] = own._replace(on_hand=own.on_hand - there, reserved=own.reserved - held)
            shares.append(share)
    return {product_id: sorted(shares, key=lambda share: share.branch_id) for product_id, shares in found.items()}


def units_at_branches(session: Session, supplier_id: int) -> dict[int, int]:
    """What is available of each product at the branches of a shop: so much more than what is reserved it has on hand,
    whatever lies at its own address."""
    left = func.sum(BranchStock.on_hand - BranchStock.reserved)
    rows = select(BranchStock.product_id, left).join(Branch, Branch.id == BranchStock.branch_id)
    of_shop = rows.where(Branch.supplier_id == supplier_id, BranchStock.on_hand > BranchStock.reserved)
    return {product_id: int(units) for product_id, units in session.execute(of_shop.group_by(BranchStock.product_id))}


def why_least(reserved: int, elsewhere: int) -> str:
    """The least number of units on hand, and what it is."""
    others = f" and {elsewhere} at other places" if elsewhere else ""
    return f"{reserved + elsewhere}, the {f'{reserved} ' if elsewhere else ''}reserved units{others}"


def add_to_share(session: Session, units: UnitsAt, *, on_hand: int = 0, reserved: int = 0) -> None:
    """Under the lock of the product. The share of the own address follows by itself."""
    if units.branch_id == OWN_ADDRESS or not (on_hand or reserved):
        return
    own = BranchStock.product_id == units.product_id, BranchStock.branch_id == units.branch_id
    changed = {"on_hand": BranchStock.on_hand + on_hand, "reserved": BranchStock.reserved + reserved}
    row = select(BranchStock.product_id).where(*own)
    if session.scalar(row) is None:
        session.add(BranchStock(product_id=units.product_id, branch_id=units.branch_id, on_hand=on_hand, reserved=0))
        session.flush()
        return
    unsynchronized = {"synchronize_session": False}
    session.execute(update(BranchStock).where(*own).values(changed), execution_options=unsynchronized)


def share_at(session: Session, product_id: int, branch_id: int) -> Share:
    """Without a row nothing lies there yet."""
    shares = shares_of(session, [product_id])[product_id]
    found = next((share for share in shares if share.branch_id == branch_id), None)
    return found or Share(branch_id, 0, 0, shares[0].place)


def lock_branch_shared(session: Session, branch_id: int, supplier_id: int) -> Branch:
    """Before products are locked: until the transaction ends nobody closes it. An open one or not."""
    branch = session.scalar(
        select(Branch)
        .where(Branch.id == branch_id, Branch.supplier_id == supplier_id)
        .with_for_update(read=True)
        .execution_options(populate_existing=True)
    )
    if branch is None:
        raise NotFound("Branch not found")
    return branch


def lock_open_branch(session: Session, branch_id: int, supplier_id: int) -> Branch:
    branch = lock_branch_shared(session, branch_id, supplier_id)
    if not branch.is_active:
        raise Conflict(f"{branch.name} is closed.", code="branch_closed", details={"name": branch.name})
    return branch
