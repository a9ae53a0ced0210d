"""Asks providers how payments and refunds stand: those of callbacks at once, all others now and then.

Every server does it. A check is taken by moving its time: who moved it asks, outside of any transaction.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from tis.errors import Conflict
from tis.marketplace.columns import now
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit.signing import Signer
from tis.marketplace.payment_providers.payment_desk import PaymentDesk, StoredKeys, stored_keys
from tis.marketplace.payment_providers.provider import (
    NewRefund,
    PaymentStanding,
    ProviderRefused,
    ProviderSilent,
    RefundAnswer,
)
from tis.marketplace.payments.truth import apply_refund, apply_standing, next_check
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.stock.counters import execute_update
from tis.marketplace.tables import Payment, PaymentRefund, ShopPaymentMethods

OpenTransaction = Callable[[], AbstractContextManager[Session]]


class PaymentChecks:
    def __init__(
        self,
        reading: OpenTransaction,
        writing: OpenTransaction,
        search: ProductSearch,
        desk: PaymentDesk,
        signer: Callable[[], Signer],
        rules: ServiceRules,
    ) -> None:
        self._reading, self._writing, self._search = reading, writing, search
        self._desk, self._signer, self._rules = desk, signer, rules

    def step(self) -> bool:
        """Whether there was something to ask about."""
        return self._check_payment() or self._check_refund()

    def _check_payment(self) -> bool:
        with self._reading() as session:
            due = select(Payment.id, Payment.check_at, Payment.num_checks).where(Payment.check_at <= now())
            found = session.execute(due.order_by(Payment.check_at).limit(1)).one_or_none()
        if found is None:
            return False
        with self._writing() as session:
            if not _is_taken(session, Payment, *found):
                return True
            payment = session.get_one(Payment, found.id)
            keys, external_id = _keys_of(session, payment), payment.external_id
        standing = self._standing(keys, found.id, external_id)
        with self._writing() as session:
            apply_standing(session, self._search, found.id, standing, self._rules)
        return True

    def _standing(self, keys: StoredKeys | None, payment_id: str, external_id: str | None) -> PaymentStanding:
        """A provider that is silent, or refuses, is asked again later."""
        if keys is not None:
            try:
                return self._desk.opened(self._signer(), keys).status(payment_id, external_id)
            except (ProviderRefused, ProviderSilent, Conflict):
                pass
        return PaymentStanding("pending")

    def _check_refund(self) -> bool:
        with self._reading() as session:
            columns = PaymentRefund.id, PaymentRefund.check_at, PaymentRefund.num_checks
            due = select(*columns).where(PaymentRefund.check_at <= now())
            found = session.execute(due.order_by(PaymentRefund.check_at).limit(1)).one_or_none()
        if found is None:
            return False
        with self._writing() as session:
            if not _is_taken(session, PaymentRefund, *found):
                return True
            refund = session.get_one(PaymentRefund, found.id)
            payment = session.get_one(Payment, refund.payment_id)
            keys, new = _keys_of(session, payment), refund_of(refund, payment, is_repeat=True)
        answer = asked_refund(self._desk, self._signer(), keys, new)
        with self._writing() as session:
            apply_refund(session, found.id, answer)
        return True


def refund_of(refund: PaymentRefund, payment: Payment, *, is_repeat: bool) -> NewRefund:
    return NewRefund(refund.id, payment.id, payment.external_id, refund.amount, refund.reason, is_repeat)


def asked_refund(desk: PaymentDesk, signer: Signer, keys: StoredKeys | None, refund: NewRefund) -> RefundAnswer:
    """`asked` as long as nobody knows what became of it."""
    if keys is None:
        return RefundAnswer("asked")
    try:
        return desk.opened(signer, keys).refund(refund)
    except ProviderRefused as refused:
        return RefundAnswer("failed", refused.problem)
    except (ProviderSilent, Conflict):
        return RefundAnswer("asked")


def _is_taken(
    session: Session,
    table: type[Payment | PaymentRefund],
    row_id: str,
    check_at: datetime | None,
    num_checks: int,
) -> bool:
    mine = update(table).where(table.id == row_id, table.check_at == check_at)
    return bool(execute_update(session, mine.values(check_at=next_check(num_checks, now()), num_checks=num_checks + 1)))


def _keys_of(session: Session, payment: Payment) -> StoredKeys | None:
    """None where the shop has changed its provider: the old one cannot be asked."""
    keys = stored_keys(session.get(ShopPaymentMethods, payment.supplier_id))
    is_same = keys is not None and (keys.provider, keys.environment) == (payment.provider, payment.environment)
    return keys if is_same else None
