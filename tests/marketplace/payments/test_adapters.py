"""Midtrans and Xendit, by what their references show: how each answer is understood, and what is no answer."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.marketplace.payments.fake_provider import (
    CALLBACK_TOKEN,
    SECRET_KEY,
    SERVER_KEY,
    invoice,
    midtrans_message,
)
from tis.marketplace.payment_providers.midtrans import Midtrans
from tis.marketplace.payment_providers.provider import (
    NewPayment,
    NewRefund,
    NotSigned,
    ProviderRefused,
    ProviderSilent,
)
from tis.marketplace.payment_providers.provider_client import ProviderClient, page_url, rupiah_of
from tis.marketplace.payment_providers.xendit import Xendit

BEGIN = datetime(2026, 11, 28, 3, 0, tzinfo=UTC)
PAYMENT = NewPayment(
    id="7f0c9f10-5a0e-4d0e-9a3b-3f2b0b1e3c7e",
    order_number="K7Q2M9XW",
    amount=150_000,
    begins_at=BEGIN,
    expires_at=BEGIN + timedelta(hours=2),
    callback_url="https://shop.example.com/api/payments/callbacks/midtrans/1",
    return_url="https://shop.example.com/shop?order=1",
    is_repeat=False,
)
UNPAID = {"amount": 150_000, "paid": None, "currency": "IDR"}


class Recorded(ProviderClient):
    """Answers in turn, and remembers what it was asked."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        super().__init__()
        self.answers, self.asked = list(answers), list[Any]()

    def ask(self, method: str, url: str, key: str, content: Any = None, headers: Any = None) -> tuple[int, Any]:
        self.asked.append((method, url, key, content, headers))
        return self.answers.pop(0)


def midtrans(*answers: tuple[int, Any]) -> tuple[Midtrans, Recorded]:
    client = Recorded(*answers)
    return Midtrans(client, "https://snap.example", "https://api.example", SERVER_KEY), client


def xendit(*answers: tuple[int, Any]) -> tuple[Xendit, Recorded]:
    client = Recorded(*answers)
    return Xendit(client, "https://api.example", SECRET_KEY, CALLBACK_TOKEN), client


def test_midtrans_is_asked_for_a_page_as_its_reference_says() -> None:
    page = "https://app.midtrans.example/snap/v4/redirection/66e4fa55"
    adapter, client = midtrans((201, {"token": "66e4fa55", "redirect_url": page}))
    assert adapter.create(PAYMENT).url == page
    [(method, url, key, content, headers)] = client.asked
    assert (method, url, key) == ("POST", "https://snap.example/snap/v1/transactions", SERVER_KEY)
    assert content["transaction_details"] == {"order_id": PAYMENT.id, "gross_amount": 150_000}
    assert sum(one["price"] * one["quantity"] for one in content["item_details"]) == 150_000
    assert content["expiry"] == {"start_time": "2026-11-28 03:00:00 +0000", "unit": "minutes", "duration": 120}
    assert headers == {"X-Override-Notification": PAYMENT.callback_url}


def test_xendit_is_asked_for_an_invoice_as_its_reference_says() -> None:
    adapter, client = xendit((200, invoice(PAYMENT.id, UNPAID, "page")))
    created = adapter.create(PAYMENT)
    assert created.url.startswith("https://") and created.external_id
    [(method, url, key, content, _)] = client.asked
    assert (method, url, key) == ("POST", "https://api.example/v2/invoices", SECRET_KEY)
    assert (content["external_id"], content["amount"], content["currency"]) == (PAYMENT.id, 150_000, "IDR")
    assert content["invoice_duration"] == 7200


@pytest.mark.parametrize(
    ("status", "fraud", "state"),
    [
        ("capture", "accept", "paid"),
        ("capture", "challenge", "pending"),
        ("capture", "deny", "failed"),
        ("settlement", "accept", "paid"),
        ("settlement", "", "paid"),
        ("pending", "accept", "pending"),
        ("authorize", "accept", "pending"),
        ("deny", "deny", "pending"),
        ("expire", "", "expired"),
        ("cancel", "accept", "failed"),
        ("failure", "", "failed"),
        ("refund", "accept", "paid"),
        ("partial_refund", "accept", "paid"),
        ("chargeback", "accept", "paid"),
        ("a new word", "accept", "pending"),
    ],
)
def test_how_a_transaction_of_midtrans_stands(status: str, fraud: str, state: str) -> None:
    adapter, client = midtrans((200, {**midtrans_message(PAYMENT.id, UNPAID, status), "fraud_status": fraud}))
    standing = adapter.status(PAYMENT.id, None)
    assert (standing.state, standing.amount, standing.currency) == (state, 150_000, "IDR")
    assert client.asked[0][1] == f"https://api.example/v2/{PAYMENT.id}/status"


@pytest.mark.parametrize(
    ("status", "state"),
    [("PENDING", "pending"), ("PAID", "paid"), ("SETTLED", "paid"), ("EXPIRED", "expired"), ("NEW_WORD", "pending")],
)
def test_how_an_invoice_of_xendit_stands(status: str, state: str) -> None:
    adapter, _ = xendit((200, [{**invoice(PAYMENT.id, UNPAID, "page"), "status": status}]))
    standing = adapter.status(PAYMENT.id, None)
    assert (standing.state, standing.amount, standing.currency) == (state, 150_000, "IDR")


