"""What the routes of orders answer, for /docs."""

from tis.marketplace.kit.docs import KEY_USED, STALE_VERSION, responses
from tis.marketplace.orders.states import ENDS, HOLDS_UNITS, MOVES

_LINE = {
    "position": 1,
    "product_id": 1,
    "reservation_id": "0b0e4a2e-6f0c-4d53-9f63-6d0c4b7a5a11",
    "name": "Laptop Gaming Rinjani G15",
    "sku": "RJ-G15",
    "unit_price": 15999000,
    "ordered": 2,
    "quantity": 2,
    "returned": 0,
    "total": 31998000,
}
_ORDER = {
    "id": "5d0c8a52-1f7e-4c0e-9a55-0d8c1c1b2f10",
    "number": "K7F3-9QMB",
    "supplier_id": 1,
    "branch_id": 0,
    "shop_name": "Toko Rinjani",
    "state": "placed",
    "may_become": ["cancelled"],
    "lines": [_LINE],
    "delivery": "courier",
    "payment_method": "cash",
    "note": None,
    "items_total": 31998000,
    "delivery_fee": 15000,
    "total": 32013000,
    "tax_rate": 1100,
    "tax_included": 3172459,
    "tax_number": "09.254.294.3-407.000",
    "refund_due": 0,
    "return_days": 7,
    "return_asked_at": None,
    "return_reason": None,
    "return_refused_at": None,
    "return_refusal": None,
    "carrier": None,
    "tracking": None,
    "version": 2,
    "due_at": "2026-11-22T10:00:00Z",
    "overdue_at": None,
    "created_at": "2026-11-21T10:00:00Z",
    "placed_at": "2026-11-21T10:00:00Z",
    "accepted_at": None,
    "paid_at": None,
    "ended_at": None,
    "buyer": None,
}
_ADDRESS = {
    "name": "Dewi Specimen",
    "phone": "+6281234567890",
    "street": "Jl. Contoh 12",
    "city": "Jakarta Selatan",
    "postal_code": "12345",
    "latitude": -6.261,
    "longitude": 106.81,
}
_MOVES = [
    {"state": "draft", "mover": "buyer", "reason": None, "at": "2026-11-21T10:00:00Z"},
    {"state": "placed", "mover": "buyer", "reason": None, "at": "2026-11-21T10:00:00Z"},
]
_DETAIL = {**_ORDER, "handover": None, "address": _ADDRESS, "moves": _MOVES}
_FOR_SHOP = {
    **_ORDER,
    "state": "accepted",
    "may_become": ["cancelled", "handed_over"],
    "version": 3,
    "accepted_at": "2026-11-21T10:05:00Z",
    "due_at": "2026-11-22T10:05:00Z",
    "buyer": {"name": "Dewi Specimen", "email": "dewi@example.com", "phone": "+6281234567890"},
}
_RULES = {
    "takes_orders": True,
    "accept_hours": 24,
    "pay_hours": 24,
    "handover_hours": 72,
    "return_days": 7,
    "courier_bands": [{"up_to_km": 5, "fee": 10000}, {"up_to_km": 15, "fee": 15000}],
    "expedition_fee": 20000,
    "tax_rate": 1100,
    "tax_number": "09.254.294.3-407.000",
}
RULES_FORM = _RULES
_QUOTE = {
    "supplier_id": 1,
    "takes_orders": True,
    "deliveries": [
        {"delivery": "pickup", "fee": 0, "distance_km": None, "reason": None},
        {"delivery": "courier", "fee": 15000, "distance_km": 6.2, "reason": None},
        {
            "delivery": "expedition",
            "fee": None,
            "distance_km": None,
            "reason": "This shop sends nothing by expedition.",
        },
    ],
    "payment_methods": ["cash"],
    "accept_hours": 24,
    "pay_hours": 24,
    "handover_hours": 72,
    "return_days": 7,
    "tax_rate": 1100,
}
_GONE = {404: "Order not found"}
_LATE = {409: "This order is cancelled: that move is not open."}
ORDER_RESPONSES = responses(_DETAIL, _GONE)
NEW_ORDER_RESPONSES = responses(
    _DETAIL,
    {403: "You cannot order from a supplier that you work for.", 404: "Product not found", 409: "Only 3 left"},
    KEY_USED,
)
PLACE_RESPONSES = responses(
    _DETAIL, _GONE, {422: "It is 41.3 km away, and the courier of this shop goes 15 km."}, _LATE, STALE_VERSION
)
BUYER_MOVE_RESPONSES = responses(_DETAIL, _GONE, _LATE, STALE_VERSION, {403: "Only the buyer may do that."})
SHOP_MOVE_RESPONSES = responses(
    {**_FOR_SHOP, "address": _ADDRESS, "moves": _MOVES},
    _GONE,
    _LATE,
    STALE_VERSION,
    {403: "Only the shop may do that."},
)
ORDERS_RESPONSES = responses([_ORDER])
SHOP_ORDERS_RESPONSES = responses([_FOR_SHOP], {403: "This belongs to another supplier."})
RULES_RESPONSES = responses(
    {**_RULES, "payment_methods": ["cash"], "version": 1},
    {403: "Only an owner of this supplier may do that."},
    STALE_VERSION,
)
QUOTE_RESPONSES = responses(_QUOTE, {404: "Supplier not found"})
STATES_RESPONSES = responses(
    {
        "states": ["draft", "placed"],
        "ends": sorted(ENDS),
        "holds_units": sorted(HOLDS_UNITS),
        "moves": [
            {
                "source": move.source,
                "target": move.target,
                "movers": sorted(move.movers),
                "stock": move.stock,
                "needs_reason": move.needs_reason,
                "only": move.only,
            }
            for move in MOVES[:2]
        ],
    }
)
