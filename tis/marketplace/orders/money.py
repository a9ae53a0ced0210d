"""The money of an order: integer rupiah that always equal its lines."""

from collections.abc import Iterable

from tis.errors import Unprocessable
from tis.marketplace.tables import MAX_RUPIAH, Order, OrderLine

_WHOLE = 10_000  # hundredths of a percent


def included_tax(total: int, rate: int) -> int:
    """What of a price is tax, rounded half up; `rate` in hundredths of a percent."""
    return (2 * total * rate + _WHOLE + rate) // (2 * (_WHOLE + rate))


def add_up(order: Order, lines: Iterable[OrderLine]) -> None:
    """Sets the totals of an order by its lines, its fee and its tax rate."""
    items = 0
    for line in lines:
        line.total = line.quantity * line.unit_price
        items += line.total
    if items + order.delivery_fee > MAX_RUPIAH:
        raise Unprocessable(f"An order costs at most {MAX_RUPIAH} rupiah: order less.")
    order.items_total, order.total = items, items + order.delivery_fee
    order.tax_included = included_tax(order.total, order.tax_rate)
