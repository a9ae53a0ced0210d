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
Only = Literal["cash", "prepaid", "late"]


@dataclass(frozen=True)
class Move:
    source: OrderState
    target: OrderState
    movers: frozenset[Mover]
    stock: Stock = "stays"  # what becomes of the order's units, in the transaction of the move
    needs_reason: bool = False
    only: Only | None = None  # a kind of payment, or that the time of the state is over


def _moves(
    sources: tuple[OrderState, ...],
    target: OrderState,
    *movers: Mover,
    stock: Stock = "stays",
    needs_reason: bool = False,
    only: Only | None = None,
) -> tuple[Move, ...]:
    return tuple(Move(source, target, frozenset(movers), stock, needs_reason, only) for source in sources)


MOVES: tuple[Move, ...] = (
    *_moves(("draft",), "placed", "buyer"),
    *_moves(("draft",), "cancelled", "buyer", stock="released"),
    *_moves(("draft", "placed", "accepted"), "expired", "clock", stock="released"),
    *_moves(("placed",), "accepted", "shop"),  # units that the shop leaves out are released
    *_moves(("placed",), "refused", "shop", stock="released", needs_reason=True),
    *_moves(("placed", "accepted"), "cancelled", "buyer", stock="released"),
    *_moves(("paid",), "cancelled", "buyer", stock="released", only="late"),  # the clock moves no money, the buyer may
    *_moves(("accepted", "paid"), "cancelled", "shop", stock="released", needs_reason=True),
    *_moves(("accepted",), "paid", "shop", "payment", only="prepaid"),
    *_moves(("paid",), "handed_over", "shop", stock="sold", only="prepaid"),
    *_moves(("paid",), "shipped", "shop", stock="sold", only="prepaid"),
    *_moves(("accepted",), "handed_over", "shop", stock="sold", only="cash"),  # the money changes hands, too
    *_moves(("handed_over", "shipped"), "received", "buyer", "clock"),
    *_moves(("handed_over", "shipped", "received"), "returned", "shop", stock="back", needs_reason=True),
)
# Nothing leads on from these. `received` is no end: what was received may be returned.
ENDS: frozenset[OrderState] = frozenset({"refused", "cancelled", "expired", "returned"})
HOLDS_UNITS: frozenset[OrderState] = frozenset({"draft", "placed", "accepted", "paid"})
NOT_WHILE_SUSPENDED: frozenset[OrderState] = frozenset({"accepted", "paid", "handed_over", "shipped"})
# Where the clock moves an order whose `due_at` has come.
CLOCK_TARGET: dict[OrderState, OrderState] = {move.source: move.target for move in MOVES if "clock" in move.movers}

# The route that moves an order there, below `/orders/{order_id}/`. The clock alone lets one expire.
DEEDS: dict[OrderState, str] = {
    "placed": "place",
    "accepted": "accept",
    "refused": "refuse",
    "cancelled": "cancel",
    "paid": "paid",
    "handed_over": "hand-over",
    "shipped": "ship",
    "received": "receive",
    "returned": "return",
}


def find_move(
    source: str, target: OrderState, mover: Mover, payment_method: str, *, is_late: bool = False
) -> Move | None:
    """None: this mover may not, or not now."""
    has = {None, "cash" if payment_method == "cash" else "prepaid", "late" if is_late else None}
    for move in MOVES:
        if (move.source, move.target) == (source, target) and mover in move.movers and move.only in has:
            return move
    return None
