"""How a shop takes money."""

from collections.abc import Sequence
from typing import Literal

from sqlalchemy.orm import Session

PaymentMethod = Literal["cash", "transfer", "qris", "provider"]


def offered_methods(session: Session, supplier_id: int) -> Sequence[PaymentMethod]:
    return ("cash",)
