"""Xendit: an invoice is the page. The secret key is the user of the basic authentication.

A callback has a fixed token of the shop in `x-callback-token`, which signs nothing of its body: the body says only
which invoice to ask about.
"""

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tis.marketplace.payment_providers.provider import (
    RUPIAH,
    CreatedPayment,
    NewPayment,
    NewRefund,
    NotSigned,
    PaymentStanding,
    ProviderSilent,
    RefundAnswer,
    RefundStanding,
    Standing,
)
from tis.marketplace.payment_providers.provider_client import ProviderClient, page_url, refusal, rupiah_of, text_of

_TOKEN_HEADER = "x-callback-token"
_STANDINGS: dict[str, Standing] = {"PENDING": "pending", "PAID": "paid", "SETTLED": "paid", "EXPIRED": "expired"}
_REFUNDS: dict[str, RefundStanding] = {
    "SUCCEEDED": "done",
    "PENDING": "asked",
    "REQUIRES_ACTION": "asked",
    "FAILED": "failed",
    "CANCELLED": "failed",
}
_MAX_EXTERNAL_CHARS = 64


@dataclass(frozen=True)
class Xendit:
    client: ProviderClient
    url: str
    secret_key: str = field(repr=False)
    callback_token: str = field(repr=False)

    def create(self, payment: NewPayment) -> CreatedPayment:
        """It makes as many invoices of one name as it is asked for, so a repeat looks first."""
        invoice = self._found(payment.id) if payment.is_repeat else None
        if invoice is None:
            seconds = max(60, int((payment.expires_at - payment.begins_at).total_seconds()))
            content = {
                "external_id": payment.id,
                "amount": payment.amount,
                "currency": RUPIAH,
                "description": f"Order {payment.order_number}",
                "invoice_duration": seconds,
                "success_redirect_url": payment.return_url,
                "failure_redirect_url": payment.return_url,
            }
            status, invoice = self.client.ask("POST", f"{self.url}/v2/invoices", self.secret_key, content)
            if status >= 400:
                raise refusal(invoice, "message", "error_code")
        return CreatedPayment(page_url(_field(invoice, "invoice_url")), _external_id(invoice))

    def status(self, payment_id: str, external_id: str | None) -> PaymentStanding:
        invoice = self._found(payment_id)
        if invoice is None:
            return PaymentStanding("unknown")
        standing = _STANDINGS.get(text_of(invoice, "status"), "pending")
        paid = invoice.get("paid_amount") if standing == "paid" else None
        return PaymentStanding(
            standing,
            rupiah_of(invoice.get("amount") if paid is None else paid),
            text_of(invoice, "currency") or RUPIAH,
            _external_id(invoice),
            page_url(_field(invoice, "invoice_url")) if standing == "pending" else None,
        )

    def callback_of(self, headers: Mapping[str, str], body: bytes) -> str:
        given = headers.get(_TOKEN_HEADER, "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, self.callback_token.encode()):
            raise NotSigned
        try:
            payment_id = text_of(json.loads(body), "external_id")
        except (ValueError, RecursionError):
            raise NotSigned from None
        if not payment_id:
            raise NotSigned
        return payment_id

    def refund(self, refund: NewRefund) -> RefundAnswer:
        found = self._found_refund(refund) if refund.is_repeat else None
        if found is None:
            content = {
                "invoice_id": refund.external_id,
                "reference_id": refund.id,
                "amount": refund.amount,
                "currency": RUPIAH,
                "reason": "REQUESTED_BY_CUSTOMER",
            }
            headers = {"idempotency-key": refund.id}
            status, found = self.client.ask("POST", f"{self.url}/refunds", self.secret_key, content, headers)
            if status >= 400:
                raise refusal(found, "message", "error_code")
        return RefundAnswer(
            _REFUNDS.get(text_of(found, "status"), "asked"), text_of(found, "failure_code")[:200] or None
        )

    def _found(self, payment_id: str) -> dict[str, Any] | None:
        """By our own name of it: of several the paid one, else one that can still be paid."""
        url = f"{self.url}/v2/invoices?external_id={quote(payment_id, safe='')}"
        status, answer = self.client.ask("GET", url, self.secret_key)
        if status == 404:
            return None
        if status >= 400:
            raise refusal(answer, "message", "error_code")
        if not isinstance(answer, list):
            raise ProviderSilent("no list of invoices")
        own = [one for one in answer if text_of(one, "external_id") == payment_id]
        order = ["paid", "pending", "expired"]
        own.sort(key=lambda one: order.index(_STANDINGS.get(text_of(one, "status"), "pending")))
        return own[0] if own else None

    def _found_refund(self, refund: NewRefund) -> dict[str, Any] | None:
        url = f"{self.url}/refunds?invoice_id={quote(refund.external_id or '', safe='')}"
        status, answer = self.client.ask("GET", url, self.secret_key)
        if status == 404:
            return None
        found = answer.get("data") if isinstance(answer, dict) else None
        if status >= 400 or not isinstance(found, list):
            raise ProviderSilent("no list of refunds")
        return next((one for one in found if text_of(one, "reference_id") == refund.id), None)


def _field(answer: Any, name: str) -> object:
    return answer.get(name) if isinstance(answer, dict) else None


def _external_id(invoice: Any) -> str:
    name = text_of(invoice, "id")
    if not 0 < len(name) <= _MAX_EXTERNAL_CHARS:
        raise ProviderSilent("an invoice without its id")
    return name
