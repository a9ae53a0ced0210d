"""Money that goes back: never more than is owed, and once, whatever the provider does."""

import pytest
from sqlalchemy import select, update

from tests.marketplace.payments.provider_process import FakeProvider
from tests.marketplace.payments.till import Till, until
from tis.marketplace.columns import now
from tis.marketplace.tables import Payment, PaymentRefund

BOTH = pytest.mark.parametrize("name", ["midtrans", "xendit"])


def paid_and_owed(name: str, till: Till, provider: FakeProvider) -> str:
    """An order that was paid, and that the shop cancelled."""
    order, payment = till.begun(name)
    provider.pay(payment, 150_000)
    provider.send(name, till.callback_url(name), payment, "settlement")
    until(lambda: till.row(order).state == "paid")
    assert till.shop.post(f"/api/orders/{order}/cancel", json={"reason": "Sold out"}).status_code == 200
    assert till.row(order).refund_due == 150_000
    return order


def ask(till: Till, order: str, amount: int, key: str | None = None) -> "tuple[int, dict[str, object]]":
    headers = {"Idempotency-Key": key} if key else {}
    body = {"amount": amount, "reason": "One fan was broken"}
    answer = till.shop.post(f"/api/orders/{order}/refunds", json=body, headers=headers)
    return answer.status_code, dict(answer.json())


@BOTH
def test_what_is_owed_goes_back_in_parts_and_no_more(name: str, till: Till, provider: FakeProvider) -> None:
    order = paid_and_owed(name, till, provider)
    before = len(provider.refunds())
    status, said = ask(till, order, 50_000)
    assert (status, said["status"], said["by_hand"]) == (200, "done", False)
    assert till.row(order).refund_due == 100_000 and till.payments(order)[0].refunded == 50_000
    assert ask(till, order, 100_001)[0] == 409
    assert ask(till, order, 100_000)[0] == 200
    assert ask(till, order, 1)[0] == 409
    assert till.row(order).refund_due == 0 and till.payments(order)[0].refunded == 150_000
    assert [one["amount"] for one in provider.refunds()[before:]] == [50_000, 100_000]
    assert [one["amount"] for one in till.view(order)["refunds"]] == [100_000, 50_000]
    assert till.news(f"user:{till.buyer_id}", order)[-1] == "payment.refunded"


@BOTH
def test_a_repeated_request_gives_back_once(name: str, till: Till, provider: FakeProvider) -> None:
    order = paid_and_owed(name, till, provider)
    before = len(provider.refunds())
    first, second = (ask(till, order, 50_000, key=f"refund of {order}") for _ in range(2))
    assert first[0] == second[0] == 200 and first[1]["id"] == second[1]["id"]
    assert len(provider.refunds()) == before + 1 and till.row(order).refund_due == 100_000


@BOTH
@pytest.mark.parametrize("mood", ["error", "lost"])
def test_a_refund_without_an_answer_is_looked_up_and_made_once(
    name: str, mood: str, till: Till, provider: FakeProvider
) -> None:
    order = paid_and_owed(name, till, provider)
    before = len(provider.refunds())
    provider.moods(refund=mood)
    status, said = ask(till, order, 150_000)
    assert (status, said["status"]) == (200, "asked") and till.row(order).refund_due == 150_000
    assert ask(till, order, 1)[0] == 409  # all of it is on its way
    provider.fine()
    check_refunds(till, order)
    until(lambda: till.row(order).refund_due == 0)
    assert len(provider.refunds()) == before + 1


@BOTH
def test_a_refund_that_is_refused_leaves_the_debt(name: str, till: Till, provider: FakeProvider) -> None:
    order = paid_and_owed(name, till, provider)
    provider.moods(refund="refuse")
    status, said = ask(till, order, 150_000)
    assert (status, said["status"], said["problem"]) == (200, "failed", "it is refused")
    assert till.row(order).refund_due == 150_000
    provider.fine()
    assert ask(till, order, 150_000)[1]["status"] == "done"


@pytest.mark.parametrize(("state", "ends"), [("SUCCEEDED", "done"), ("FAILED", "failed")])
def test_a_refund_that_takes_days_ends_when_xendit_says_so(
    state: str, ends: str, till: Till, provider: FakeProvider
) -> None:
    order = paid_and_owed("xendit", till, provider)
    before = len(provider.refunds())
    provider.moods(refund_state="PENDING")
    assert ask(till, order, 150_000)[1]["status"] == "asked"
    provider.moods(refund_state=state)
    check_refunds(till, order)
    until(lambda: till.view(order)["refunds"][0]["status"] == ends)
    assert till.row(order).refund_due == (0 if ends == "done" else 150_000)
    assert len(provider.refunds()) == before + 1
    assert till.view(order)["refunds"][0]["problem"] == (None if ends == "done" else "INSUFFICIENT_BALANCE")


@BOTH
def test_another_amount_than_asked_can_be_given_back(name: str, till: Till, provider: FakeProvider) -> None:
    order, payment = till.begun(name)
    provider.pay(payment, 99_000)
    provider.send(name, till.callback_url(name), payment, "settlement")
    until(lambda: till.payments(order)[0].status == "differs")
    assert till.row(order).refund_due == 99_000
    assert ask(till, order, 99_001)[0] == 409
    assert ask(till, order, 99_000)[1]["status"] == "done"
    assert till.payments(order)[0].refunded == 99_000 and till.row(order).refund_due == 0


