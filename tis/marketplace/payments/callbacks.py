"""A provider says that something happened. It is heard if it is signed, and then the provider is asked.

Nothing that stands in a callback is believed but which payment it is about. So one that is repeated, reordered or
stolen can do no more than let the server ask once more.
"""

import hashlib
import re
from collections.abc import Mapping

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from tis.errors import Conflict, Forbidden
from tis.marketplace.columns import now
from tis.marketplace.context import MarketServices
from tis.marketplace.payment_providers.payment_desk import stored_keys
from tis.marketplace.payment_providers.provider import NotSigned, ProviderName
from tis.marketplace.tables import Payment, PaymentCallback, ShopPaymentMethods

_NOT_SIGNED = "This is not signed by the payment provider of this shop."
_MAX_CALLBACKS = 50  # of a payment that are kept, and asked about
_ID = re.compile(r"[0-9a-f-]{36}")
_OPEN = ("creating", "pending", "expired", "failed")


def hear_callback(
    market: MarketServices, provider: ProviderName, supplier_id: int, headers: Mapping[str, str], body: bytes
) -> bool:
    """Whether it is news. Raises Forbidden for what is not signed, also where there is no such shop."""
    with market.reading() as session:
        keys = stored_keys(session.get(ShopPaymentMethods, supplier_id))
    if keys is None or keys.provider != provider:
        raise Forbidden(_NOT_SIGNED)
    try:
        payment_id = market.payments.opened(market.signer, keys).callback_of(headers, body)
    except (NotSigned, Conflict):
        raise Forbidden(_NOT_SIGNED) from None
    if not _ID.fullmatch(payment_id):  # none of ours; and no database takes every text
        return False
    with market.writing() as session:
        is_new = _note(session, payment_id, provider, supplier_id, body)
    if is_new:
        market.wake_payment_checks()
    return is_new


def _note(session: Session, payment_id: str, provider: str, supplier_id: int, body: bytes) -> bool:
    """Payments that the shop takes elsewhere with the same keys are none of ours."""
    own = Payment.id == payment_id, Payment.provider == provider, Payment.supplier_id == supplier_id
    payment = session.scalar(select(Payment).where(*own).with_for_update())
    if payment is None:
        return False
    digest = hashlib.sha256(body).hexdigest()
    seen = PaymentCallback.payment_id == payment.id
    if session.scalar(select(PaymentCallback.digest).where(seen, PaymentCallback.digest == digest)) is not None:
        return False
    if (session.scalar(select(func.count()).select_from(PaymentCallback).where(seen)) or 0) >= _MAX_CALLBACKS:
        return False
    session.add(PaymentCallback(payment_id=payment.id, digest=digest))
    asked = update(Payment).where(Payment.id == payment.id, Payment.status.in_(_OPEN))
    session.execute(asked.values(check_at=now()))
    return payment.status in _OPEN
