"""What becomes of the units of an order. Products are locked in the order of their ids, and before the search."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.kit.branch_shares import OWN_ADDRESS, UnitsAt, lock_branch_shared
from tis.marketplace.reviews.service import count_verified, verify_review
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.stock.counters import is_first_back, put_back_units, release_units, sell_units
from tis.marketplace.tables import Order, OrderLine, Product, Review, StockMovement


def release_lines(
    session: Session, search: ProductSearch, order: Order, lines: Iterable[OrderLine], units: Mapping[int, int]
) -> None:
    """`units` by position of a line."""
    released: Counter[UnitsAt] = Counter()
    for line in lines:
        released[UnitsAt(line.product_id, order.branch_id)] += units.get(line.position, 0)
    release_units(session, search, +released)


def sell_lines(session: Session, order: Order, lines: Sequence[OrderLine], actor: str | None) -> None:
    for line in sorted(lines, key=lambda line: line.product_id):
        if line.quantity:
            units = UnitsAt(line.product_id, order.branch_id)
            left = sell_units(session, units, line.quantity)
            _move(session, order, units, line, -line.quantity, "sold", left, actor)


def mark_purchases(session: Session, order: Order, lines: Iterable[OrderLine]) -> list[Review]:
    """What the buyer wrote about the goods is that of a buyer. The caller has locked the buyer, and no product."""
    products = sorted({line.product_id for line in lines if line.quantity})
    return [review for product_id in products if (review := verify_review(session, order.buyer, product_id))]


def count_purchases(session: Session, search: ProductSearch, reviews: Sequence[Review]) -> None:
    if reviews:
        locked = select(Product.id).where(Product.id.in_([review.product_id for review in reviews]))
        session.execute(locked.order_by(Product.id).with_for_update(key_share=True)).all()
        count_verified(session, search, reviews)


def put_back_lines(
    session: Session,
    search: ProductSearch,
    order: Order,
    lines: Sequence[OrderLine],
    units: Mapping[int, int],
    actor: str | None,
) -> None:
    """At the place that gave them, or at the shop's own address if that is closed since."""
    branch_id = _open_place(session, order)
    is_back = set()
    for line in sorted(lines, key=lambda line: line.product_id):
        if quantity := units.get(line.position, 0):
            at = UnitsAt(line.product_id, branch_id)
            left = put_back_units(session, at, quantity)
            _move(session, order, at, line, quantity, "returned", left, actor)
            is_back |= {line.product_id} if is_first_back(session, at, quantity) else set()
    search.refresh(session, sorted(is_back))


def _open_place(session: Session, order: Order) -> int:
    """Locks a branch before the products."""
    if order.branch_id == OWN_ADDRESS:
        return OWN_ADDRESS
    branch = lock_branch_shared(session, order.branch_id, order.supplier_id)
    return branch.id if branch.is_active else OWN_ADDRESS


def _move(
    session: Session, order: Order, at: UnitsAt, line: OrderLine, delta: int, kind: str, on_hand: int, actor: str | None
) -> None:
    session.add(
        StockMovement(
            product_id=line.product_id,
            supplier_id=order.supplier_id,
            delta=delta,
            kind=kind,
            on_hand=on_hand,
            reservation_id=line.reservation_id,
            branch_id=at.branch_id,
            actor=actor,
        )
    )
