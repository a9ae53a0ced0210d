"""Payments on the page of a provider: each is made once, and what the provider says counts once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx2
import pytest
from sqlalchemy import select, update

from tests.marketplace.payments.fake_provider import CALLBACK_TOKEN
from tests.marketplace.payments.provider_process import FakeProvider
from tests.marketplace.payments.till import Till, until
from tis.marketplace.columns import now
from tis.marketplace.tables import Payment, PaymentCallback

pytestmark = pytest.mark.parametrize("name", ["midtrans", "xendit"])


def test_a_buyer_pays_on_a_page_and_the_order_is_paid_once(name: str, till: Till, provider: FakeProvider) -> None:
    order, payment = till.begun(name)
    view = till.view(order)
    assert view["page"]["url"].startswith("https://") and view["amount"] == 150_000
    assert till.begin(order)["page"] == view["page"] and provider.payments()[payment]["pages"] == 1
    provider.pay(payment, 150_000)
    url = till.callback_url(name)
    assert provider.send(name, url, payment, "settlement", "settlement", "settlement") == [200, 200, 200]
    until(lambda: till.row(order).state == "paid")
    # What comes late, or again, changes nothing.
    assert provider.send(name, url, payment, "pending", "expire", "settlement") == [200, 200, 200]
    till.check_now(order)
    paid = till.row(order)
    assert (paid.state, paid.refund_due, paid.version) == ("paid", 0, 2)
    assert till.view(order)["status"] == "paid" and till.view(order)["paid_amount"] == 150_000
    assert till.view(order)["page"] is None
    for account in (f"user:{till.buyer_id}", f"supplier:{till.shop_id}"):
        assert till.news(account, order) == ["order.paid"]


def test_a_callback_that_lies_pays_nothing(name: str, till: Till, provider: FakeProvider) -> None:
    """Signed with the right key, it says "paid"; the provider, when asked, says "not yet"."""
    order, payment = till.begun(name)
    assert provider.send(name, till.callback_url(name), payment, "settlement") == [200]
    until(lambda: till.payments(order)[0].num_checks == 1)
    assert till.row(order).state == "accepted" and till.payments(order)[0].status == "pending"


def test_a_forged_callback_is_refused_and_leaves_no_trace(name: str, till: Till, provider: FakeProvider) -> None:
    order, payment = till.begun(name)
    provider.pay(payment, 150_000)
    assert provider.send(name, till.callback_url(name), payment, "settlement", forged=True) == [403]
    other = "xendit" if name == "midtrans" else "midtrans"
    assert provider.send(other, till.callback_url(other), payment, "settlement") == [403]
    unknown = till.callback_url(name).replace(f"/{till.shop_id}", "/999999999")
    assert provider.send(name, unknown, payment, "settlement") == [403]
    for body in (b"", b"{}", b"[]", b"\xff\xfe", b'{"order_id": 1}', b'{"signature_key": "\xc3\xa9"}', b"null"):
        answer = till.nobody.post(
            till.callback_url(name), content=body, headers={"content-type": "application/json", "x-callback-token": ""}
        )
        assert answer.status_code in (403, 422), (body, answer.text)
    assert till.row(order).state == "accepted" and till.payments(order)[0].num_checks == 0
    with till.server.market.reading() as session:
        assert session.query(PaymentCallback).filter(PaymentCallback.payment_id == payment).count() == 0


def test_a_callback_for_a_payment_of_another_shop_is_none_of_ours(
    name: str, till: Till, provider: FakeProvider
) -> None:
    _, payment = till.begun(name)
    with Till(till.server) as other:
        other.connect(name)
        assert provider.send(name, other.callback_url(name), payment, "settlement") == [200]
        assert provider.send(name, other.callback_url(name), "no-such-payment", "settlement") == [200]
    with till.server.market.reading() as session:
        assert session.query(PaymentCallback).filter(PaymentCallback.payment_id == payment).count() == 0


@pytest.mark.parametrize(
    "body",
    [b"[" * 60_000, b'{"external_id":' * 4000, b'{"external_id": "\\ud800"}', b'{"external_id": "a\\u0000"}'],
    ids=["lists in lists", "objects in objects", "half a character", "a NUL"],
)
def test_a_callback_that_no_provider_sends_is_none_of_ours(name: str, body: bytes, till: Till) -> None:
    till.connect(name)
    headers = {"content-type": "application/json", "x-callback-token": CALLBACK_TOKEN}
    answer = till.nobody.post(till.callback_url(name), content=body, headers=headers)
    assert answer.status_code in (200, 403) and "Heard" not in answer.text, answer.text


def test_a_true_callback_gets_in_after_many_of_a_thief_who_can_sign(
    name: str, till: Till, provider: FakeProvider
) -> None:
    order, payment = till.begun(name)
    with till.server.market.writing() as session:
        long_ago = now() - timedelta(minutes=5)
        session.add_all(
            PaymentCallback(payment_id=payment, digest=f"{number:064d}", seen_at=long_ago + timedelta(seconds=number))
            for number in range(50)
        )
        # What so many questions lead to: the next one comes late.
        later = now() + timedelta(minutes=30)
        session.execute(update(Payment).where(Payment.id == payment).values(check_at=later))
    provider.pay(payment, 150_000)
    assert provider.send(name, till.callback_url(name), payment, "settlement", "settlement") == [200, 200]
    with till.server.market.reading() as session:
        kept = sorted(session.scalars(select(PaymentCallback.digest).where(PaymentCallback.payment_id == payment)))
        assert len(kept) == 50 and kept[:49] == [f"{number:064d}" for number in range(1, 50)]
    asked_at = till.payments(order)[0].check_at
    assert asked_at is not None and now() < asked_at < now() + timedelta(seconds=31)
    till.check_now(order)
    until(lambda: till.row(order).state == "paid")


def test_a_callback_that_is_too_large_is_refused(name: str, till: Till, provider: FakeProvider) -> None:
    assert till.nobody.post(till.callback_url(name), content=b" " * 70_000).status_code == 413


@pytest.mark.parametrize(("amount", "currency"), [(149_999, "IDR"), (150_001, "IDR"), (150_000, "USD")])
def test_another_amount_is_noted_and_the_order_is_not_paid(
    name: str, amount: int, currency: str, till: Till, provider: FakeProvider
) -> None:
    order, payment = till.begun(name)
    provider.pay(payment, amount, currency=currency)
    provider.send(name, till.callback_url(name), payment, "settlement")
    until(lambda: till.payments(order)[0].status == "differs")
    assert till.row(order).state == "accepted"
    assert str(amount) in till.view(order)["problem"] and currency in till.view(order)["problem"]
    assert till.buyer.get(f"/api/orders/{order}/payment").json()["problem"] is None
    assert till.news(f"supplier:{till.shop_id}", order) == ["payment.differs"]
    assert till.news(f"user:{till.buyer_id}", order) == []
    assert till.buyer.post(f"/api/orders/{order}/payment").status_code == 409


@pytest.mark.parametrize("state", ["cancelled", "expired", "paid"])
def test_money_for_an_order_that_ended_is_owed_back_and_both_are_told(
    name: str, state: str, till: Till, provider: FakeProvider
) -> None:
    order, payment = till.begun(name)
    till.set_order(order, state=state, paid_by_hand=150_000 if state == "paid" else 0)
    provider.pay(payment, 150_000)
    provider.send(name, till.callback_url(name), payment, "settlement", "settlement")
    until(lambda: till.row(order).refund_due == 150_000)
    assert till.row(order).state == state and till.payments(order)[0].status == "paid"
    for account in (f"user:{till.buyer_id}", f"supplier:{till.shop_id}"):
        assert till.news(account, order) == ["payment.late"]


def test_a_page_that_expired_makes_room_for_another(name: str, till: Till, provider: FakeProvider) -> None:
    order, payment = till.begun(name)
    provider.pay(payment, 150_000, status="expire")
    provider.send(name, till.callback_url(name), payment, "expire")
    until(lambda: till.payments(order)[0].status == "expired")
    assert till.begin(order)["status"] == "pending"
    _, second = till.payments(order)
    # Money that comes for the first page after all pays the order; the second page is then one too many.
    provider.pay(payment, 150_000)
    provider.send(name, till.callback_url(name), payment, "settlement")
    until(lambda: till.row(order).state == "paid")
    provider.pay(second.id, 150_000)
    provider.send(name, till.callback_url(name), second.id, "settlement")
    until(lambda: till.row(order).refund_due == 150_000)


@pytest.mark.parametrize("mood", ["error", "garbage", "lost"])
def test_a_provider_that_fails_is_asked_again_for_the_same_payment(
    name: str, mood: str, till: Till, provider: FakeProvider
) -> None:
    till.connect(name)
    order = till.order()
    provider.moods(create=mood)
    answer = till.buyer.post(f"/api/orders/{order}/payment")
    assert answer.status_code == 503 and "Retry-After" in answer.headers, answer.text
    assert till.view(order)["status"] == "creating"
    provider.fine()
    assert till.begin(order)["status"] == "pending"
    [payment] = till.payments(order)
    # Xendit would make a second invoice of the same name, so it is looked up first.
    assert provider.payments()[payment.id]["pages"] == (2 if (name, mood) == ("midtrans", "lost") else 1)


def test_a_provider_that_refuses_is_not_asked_again_by_itself(name: str, till: Till, provider: FakeProvider) -> None:
    till.connect(name)
    order = till.order()
    provider.moods(create="refuse")
    answer = till.buyer.post(f"/api/orders/{order}/payment")
    assert answer.status_code == 409 and "provider refused this payment" in answer.text, answer.text
    assert till.view(order)["status"] == "failed" and till.view(order)["problem"] == "it is refused"
    provider.fine()
    assert till.begin(order)["status"] == "pending" and len(till.payments(order)) == 2


def test_two_who_ask_at_once_make_one_payment(name: str, till: Till, provider: FakeProvider) -> None:
    till.connect(name)
    order = till.order()
    provider.moods(create="hold")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(till.buyer.post, f"/api/orders/{order}/payment")
        until(lambda: bool(till.payments(order)))
        with till.server.as_(f"user:{till.buyer_id}") as same:
            second = same.post(f"/api/orders/{order}/payment")
        assert second.status_code == 409 and "just being made" in second.text
        provider.fine()
        assert first.result().status_code == 200
    assert len(till.payments(order)) == 1


def test_a_provider_that_died_is_asked_when_it_is_back(name: str, till: Till, provider: FakeProvider) -> None:
    order, payment = till.begun(name)
    provider.pay(payment, 150_000)
    provider.kill()
    till.check_now(order)
    until(lambda: till.payments(order)[0].num_checks == 1)
    assert till.row(order).state == "accepted"
    provider.start()
    till.check_now(order)
    until(lambda: till.row(order).state == "paid")


def test_a_page_whose_provider_was_left_is_not_shown_as_new(name: str, till: Till, provider: FakeProvider) -> None:
    till.connect(name)
    order = till.order()
    assert till.change(provider=None).status_code == 200
    answer = till.buyer.post(f"/api/orders/{order}/payment")
    assert answer.status_code == 409 and "takes no payments by a provider" in answer.text


def test_keys_that_are_wrong_are_the_shops_problem(name: str, till: Till, provider: FakeProvider) -> None:
    keys = {"midtrans": {"server_key": "SB-Mid-server-wrong"}}
    if name == "xendit":
        keys = {"xendit": {"secret_key": "xnd_wrong_key", "callback_token": "some-token"}}
    till.change(provider={"provider": name, "environment": "sandbox", **keys})
    order = till.order()
    answer: httpx2.Response = till.buyer.post(f"/api/orders/{order}/payment")
    assert answer.status_code == 409 and "Ask the shop" in answer.text
    assert "wrong" not in answer.text and till.view(order)["problem"]