def test_what_came_by_hand_goes_back_by_hand_and_is_noted(till: Till) -> None:
    order = till.order("transfer", state="cancelled", paid_by_hand=150_000, refund_due=150_000)
    status, said = ask(till, order, 150_000)
    assert (status, said["status"], said["by_hand"]) == (200, "done", True)
    assert till.row(order).refund_due == 0


def test_what_came_by_hand_for_an_order_of_a_provider_goes_back_by_hand(till: Till) -> None:
    till.connect("xendit")
    order = till.order("provider")
    assert till.shop.post(f"/api/orders/{order}/paid", json={}).status_code == 200
    assert till.shop.post(f"/api/orders/{order}/cancel", json={"reason": "Sold out"}).status_code == 200
    status, said = ask(till, order, 150_000)
    assert (status, said.get("by_hand"), said.get("status")) == (200, True, "done")
    assert till.row(order).refund_due == 0 and ask(till, order, 1)[0] == 409


def test_money_that_came_twice_for_a_cancelled_order_goes_back_twice(till: Till, provider: FakeProvider) -> None:
    order, first = till.begun("xendit")
    with till.server.market.writing() as session:
        session.execute(update(Payment).where(Payment.id == first).values(expires_at=now()))
    till.begin(order)
    [second] = {one.id for one in till.payments(order)} - {first}
    for payment in (first, second):
        provider.pay(payment, 150_000)
        provider.send("xendit", till.callback_url("xendit"), payment, "settlement")
    until(lambda: till.row(order).refund_due == 150_000)
    assert till.shop.post(f"/api/orders/{order}/cancel", json={"reason": "Sold out"}).status_code == 200
    assert till.view(order)["refund_due"] == 300_000
    assert [ask(till, order, 150_000)[0] for _ in range(3)] == [200, 200, 409]
    assert [one.refunded for one in till.payments(order)] == [150_000, 150_000] and till.row(order).refund_due == 0


def test_money_by_hand_and_by_a_provider_for_one_cancelled_order_goes_back_both(
    till: Till, provider: FakeProvider
) -> None:
    order, payment = till.begun("xendit")
    assert till.shop.post(f"/api/orders/{order}/paid", json={}).status_code == 200
    provider.pay(payment, 150_000)
    provider.send("xendit", till.callback_url("xendit"), payment, "settlement")
    until(lambda: till.row(order).refund_due == 150_000)
    assert till.shop.post(f"/api/orders/{order}/cancel", json={"reason": "Sold out"}).status_code == 200
    owed = [till.view(order)["refund_due"]]
    assert ask(till, order, 200_000) == (
        409,
        {"detail": "No payment of this order has so much left: give it back in parts."},
    )
    by_hand = []
    for amount in (150_000, 100_000, 50_000):
        status, said = ask(till, order, amount)
        assert (status, said["status"]) == (200, "done")
        by_hand.append(said["by_hand"])
        owed.append(till.view(order)["refund_due"])
    assert owed == [300_000, 150_000, 50_000, 0] and by_hand == [False, True, True]
    assert ask(till, order, 1)[0] == 409


def test_what_a_provider_took_of_another_amount_counts_where_the_shop_got_the_rest(
    till: Till, provider: FakeProvider
) -> None:
    order, payment = till.begun("xendit")
    provider.pay(payment, 99_000)
    provider.send("xendit", till.callback_url("xendit"), payment, "settlement")
    until(lambda: till.payments(order)[0].status == "differs")
    assert till.shop.post(f"/api/orders/{order}/paid", json={}).status_code == 200
    assert (till.row(order).paid_by_hand, till.row(order).refund_due) == (51_000, 0)
    assert till.shop.post(f"/api/orders/{order}/cancel", json={"reason": "Sold out"}).status_code == 200
    parts = [(ask(till, order, amount), till.row(order).refund_due) for amount in (99_000, 51_000)]
    assert [(said["by_hand"], left) for (_, said), left in parts] == [(False, 51_000), (True, 0)]


def test_a_copy_of_the_own_data_has_what_came_back(till: Till) -> None:
    order = till.order("transfer", state="cancelled", paid_by_hand=150_000, refund_due=150_000)
    assert ask(till, order, 50_000)[0] == 200
    [copied] = till.buyer.get("/api/users/me/export").json()["order_refunds"]
    assert (copied["order_id"], copied["amount"], copied["reason"]) == (order, 50_000, "One fan was broken")
    assert "created_by" not in copied


def test_only_the_shop_gives_back(till: Till) -> None:
    order = till.order("transfer", state="cancelled", paid_by_hand=150_000, refund_due=150_000)
    body = {"amount": 150_000, "reason": "mine"}
    assert till.buyer.post(f"/api/orders/{order}/refunds", json=body).status_code == 403
    assert till.stranger.post(f"/api/orders/{order}/refunds", json=body).status_code == 404
    assert till.row(order).refund_due == 150_000
    for wrong in ({"amount": 0, "reason": "x"}, {"amount": -1, "reason": "x"}, {"amount": 1}, {"amount": 1.5}):
        assert till.shop.post(f"/api/orders/{order}/refunds", json=wrong).status_code == 422


def check_refunds(till: Till, order: str) -> None:
    with till.server.market.writing() as session:
        session.execute(update(PaymentRefund).where(PaymentRefund.order_id == order).values(check_at=now()))
        assert session.scalar(select(PaymentRefund.id).where(PaymentRefund.order_id == order))
    till.server.market.wake_payment_checks()