def test_of_two_invoices_the_paid_one_counts() -> None:
    expired, paid = (invoice(PAYMENT.id, UNPAID, status) for status in ("expire", "settlement"))
    foreign = {**paid, "external_id": "another"}
    adapter, _ = xendit((200, [foreign, expired, paid]))
    assert adapter.status(PAYMENT.id, None).state == "paid"
    adapter, _ = xendit((200, [foreign]))
    assert adapter.status(PAYMENT.id, None).state == "unknown"


def test_what_nobody_has_paid_yet_is_unknown_to_midtrans() -> None:
    missing = {"status_code": "404", "status_message": "Transaction doesn't exist."}
    for status in (200, 404):
        adapter, _ = midtrans((status, missing))
        assert adapter.status(PAYMENT.id, None).state == "unknown"


@pytest.mark.parametrize("changed", [{"gross_amount": "150000.00"}, {"status_code": "201"}, {"order_id": "another"}])
def test_a_notification_of_midtrans_is_signed_over_order_code_and_amount(changed: dict[str, str]) -> None:
    adapter, _ = midtrans()
    message = midtrans_message(PAYMENT.id, {**UNPAID, "paid": 149_000}, "settlement")
    assert adapter.callback_of({}, json.dumps(message).encode()) == PAYMENT.id
    with pytest.raises(NotSigned):
        adapter.callback_of({}, json.dumps({**message, **changed}).encode())


def test_the_example_of_midtrans_reference_is_signed() -> None:
    adapter = Midtrans(Recorded(), "", "", "askvnoibnosifnboseofinbofinfgbiufglnbfg")
    signed = {"order_id": "1111", "status_code": "200", "gross_amount": "100000.00"}
    signature = (
        "edc076b21793ebe3e17926350f5b8ae67d902fe657b3d0aa31b932d5c127e237"
        "5d308a2bc94f3265ac2d80a1f181a79b997ac178a236fcff35af263fc4d4c231"
    )
    assert adapter.callback_of({}, json.dumps({**signed, "signature_key": signature}).encode()) == "1111"


@pytest.mark.parametrize("token", ["", "fixture", CALLBACK_TOKEN + "x", CALLBACK_TOKEN.upper(), "\u00e9"])
def test_a_callback_of_xendit_needs_the_token_of_the_shop(token: str) -> None:
    adapter, _ = xendit()
    body = json.dumps(invoice(PAYMENT.id, UNPAID, "settlement")).encode()
    assert adapter.callback_of({"x-callback-token": CALLBACK_TOKEN}, body) == PAYMENT.id
    with pytest.raises(NotSigned):
        adapter.callback_of({"x-callback-token": token}, body)


@pytest.mark.parametrize("answer", [None, [], "text", {}, {"redirect_url": 1}, {"redirect_url": "javascript:alert(1)"}])
def test_a_page_that_is_none_is_no_answer(answer: Any) -> None:
    with pytest.raises(ProviderSilent):
        midtrans((201, answer))[0].create(PAYMENT)
    with pytest.raises(ProviderSilent):
        xendit((200, answer))[0].create(PAYMENT)


@pytest.mark.parametrize(
    "url", ["http://a.example", "https://a b", "https://u:p@a.example", "//a", "https://a/" + "x" * 600]
)
def test_a_buyer_is_sent_to_https_addresses_only(url: str) -> None:
    with pytest.raises(ProviderSilent):
        page_url(url)


def test_an_answer_about_another_order_is_none() -> None:
    adapter, _ = midtrans((200, midtrans_message("another", UNPAID, "settlement")))
    with pytest.raises(ProviderRefused, match="another order"):
        adapter.status(PAYMENT.id, None)


def test_a_refusal_is_shown_in_one_line_of_bounded_length() -> None:
    adapter, _ = midtrans((400, {"error_messages": ["no\nsuch\x1b[31m" + "x" * 500]}))
    with pytest.raises(ProviderRefused) as refused:
        adapter.create(PAYMENT)
    assert refused.value.problem.isprintable() and len(refused.value.problem) == 200


def test_a_refund_that_midtrans_made_is_not_made_again() -> None:
    refund = NewRefund("r-1", PAYMENT.id, None, 50_000, "Rusak", is_repeat=True)
    done = {**midtrans_message(PAYMENT.id, UNPAID, "partial_refund"), "refunds": [{"refund_key": "r-1"}]}
    adapter, client = midtrans((200, done))
    assert adapter.refund(refund).state == "done" and len(client.asked) == 1
    adapter, client = midtrans((200, {**done, "refunds": []}), (200, {"status_code": "200"}))
    assert adapter.refund(refund).state == "done"
    assert client.asked[1][3] == {"refund_key": "r-1", "amount": 50_000, "reason": "Rusak"}
    adapter, _ = midtrans((200, done), (200, {"status_code": "412", "status_message": "not settled"}))
    with pytest.raises(ProviderRefused, match="not settled"):
        adapter.refund(NewRefund("r-2", PAYMENT.id, None, 50_000, "Rusak", is_repeat=True))


@pytest.mark.parametrize(
    ("value", "rupiah"),
    [
        ("150000.00", 150_000),
        (150_000, 150_000),
        (150_000.0, 150_000),
        ("150000.50", None),
        ("nan", None),
        ("inf", None),
        ("1e400", None),
        (True, None),
        (None, None),
        ([], None),
        ("many", None),
    ],
)
def test_amounts_are_whole_rupiah_or_none(value: object, rupiah: int | None) -> None:
    assert rupiah_of(value) == rupiah


def test_keys_are_not_in_what_an_adapter_prints() -> None:
    shown = repr(midtrans()[0]) + repr(xendit()[0])
    assert not any(secret in shown for secret in (SERVER_KEY, SECRET_KEY, CALLBACK_TOKEN))
