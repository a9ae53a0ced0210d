"""The server is killed while the provider works: the payment is found again, and nothing is made or paid twice."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import select, update

from tests.faults.mortal_server import MortalServer, running
from tests.marketplace.conftest import SECRET
from tests.marketplace.market_server import MarketServer
from tests.marketplace.payments.provider_process import FakeProvider
from tests.marketplace.payments.till import Till, until
from tests.marketplace.shop import Shop
from tis.marketplace.columns import now
from tis.marketplace.tables import Payment, PaymentRefund

pytestmark = [
    pytest.mark.slow,
    pytest.mark.anyio,
    pytest.mark.long,
    pytest.mark.parametrize("name", ["midtrans", "xendit"]),
]


@dataclass(frozen=True)
class TokenServer(MarketServer):
    """With real tokens: the server is a process."""

    shop: Shop

    def as_(self, account: str | None) -> httpx2.Client:
        headers = self.shop.auth_headers(account) if account else {}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=60)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def variables(database_url: str, provider: FakeProvider) -> dict[str, str]:
    urls = {name.upper(): str(value) for name, value in provider.settings.items()}
    return {**urls, "PAYMENT_PROVIDER_SECONDS": "30", "DATABASE_URL": database_url, "JWT_SECRET_KEY": SECRET}


async def killed_while_it_waits(server: MortalServer, request: "Future[httpx2.Response]") -> None:
    server.kill()
    assert isinstance(request.exception(60), httpx2.TransportError)
    await server.start()


async def test_a_payment_that_was_being_made_is_made_once(
    name: str, shop: Shop, database_url: str, provider: FakeProvider, tmp_path: Path, pool: ThreadPoolExecutor
) -> None:
    provider.fine()
    async with running(tmp_path, **variables(database_url, provider)) as server:
        with Till(TokenServer(server.url, shop.market, shop)) as till:
            till.connect(name)
            order = till.order()
            provider.moods(create="hold")
            asked = pool.submit(till.buyer.post, f"/api/orders/{order}/payment")
            until(lambda: any(one.id in provider.payments() for one in till.payments(order)))
            await killed_while_it_waits(server, asked)
            provider.fine()
            assert till.view(order)["status"] == "creating"
            again = till.buyer.post(f"/api/orders/{order}/payment")
            assert again.status_code == 409, again.text  # as long as somebody might still wait for the provider
            let_time_pass(till, order)
            if name == "xendit":  # it knows invoices from the beginning: nobody has to ask again
                until(lambda: till.view(order)["status"] == "pending")
            assert till.begin(order)["status"] == "pending"
            [payment] = till.payments(order)
            assert provider.payments()[payment.id]["pages"] == (2 if name == "midtrans" else 1)
            provider.pay(payment.id, 150_000)
            assert provider.send(name, till.callback_url(name), payment.id, "settlement", "settlement") == [200, 200]
            until(lambda: till.row(order).state == "paid")
            assert till.row(order).refund_due == 0 and till.news(f"user:{till.buyer_id}", order) == ["order.paid"]


async def test_a_callback_is_not_lost_with_the_server(
    name: str, shop: Shop, database_url: str, provider: FakeProvider, tmp_path: Path
) -> None:
    """It was answered, and the provider held its answer about the payment: the next server asks again."""
    provider.fine()
    async with running(tmp_path, **variables(database_url, provider)) as server:
        with Till(TokenServer(server.url, shop.market, shop)) as till:
            order, payment = till.begun(name)
            provider.pay(payment, 150_000)
            provider.moods(status="hold")
            assert provider.send(name, till.callback_url(name), payment, "settlement") == [200]
            until(lambda: till.payments(order)[0].num_checks == 1)
            server.kill()
            provider.fine()
            await server.start()
            assert till.row(order).state == "accepted"
            let_time_pass(till, order)
            until(lambda: till.row(order).state == "paid")


async def test_a_refund_that_was_being_made_is_made_once(
    name: str, shop: Shop, database_url: str, provider: FakeProvider, tmp_path: Path, pool: ThreadPoolExecutor
) -> None:
    provider.fine()
    async with running(tmp_path, **variables(database_url, provider)) as server:
        with Till(TokenServer(server.url, shop.market, shop)) as till:
            order, payment = till.begun(name)
            provider.pay(payment, 150_000)
            provider.send(name, till.callback_url(name), payment, "settlement")
            until(lambda: till.row(order).state == "paid")
            assert till.shop.post(f"/api/orders/{order}/cancel", json={"reason": "Rusak"}).status_code == 200
            num_before = len(provider.refunds())
            provider.moods(refund="hold")
            body = {"amount": 150_000, "reason": "Rusak"}
            asked = pool.submit(till.shop.post, f"/api/orders/{order}/refunds", json=body)
            until(lambda: len(provider.refunds()) == num_before + 1)
            await killed_while_it_waits(server, asked)
            provider.fine()
            assert till.shop.post(f"/api/orders/{order}/refunds", json=body).status_code == 409
            let_time_pass(till, order)
            until(lambda: till.row(order).refund_due == 0)
            assert len(provider.refunds()) == num_before + 1 and till.payments(order)[0].refunded == 150_000


def let_time_pass(till: Till, order: str) -> None:
    """What was due in half a minute is due now."""
    past = now() - timedelta(seconds=1)
    with till.server.market.writing() as session:
        session.execute(update(Payment).where(Payment.order_id == order).values(check_at=past, busy_until=past))
        refunds = update(PaymentRefund).where(PaymentRefund.order_id == order, PaymentRefund.status == "asked")
        session.execute(refunds.values(check_at=past))
        assert session.scalar(select(Payment.id).where(Payment.order_id == order))
