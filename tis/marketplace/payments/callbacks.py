"""A provider says that something happened. It is heard if it is signed, and then the provider is asked.

Nothing that stands in a callback is believed but which payment it is about. So one that is repeated, reordered or
stolen can do no more than let the server ask once more.
"""

import hashlib
import re
from collections.abc import Mapping
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.errors import Conflict, Forbidden
from tis.marketplace.columns import now
from tis.marketplace.context import MarketServices
from tis.marketplace.payment_providers.payment_desk import stored_keys
from tis.marketplace.payment_providers.provider import NotSigned, ProviderName
from tis.marketplace.tables import Payment, PaymentCallback, ShopPaymentMethods

_NOT_SIGNED = "This is not signed by the payment provider of this shop."
_MAX_CALLBACKS = 50  # of a payment that are kept
_PAUSE = timedelta(seconds=30)  # between two questions about a payment of which so many came
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
    kept = select(PaymentCallback).where(PaymentCallback.payment_id == payment.id)
    seen = session.scalars(kept.order_by(PaymentCallback.seen_at, PaymentCallback.digest)).all()
    if any(one.digest == digest for one in seen):
        return False
    is_flood = len(seen) >= _MAX_CALLBACKS  # by a thief of the token, maybe: a true one still gets in
    for one in seen[: max(0, len(seen) + 1 - _MAX_CALLBACKS)]:
        session.delete(one)
    session.add(PaymentCallback(payment_id=payment.id, digest=digest))
    if payment.status not in _OPEN:
        return False
    ask_at = now() + (_PAUSE if is_flood else timedelta())
    payment.check_at = min(payment.check_at or ask_at, ask_at)
    return True
