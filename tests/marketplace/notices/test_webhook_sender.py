"""Calls of webhooks, to a real program that is slow, errs, redirects and dies."""

import asyncio
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import select, update

from tests.marketplace.database_failures import wait_until_true
from tests.marketplace.notices.dialling_home import dialler_to
from tests.marketplace.notices.moved_time import MovedTime
from tests.marketplace.notices.receiver import Receiver, running_receiver
from tests.marketplace.notices.test_notice_mails import sending_process
from tests.marketplace.shop import Shop
from tests.serving import REPOSITORY
from tis.errors import BadRequest, Conflict
from tis.marketplace.kit.news import News
from tis.marketplace.kit.notice_deliveries import WebhookRules
from tis.marketplace.kit.notice_outbox import notify
from tis.marketplace.kit.principal import Principal
from tis.marketplace.notices import webhooks
from tis.marketplace.notices.webhook_http import WebhookPoster
from tis.marketplace.notices.webhook_queue import TAKEN_FOR, WebhookQueue
from tis.marketplace.notices.webhook_sender import WebhookSender
from tis.marketplace.tables import Notice, NoticeDelivery, Webhook

RULES = WebhookRules(allow_http=True, max_per_supplier=50)
OWNER = Principal("user:1")
SECONDS = 1.0  # of a call


class Bell:
    """A shop with webhooks, and a server that calls them, on the database of `shop`."""

    def __init__(self, shop: Shop, receiver: Receiver) -> None:
        self.shop, self.receiver, self.market = shop, receiver, shop.market
        self.time = MovedTime()

    @contextmanager
    def sending(self, seconds: float = SECONDS, rules: WebhookRules = RULES) -> Iterator[WebhookSender]:
        market = self.market
        poster = WebhookPoster(dialler_to(self.receiver.port), seconds=seconds, allow_http=rules.allow_http)
        queue = WebhookQueue(market.reading, market.writing, lambda: market.signer, rules, self.time)
        sender = WebhookSender(queue, poster, interval_seconds=0.02)
        sender.start()
        try:
            yield sender
        finally:
            sender.stop()

    def webhook(self, path: str, groups: Sequence[str] = ("orders",), host: str = "till.example") -> int:
        with self.market.writing() as session:
            url = f"http://{host}{path}"
            return webhooks.create_webhook(session, OWNER, self.shop.id, url, groups, RULES).id

    def tell(self, kind: str = "order.placed", times: int = 1) -> None:
        for number in range(times):
            with self.market.writing() as session:
                notify(session, [News(kind, {"order_id": f"o{number}"}, "user:1", self.shop.id)])

    def row(self, webhook_id: int) -> Webhook:
        with self.market.reading() as session:
            row = session.get_one(Webhook, webhook_id)
            session.expunge(row)
            return row

    def secret(self, webhook_id: int) -> str:
        return webhooks.secret_of(self.market.signer, self.row(webhook_id).seed)

    def deliveries(self, webhook_id: int) -> list[NoticeDelivery]:
        with self.market.reading() as session:
            found = session.scalars(
                select(NoticeDelivery).where(NoticeDelivery.webhook_id == webhook_id).order_by(NoticeDelivery.id)
            ).all()
            session.expunge_all()
            return list(found)

    def statuses(self, webhook_id: int) -> list[str]:
        return [one.status for one in self.deliveries(webhook_id)]

    def wait_for(self, webhook_id: int, *statuses: str) -> None:
        wait_until_true(lambda: self.statuses(webhook_id) == list(statuses))

    def settle(self, webhook_id: int) -> None:
        """Until nothing can be sent there at this time."""
        wait_until_true(lambda: self._is_settled(webhook_id))

    def _is_settled(self, webhook_id: int) -> bool:
        row, moment = self.row(webhook_id), self.time()
        if row.taken_until is not None:
            return False
        is_paused = row.status == "off" or (row.paused_until is not None and row.paused_until > moment)
        due = [one for one in self.deliveries(webhook_id) if one.status == "waiting" and one.due_at <= moment]
        return is_paused or not due

    def change(self, webhook_id: int, **values: Any) -> None:
        with self.market.writing() as session:
            row = webhooks.find_webhook(session, self.shop.id, webhook_id, locked=True)
            webhooks.change_webhook(session, OWNER, row, values, RULES)


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with running_receiver(tmp_path) as receiver:
        yield receiver


