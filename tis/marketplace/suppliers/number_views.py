"""Views of the numbers of a shop."""

from datetime import date

from pydantic import BaseModel

from tis.marketplace.kit.docs import responses
from tis.marketplace.kit.opening_hours import TimeZone
from tis.marketplace.suppliers.schemas import NO_SUPPLIER

_TOTALS = {
    "sales": 3,
    "sold_units": 4,
    "sold_rupiah": 31_998_000,
    "holds": 5,
    "held_units": 6,
    "held_rupiah": 47_997_000,
    "accepted": 4,
    "refused": 1,
    "released": 0,
    "expired": 1,
}
NUMBERS = responses(
    {
        "time_zone": "WIB",
        "first_day": "2026-11-22",
        "last_day": "2026-11-28",
        "days": [{"day": "2026-11-22", **_TOTALS}],
        "totals": _TOTALS,
        "previous": {**_TOTALS, "sales": 2},
        "best_goods": [{"product_id": 1, "name": "Laptop Gaming Rinjani G15", "units": 3, "rupiah": 29_997_000}],
        "nearly_out": [
            {"product_id": 1, "name": "Laptop Gaming Rinjani G15", "available_quantity": 2, "sold_units": 3}
        ],
        "reviews": {"number": 2, "mean_rating": 4.5, "unanswered": 1},
    },
    {403: "This belongs to another supplier."},
    NO_SUPPLIER,
)


class PeriodNumbers(BaseModel):
    """Sales count when they were made, holds when they began, with what became of them since."""

    sales: int = 0
    sold_units: int = 0
    sold_rupiah: int = 0
    holds: int = 0
    held_units: int = 0
    held_rupiah: int = 0
    accepted: int = 0  # also those that were sold, or expired afterwards
    refused: int = 0
    released: int = 0
    expired: int = 0


class DayNumbers(PeriodNumbers):
    day: date


class BestProduct(BaseModel):
    product_id: int
    name: str
    units: int
    rupiah: int


class NearlyOut(BaseModel):
    product_id: int
    name: str
    available_quantity: int
    sold_units: int  # in the period


class ReviewNumbers(BaseModel):
    number: int  # in the period
    mean_rating: float | None
    unanswered: int  # of all; more than 1,000 are not counted


class ShopNumbers(BaseModel):
    time_zone: TimeZone  # whose days these are
    first_day: date
    last_day: date
    days: list[DayNumbers]
    totals: PeriodNumbers
    previous: PeriodNumbers  # of as many weeks before
    best_goods: list[BestProduct]
    nearly_out: list[NearlyOut]  # three or fewer left, or fewer than are sold in a week
    reviews: ReviewNumbers
