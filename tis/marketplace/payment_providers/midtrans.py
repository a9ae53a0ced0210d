"""Midtrans: Snap makes the page, its Core API says how a transaction stands and gives money back.

The server key is the user of the basic authentication. `signature_key` of a notification is the SHA-512 of order,
status code, amount and server key: it does not cover `transaction_status`, so that is never believed.
"""

import hashlib
import hmac
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any

from tis.marketplace.payment_providers.provider import (
    RUPIAH,
    CreatedPayment,
    NewPayment,
    NewRefund,
    NotSigned,
    PaymentStanding,
    ProviderRefused,
    RefundAnswer,
    Standing,
)
from tis.marketplace.payment_providers.provider_client import ProviderClient, page_url, refusal, rupiah_of, text_of

_NOT_FOUND = "404"
# A denied card is not the end: the buyer tries another way on the same page. Money that was given back had come.
_STANDINGS: dict[str, Standing] = {
    "capture": "paid",
    "settlement": "paid",
    "refund": "paid",
    "partial_refund": "paid",
    "chargeback": "paid",
    "partial_chargeback": "paid",
    "pending": "pending",
    "authorize": "pending",
    "deny": "pending",
    "expire": "expired",
    "cancel": "failed",
    "failure": "failed",
}


@dataclass(frozen=True)
class Midtrans:
    client: ProviderClient
    snap_url: str
    api_url: str
    server_key: str = field(repr=False)

    def create(self, payment: NewPayment) -> CreatedPayment:
        """Snap answers the same order again, with another page, until the buyer has begun to pay."""
        minutes = max(1, math.floor((payment.expires_at - payment.begins_at).total_seconds() / 60))
        begin = payment.begins_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S +0000")
        content = {
            "transaction_details": {"order_id": payment.id, "gross_amount": payment.amount},
            "item_details": [
                {"id": "order", "name": f"Order {payment.order_number}", "price": payment.amount, "quantity": 1}
            ],
            "credit_card": {"secure": True},
            "expiry": {"start_time": begin, "unit": "minutes", "duration": minutes},
            "callbacks": {"finish": payment.return_url},
        }
        headers = {"X-Override-Notification": payment.callback_url}
        url = f"{self.snap_url}/snap/v1/transactions"
        status, answer = self.client.ask("POST", url, self.server_key, content, headers)
        if status >= 400:
            raise refusal(answer, "error_messages", "status_message")
        return CreatedPayment(page_url(answer.get("redirect_url") if isinstance(answer, dict) else None))

    def status(self, payment_id: str, external_id: str | None) -> PaymentStanding:
        answer = self._transaction(payment_id)
        if answer is None:
            return PaymentStanding("unknown")
        standing = _STANDINGS.get(text_of(answer, "transaction_status"), "pending")
        fraud = text_of(answer, "fraud_status")
        if standing == "paid" and fraud in ("challenge", "deny"):
            standing = "pending" if fraud == "challenge" else "failed"
        return PaymentStanding(
            standing,
            rupiah_of(answer.get("gross_amount")),
            text_of(answer, "currency") or RUPIAH,
            text_of(answer, "transaction_id")[:64] or None,
        )

    def callback_of(self, headers: Mapping[str, str], body: bytes) -> str:
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            raise NotSigned from None
        signed = [text_of(content, name) for name in ("order_id", "status_code", "gross_amount")]
        expected = hashlib.sha512("".join([*signed, self.server_key]).encode("utf-8", "replace")).hexdigest()
        given = text_of(content, "signature_key").encode("utf-8", "replace")
        if not all(signed) or not hmac.compare_digest(given, expected.encode()):
            raise NotSigned
        return signed[0]

    def refund(self, refund: NewRefund) -> RefundAnswer:
        if refund.is_repeat and self._has_refunded(refund):
            return RefundAnswer("done")
        content = {"refund_key": refund.id, "amount": refund.amount, "reason": refund.reason}
        url = f"{self.api_url}/v2/{refund.payment_id}/refund"
        status, answer = self.client.ask("POST", url, self.server_key, content)
        if status >= 400 or text_of(answer, "status_code") not in ("200", "201"):
            raise refusal(answer, "status_message", "validation_messages")
        return RefundAnswer("done")

    def _has_refunded(self, refund: NewRefund) -> bool:
        answer = self._transaction(refund.payment_id) or {}
        found = answer.get("refunds")
        return isinstance(found, list) and any(text_of(one, "refund_key") == refund.id for one in found)

    def _transaction(self, payment_id: str) -> dict[str, Any] | None:
        """None before the buyer has chosen how to pay: until then it knows only the page."""
        status, answer = self.client.ask("GET", f"{self.api_url}/v2/{payment_id}/status", self.server_key)
        code = text_of(answer, "status_code")
        if status == 404 or code == _NOT_FOUND:
            return None
        if status >= 400 or not isinstance(answer, dict) or not text_of(answer, "transaction_status"):
            raise refusal(answer, "status_message")
        if text_of(answer, "order_id") != payment_id:
            raise ProviderRefused("it answered about another order")
        return answer
