"""The states of an order and the moves between them: one table, and nothing else decides what may follow what."""

from dataclasses import dataclass
from typing import Literal

OrderState = Literal[
    "draft",
    "placed",
    "accepted",
    "paid",
    "handed_over",
    "shipped",
    "received",
    "refused",
    "cancelled",
    "expired",
    "returned",
]
Mover = Literal["buyer", "shop", "payment", "clock"]  # `payment`: a provider's callback says that money came
Stock = Literal["stays", "released", "sold", "back"]


@dataclass(frozen=True)
class Move:
    source: OrderState
    target: OrderState
    movers: frozenset[Mover]
    stock: Stock = "stays"  # what becomes of the order's units, in the transaction of the move
    needs_reason: bool = False
    only: Literal["cash", "prepaid"] | None = None  # the kind of payment that has this move


def _moves(
    sources: tuple[OrderState, ...],
    target: OrderState,
    *movers: Mover,
    stock: Stock = "stays",
    needs_reason: bool = False,
    only: Literal["cash", "prepaid"] | None = None,
) -> tuple[Move, ...]:
    return tuple(Move(source, target, frozenset(movers), stock, needs_reason, only) for source in sources)


MOVES: tuple[Move, ...] = (
    *_moves(("draft",), "placed", "buyer"),
    *_moves(("draft",), "cancelled", "buyer", stock="released"),
    *_moves(("draft", "placed", "accepted"), "expired", "clock", stock="released"),
    *_moves(("placed",), "accepted", "shop"),  # units that the shop leaves out are released
    *_moves(("placed",), "refused", "shop", stock="released", needs_reason=True),
    *_moves(("placed", "accepted"), "cancelled", "buyer", stock="released"),
    *_moves(("accepted", "paid"), "cancelled", "shop", stock="released", needs_reason=True),
    *_moves(("accepted",), "paid", "shop", "payment", only="prepaid"),
    *_moves(("paid",), "handed_over", "shop", stock="sold", only="prepaid"),
    *_moves(("paid",), "shipped", "shop", stock="sold", only="prepaid"),
    *_moves(("accepted",), "handed_over", "shop", stock="sold", only="cash"),  # the money changes hands, too
    *_moves(("handed_over", "shipped"), "received", "buyer", "clock"),
    *_moves(("handed_over", "shipped", "received"), "returned", "shop", stock="back", needs_reason=True),
)
ENDS: frozenset[OrderState] = frozenset({"refused", "cancelled", "expired", "returned"})
HOLDS_UNITS: frozenset[OrderState] = frozenset({"draft", "placed", "accepted", "paid"})