@pytest.fixture
def bell(strict_shop: Shop, receiver: Receiver) -> Iterator[Bell]:
    with strict_shop.market.reading():
        pass  # which makes its key
    bell = Bell(strict_shop, receiver)
    yield bell
    with bell.market.writing() as session:
        session.execute(update(Webhook).values(status="off"))


def verify_of_the_docs() -> Callable[[str, dict[str, str], bytes], bool]:
    page = (REPOSITORY / "docs" / "notices.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert code
    names: dict[str, Any] = {}
    exec(code[1], names)
    return cast("Callable[[str, dict[str, str], bytes], bool]", names["verify"])


def test_a_call_is_signed_as_the_documents_say(bell: Bell) -> None:
    webhook = bell.webhook("/ok")
    bell.tell()
    with bell.sending():
        bell.wait_for(webhook, "sent")
    [call] = bell.receiver.calls("/ok")
    headers, body, verify = call["headers"], call["body"].encode(), verify_of_the_docs()
    assert verify(bell.secret(webhook), headers, body)
    assert not verify(bell.secret(webhook), headers, body + b" ")
    assert not verify(bell.secret(webhook), {**headers, "webhook-id": "msg_x"}, body)
    old = str(int(headers["webhook-timestamp"]) - 301)
    assert not verify(bell.secret(webhook), {**headers, "webhook-timestamp": old}, body)
    [said] = bell.receiver.bodies("/ok")
    assert said.pop("timestamp").endswith("Z") and headers["content-type"] == "application/json"
    assert said == {"type": "order.placed", "number": 1, "data": {"order_id": "o0", "role": "shop"}}
    assert headers["host"] == "till.example" and (bell.row(webhook).last_result) == "200"


def test_news_come_in_their_order_and_only_of_the_groups_that_were_named(bell: Bell) -> None:
    orders, stock = bell.webhook("/orders"), bell.webhook("/stock", ["stock", "reviews"])
    for _ in range(30):
        bell.tell("order.placed")
    bell.tell("stock.low")
    with bell.sending():
        bell.wait_for(orders, *["sent"] * 30)
        bell.wait_for(stock, "sent")
    assert [one["number"] for one in bell.receiver.bodies("/orders")] == list(range(1, 31))
    assert [one["type"] for one in bell.receiver.bodies("/stock")] == ["stock.low"]


def test_after_a_new_secret_both_verify_for_a_day(bell: Bell) -> None:
    webhook = bell.webhook("/ok")
    first = bell.secret(webhook)
    with bell.market.writing() as session:
        webhooks.renew_secret(session, OWNER, webhooks.find_webhook(session, bell.shop.id, webhook))
    bell.tell()
    with bell.sending():
        bell.wait_for(webhook, "sent")
        bell.time.move(days=1)
        bell.tell()
        bell.wait_for(webhook, "sent", "sent")
    new, later = bell.receiver.calls("/ok")
    verify = verify_of_the_docs()
    assert first != bell.secret(webhook)
    assert all(verify(one, new["headers"], new["body"].encode()) for one in (first, bell.secret(webhook)))
    assert [one["headers"]["webhook-signature"].count("v1,") for one in (new, later)] == [2, 1]


@pytest.mark.long
def test_a_slow_program_and_a_dead_one_do_not_delay_others(bell: Bell) -> None:
    slow = [bell.webhook(f"/hang/{number}") for number in range(40)]
    quick = bell.webhook("/ok")
    bell.tell(times=3)
    with bell.sending(seconds=30):
        bell.wait_for(quick, *["sent"] * 3)
        assert {status for one in slow for status in bell.statuses(one)} == {"waiting"}
        with ExitStack() as others:
            others.enter_context(bell.sending(seconds=30))
            bell.tell()
            bell.wait_for(quick, *["sent"] * 4)
        bell.receiver.kill()


@pytest.mark.parametrize(
    ("path", "result"),
    [
        ("/status/503", "503"),
        ("/status/404", "404"),
        ("/redirect", "307"),
        ("/hang", "timeout"),
        ("/status/204", "204"),
        ("/big", "200"),
    ],
)
def test_what_a_program_answers_is_noted(bell: Bell, path: str, result: str) -> None:
    webhook = bell.webhook(path)
    bell.tell()
    with bell.sending():
        wait_until_true(lambda: bell.row(webhook).last_result is not None)
    [delivery] = bell.deliveries(webhook)
    is_success = result.startswith("2")
    assert (delivery.result, delivery.status) == (result, "sent" if is_success else "waiting")
    assert bell.receiver.calls("/stolen") == [], "a redirect is not followed"


def test_a_call_that_failed_comes_again_with_the_same_id_and_others_go_first(bell: Bell) -> None:
    webhook = bell.webhook("/one/1")
    bell.tell(times=3)
    with bell.sending():
        for _ in range(5):
            bell.settle(webhook)
            bell.time.move(minutes=2)
        bell.wait_for(webhook, "sent", "sent", "sent")
    numbers = [one["number"] for one in bell.receiver.bodies("/one/1")]
    assert sorted(set(numbers)) == [1, 2, 3] and numbers[0] == 1
    assert len(set(bell.receiver.events("/one/1"))) == 3


def test_a_program_that_asks_for_a_pause_gets_it(bell: Bell) -> None:
    webhook = bell.webhook("/rest/600")
    bell.tell()
    with bell.sending():
        wait_until_true(lambda: bell.row(webhook).num_failures == 1)
    row, [delivery] = bell.row(webhook), bell.deliveries(webhook)
    assert row.last_at and row.paused_until and row.paused_until - row.last_at == timedelta(minutes=10)
    assert delivery.due_at - row.last_at >= timedelta(minutes=10)


def test_what_fails_for_a_day_is_on_the_dead_list_and_can_be_sent_again(bell: Bell) -> None:
    webhook = bell.webhook("/status/500")
    bell.tell(times=2)
    with bell.sending():
        for _ in range(26):
            bell.settle(webhook)
            bell.time.move(hours=1)
        bell.wait_for(webhook, "dead", "dead")
        assert bell.row(webhook).status == "on" and len(bell.receiver.calls()) > 5
        bell.change(webhook, url="http://till.example/mended")
        with bell.market.writing() as session:
            assert webhooks.send_again(session, webhooks.find_webhook(session, bell.shop.id, webhook), None) == 2
        bell.time.move(hours=1)
        bell.wait_for(webhook, "sent", "sent")
    assert bell.receiver.events("/mended") == list(dict.fromkeys(bell.receiver.events("/status/500")))


def test_410_turns_a_webhook_off_and_the_shop_is_told(bell: Bell) -> None:
    webhook = bell.webhook("/status/410")
    bell.tell(times=2)
    with bell.sending():
        wait_until_true(lambda: bell.row(webhook).status == "off")
    assert bell.row(webhook).off_reason == "gone" and bell.statuses(webhook) == ["dead", "dead"]
    with bell.market.reading() as session:
        own = select(Notice).where(Notice.account == f"supplier:{bell.shop.id}")
        told = session.scalars(own.order_by(Notice.number)).all()
        assert told[-1].type == "webhook.off" and told[-1].data["webhook_id"] == webhook
    bell.tell()
    assert len(bell.statuses(webhook)) == 2, "nothing waits for one that is off"
    with bell.market.writing() as session, pytest.raises(Conflict, match="is off"):
        webhooks.send_again(session, webhooks.find_webhook(session, bell.shop.id, webhook), None)


def test_a_webhook_that_fails_for_days_is_turned_off_and_starts_anew_when_it_is_turned_on(bell: Bell) -> None:
    webhook = bell.webhook("/status/500")
    with bell.sending():
        for _ in range(20):
            bell.tell()
            bell.settle(webhook)
            bell.time.move(hours=4)
            if bell.row(webhook).status == "off":
                break
        wait_until_true(lambda: bell.row(webhook).status == "off")
    assert bell.row(webhook).off_reason == "failing" and set(bell.statuses(webhook)) == {"dead"}
    bell.change(webhook, is_on=True)
    row = bell.row(webhook)
    assert (row.status, row.off_reason, row.num_failures, row.failing_since) == ("on", None, 0, None)


def test_what_waited_while_no_server_ran_is_sent_however_late(bell: Bell) -> None:
    webhook = bell.webhook("/ok")
    bell.tell(times=25)
    bell.time.move(days=3)
    with bell.sending():
        bell.wait_for(webhook, *["sent"] * 25)


def test_only_so_many_wait_for_a_webhook(bell: Bell) -> None:
    webhook = bell.webhook("/status/500")
    bell.tell(times=15)
    with bell.sending(rules=WebhookRules(allow_http=True, max_waiting=10)):
        wait_until_true(lambda: bell.statuses(webhook) == ["dead"] * 5 + ["waiting"] * 10)


@pytest.mark.parametrize(
    ("host", "scheme", "result"),
    [("inside.example", "http", "address not reached"), ("till.example", "https", "no valid certificate")],
)
def test_addresses_inside_and_false_certificates_are_not_called(
    bell: Bell, host: str, scheme: str, result: str
) -> None:
    webhook = bell.webhook("/ok", host=host)
    bell.change(webhook, url=f"{scheme}://{host}/ok")
    bell.tell()
    with bell.sending():
        wait_until_true(lambda: bell.row(webhook).last_result is not None)
    assert bell.row(webhook).last_result == result and bell.receiver.calls() == []


@pytest.mark.parametrize(
    "url",
    [
        "http://till.example/a",
        "https://127.1/",
        "https://2130706433/",
        "https://user@till.example/",
        "https://till.example:22/",
        "ftp://till.example/",
        "https://till.example\\@127.0.0.1/",
        "file:///etc/passwd",
        "https://",
        "x",
    ],
)
def test_only_plain_https_addresses_are_taken(bell: Bell, url: str) -> None:
    with bell.market.writing() as session, pytest.raises(BadRequest, match="begins with https://"):
        webhooks.create_webhook(session, OWNER, bell.shop.id, url, ["orders"], WebhookRules())


def test_an_address_inside_is_refused_whatever_its_name_says_later(receiver: Receiver) -> None:
    poster = WebhookPoster(dialler_to(receiver.port), seconds=5, allow_http=True)
    outcome = asyncio.run(poster.post("http://127.0.0.1/ok", {}, b"{}"))
    assert outcome.result == "200", "the test's resolver says that it is public"
    strict = asyncio.run(poster.post("http://inside.example/ok", {}, b"{}"))
    assert strict.result == "address not reached" and len(receiver.calls()) == 1


def test_two_servers_call_each_once(bell: Bell) -> None:
    called = [bell.webhook(f"/two/{number}") for number in range(6)]
    bell.tell(times=5)
    with bell.sending(), bell.sending():
        for webhook in called:
            bell.wait_for(webhook, *["sent"] * 5)
    for number in range(6):
        assert [one["number"] for one in bell.receiver.bodies(f"/two/{number}")] == [1, 2, 3, 4, 5]


@pytest.mark.long
def test_a_call_whose_server_was_killed_comes_again_with_the_same_id(bell: Bell, strict_database_url: str) -> None:
    webhook = bell.webhook("/hang")
    bell.tell(times=2)
    with sending_process(strict_database_url, bell.receiver.port, 9) as server:
        wait_until_true(lambda: len(bell.receiver.calls("/hang")) == 1)
        _kill(server)
    assert bell.statuses(webhook) == ["waiting", "waiting"]
    bell.change(webhook, url="http://till.example/ok")
    with bell.sending():
        bell.time.move(seconds=TAKEN_FOR.total_seconds() + 1)
        bell.wait_for(webhook, "sent", "sent")
    assert bell.receiver.events("/hang") == bell.receiver.events("/ok")[:1]
    assert [one["number"] for one in bell.receiver.bodies("/ok")] == [1, 2]


@pytest.mark.long
def test_a_program_that_dies_gets_the_rest_when_it_is_back(bell: Bell, tmp_path: Path) -> None:
    webhook = bell.webhook("/ok")
    bell.tell()
    with bell.sending():
        bell.wait_for(webhook, "sent")
    bell.receiver.kill()
    bell.tell(times=2)
    with bell.sending():
        wait_until_true(lambda: bell.row(webhook).num_failures == 1)
    with running_receiver(tmp_path) as again:
        back = Bell(bell.shop, again)
        back.time = bell.time
        back.time.move(minutes=3)
        with back.sending():
            back.wait_for(webhook, "sent", "sent", "sent")
        assert [one["number"] for one in again.bodies("/ok")] == [1, 2, 3]


def _kill(server: "subprocess.Popen[str]") -> None:
    server.kill()
    server.wait()
