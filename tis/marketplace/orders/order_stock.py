"""What becomes of the units of an order. Products are locked in the order of their ids, and before the search."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.reviews.service import count_verified, verify_review
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.stock.counters import available_of, put_back_units, release_units, sell_units
from tis.marketplace.tables import Order, OrderLine, Product, Review, StockMovement


def release_lines(
    session: Session, search: ProductSearch, lines: Iterable[OrderLine], units: Mapping[int, int]
) -> None:
    """`units` by position of a line."""
    by_product: Counter[int] = Counter()
    for line in lines:
        by_product[line.product_id] += units.get(line.position, 0)
    release_units(session, search, +by_product)


def sell_lines(session: Session, order: Order, lines: Sequence[OrderLine], actor: str | None) -> None:
    for line in sorted(lines, key=lambda line: line.product_id):
        if line.quantity:
            left = sell_units(session, line.product_id, line.quantity)
            _move(session, order, line, -line.quantity, "sold", left, actor)


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
    is_back = set()
    for line in sorted(lines, key=lambda line: line.product_id):
        if quantity := units.get(line.position, 0):
            left = put_back_units(session, line.product_id, quantity)
            _move(session, order, line, quantity, "returned", left, actor)
            is_back |= {line.product_id} if available_of(session, line.product_id) == quantity else set()
    search.refresh(session, sorted(is_back))


def _move(
    session: Session, order: Order, line: OrderLine, delta: int, kind: str, on_hand: int, actor: str | None
) -> None:
    session.add(
        StockMovement(
            product_id=line.product_id,
            supplier_id=order.supplier_id,
            delta=delta,
            kind=kind,
            on_hand=on_hand,
            reservation_id=line.reservation_id,
            actor=actor,
        )
    )
