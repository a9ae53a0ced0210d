"""How a shop takes money."""

from typing import Literal

from sqlalchemy.orm import Session

from tis.marketplace.tables import ShopPaymentMethods

PaymentMethod = Literal["cash", "transfer", "qris", "provider"]


def offered_methods(session: Session, supplier_id: int) -> tuple[PaymentMethod, ...]:
    """A shop that has said nothing takes cash."""
    return methods_of(session.get(ShopPaymentMethods, supplier_id))


def methods_of(row: ShopPaymentMethods | None) -> tuple[PaymentMethod, ...]:
    if row is None:
        return ("cash",)
    has: dict[PaymentMethod, bool] = {
        "cash": row.takes_cash,
        "transfer": row.account_number is not None,
        "qris": row.qris_text is not None,
        "provider": row.sealed_credentials is not None,
    }
    return tuple(method for method, is_offered in has.items() if is_offered)
