"""News by mail: to confirmed addresses, once, in one mail for all that is due, after failures and kills."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select, update

from tests.marketplace.database_failures import wait_until_true
from tests.marketplace.mailbox import text_of
from tests.marketplace.notices.moved_time import MovedTime
from tests.marketplace.shop import Shop
from tests.marketplace.smtp_server import SmtpServer, smtp_server
from tests.serving import REPOSITORY
from tis.marketplace.columns import now
from tis.marketplace.kit.news import News
from tis.marketplace.kit.notice_outbox import forget_notices, notify, store_notices
from tis.marketplace.mail import SmtpMailer
from tis.marketplace.notices.mail_sender import TAKEN_FOR, NoticeMailSender
from tis.marketplace.notices.preferences import save_preferences
from tis.marketplace.tables import NoticeDelivery, Supplier, User

PUBLIC_URL = "https://market.example"


class Post:
    """What a server with a mailer does, on the database of `shop`."""

    def __init__(self, shop: Shop, smtp: SmtpServer) -> None:
        self.shop, self.smtp, self.market = shop, smtp, shop.market
        self.time = MovedTime()
        self.mailer = SmtpMailer("127.0.0.1", smtp.port, "noreply@shop.example", security="none")
        self.sender = self.new_sender()

    def new_sender(self) -> NoticeMailSender:
        market = self.market
        with market.reading():
            pass  # which makes its key
        return NoticeMailSender(
            market.reading, market.writing, lambda: market.signer, self.mailer, PUBLIC_URL, clock=self.time
        )

    def buyer(self, **values: Any) -> str:
        """An account with a mailbox."""
        email = f"{uuid4().hex}@example.com"
        confirmed = {"email": email, "email_key": email, "email_confirmed_at": now()}
        return f"user:{self.shop.user(name='Dewi Anggraini', **{**confirmed, **values})}"

    def tell(self, account: str, *types: str, **data: Any) -> None:
        """As the transaction of an order would, on a server that sends mails."""
        with self.market.writing() as session:
            notify(session, [News(one, {"order_id": "o", **data}, account) for one in types or ("order.placed",)])
            store_notices(session, is_open=False, by_mail=True)

    def prefer(self, account: str, **values: Any) -> None:
        with self.market.writing() as session:
            save_preferences(session, account, values)

    def send(self) -> None:
        """All that is due now."""
        while self.sender.step():
            pass

    def mails_to(self, account: str) -> list[EmailMessage]:
        with self.market.reading() as session:
            email = session.get_one(User, int(account.partition(":")[2])).email
        mails = [message_from_bytes(one, _class=EmailMessage, policy=default) for one in self.smtp.received]
        return [one for one in mails if one["To"] == email]

    def deliveries(self, account: str) -> list[tuple[str, int, str | None]]:
        with self.market.reading() as session:
            rows = select(NoticeDelivery).where(NoticeDelivery.account == account).order_by(NoticeDelivery.id)
            return [(one.status, one.tries, one.result) for one in session.scalars(rows)]


@pytest.fixture
def post(strict_shop: Shop) -> Iterator[Post]:
    with smtp_server() as smtp:
        post = Post(strict_shop, smtp)
        yield post
        with post.market.writing() as session:
            session.execute(update(NoticeDelivery).values(status="sent"))


def test_an_order_is_told_to_a_confirmed_mailbox_without_a_name(post: Post) -> None:
    buyer = post.buyer()
    post.tell(buyer, number="K7Q2-9XMA")
    post.send()
    [mail] = post.mails_to(buyer)
    text = _text(mail)
    assert mail["Subject"] == "Pesanan Anda terkirim ke toko / Your order is placed"
    assert "Pesanan Anda terkirim ke toko: K7Q2-9XMA\nhttps://market.example/shop#/orders\n" in text
    assert "Your order is placed: K7Q2-9XMA" in text and " WIB\n" in text
    assert "Anggraini" not in mail.as_string() and post.deliveries(buyer) == [("sent", 1, "sent")]
    link = mail["List-Unsubscribe"].strip("<>")
    assert link.startswith("https://market.example/api/notices/unsubscribe?token=") and link in text
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"


def test_no_other_mailbox_gets_a_mail(post: Post) -> None:
    unconfirmed, without = post.buyer(email_confirmed_at=None), post.buyer(email=None, email_key=None)
    for account in (unconfirmed, without):
        post.tell(account)
    changed = post.buyer()
    post.tell(changed)
    with post.market.writing() as session:
        number = int(changed.partition(":")[2])
        session.execute(update(User).where(User.id == number).values(email_confirmed_at=None))
    post.send()
    assert post.smtp.received == [] and post.deliveries(unconfirmed) == post.deliveries(changed) == []


def test_holds_come_by_mail_only_to_those_who_want_them(post: Post) -> None:
    usual, eager = post.buyer(), post.buyer()
    post.prefer(eager, mail=["holds"], language="en")
    for account in (usual, eager):
        post.tell(
            account, "hold.accepted", "order.placed", product_id=post.shop.product(name="Kipas https://x.example")
        )
    post.send()
    assert [one["Subject"].partition(" /")[0] for one in post.mails_to(usual)] == ["Pesanan Anda terkirim ke toko"]
    [mail] = post.mails_to(eager)
    assert mail["Subject"] == "The shop accepted your reservation"
    assert "reservation: Kipas httpsxexample\n" in _text(mail), "the name of a product is no link"


def test_all_that_is_due_to_an_account_is_one_mail(post: Post) -> None:
    buyer, other = post.buyer(), post.buyer()
    for _ in range(3):
        post.tell(buyer, "order.placed", "order.accepted")
    post.tell(other)
    post.send()
    [mail] = post.mails_to(buyer)
    assert mail["Subject"] == "6 kabar dari pasar / 6 notices of the market"
    assert _text(mail).count("Toko menerima pesanan Anda") == 3 and len(post.mails_to(other)) == 1


def test_an_owner_whose_mailbox_is_that_of_the_shop_gets_one_mail(post: Post) -> None:
    shop = Shop(post.market)
    owner, helper = shop.editor(), shop.editor()
    email = f"{uuid4().hex}@example.com"
    with post.market.writing() as session:
        for row in (session.get_one(Supplier, shop.id), session.get_one(User, owner)):
            row.email, row.email_key, row.email_confirmed_at = email, email, now()
        other = session.get_one(User, helper)
        other.email = other.email_key = f"{uuid4().hex}@example.com"
        other.email_confirmed_at = now()
        notify(session, [News("order.placed", {"supplier_id": shop.id}, "user:1", shop.id)])
        store_notices(session, is_open=False, by_mail=True)
    post.send()
    [mail] = post.mails_to(f"user:{owner}")
    assert mail["Subject"] == "Ada pesanan baru / A new order" and "/desk#/orders" in _text(mail)
    assert len(post.mails_to(f"user:{helper}")) == 1


def test_a_digest_waits_for_its_hour(post: Post) -> None:
    buyer = post.buyer()
    post.prefer(buyer, digest="daily", digest_hour=7)
    post.tell(buyer)
    post.send()
    assert post.mails_to(buyer) == []
    post.tell(buyer)
    post.time.move(hours=24)
    post.send()
    [mail] = post.mails_to(buyer)
    assert mail["Subject"].startswith("2 kabar")


def test_quiet_hours_hold_mails_back_until_they_end(post: Post) -> None:
    buyer = post.buyer()
    local = now().hour + 7
    quiet = {"quiet_from": f"{(local - 1) % 24:02}:00", "quiet_until": f"{(local + 2) % 24:02}:00"}
    post.prefer(buyer, **quiet)
    for _ in range(2):
        post.tell(buyer)
    post.send()
    assert post.mails_to(buyer) == []
    post.time.move(hours=2)
    post.send()
    assert len(post.mails_to(buyer)) == 1


def test_a_server_that_was_away_does_not_catch_up_in_quiet_hours(post: Post) -> None:
    buyer = post.buyer()
    post.tell(buyer)
    local = now().hour + 7
    with post.market.writing() as session:
        values = {"quiet_from": f"{(local + 3) % 24:02}:00", "quiet_until": f"{(local + 6) % 24:02}:00"}
        save_preferences(session, buyer, values)
    post.time.move(hours=4)
    post.send()
    assert post.mails_to(buyer) == []
    post.time.move(hours=3)
    post.send()
    assert len(post.mails_to(buyer)) == 1


def test_changed_preferences_count_for_what_waits(post: Post) -> None:
    buyer, silent = post.buyer(), post.buyer()
    for account in (buyer, silent):
        post.prefer(account, digest="daily")
        post.tell(account)
    post.prefer(buyer, digest="now")
    post.prefer(silent, digest="now", mail=[])
    post.time.move(minutes=1)
    post.send()
    assert len(post.mails_to(buyer)) == 1 and post.mails_to(silent) == [] and post.deliveries(silent) == []


def test_a_mail_that_failed_is_sent_later_with_the_same_id(post: Post) -> None:
    buyer = post.buyer()
    post.tell(buyer)
    post.smtp.is_busy = True
    post.send()
    assert post.deliveries(buyer)[0][:2] == ("waiting", 1)
    post.tell(buyer)  # is a mail of its own
    post.smtp.is_busy = False
    post.send()
    post.time.move(minutes=2)
    post.send()
    first, second = post.mails_to(buyer)
    assert first["Message-ID"] != second["Message-ID"]
    assert post.deliveries(buyer) == [("sent", 2, "sent"), ("sent", 1, "sent")]


def test_a_mail_is_given_up_after_a_day_and_at_once_where_nobody_has_the_mailbox(post: Post) -> None:
    buyer, nobody = post.buyer(), post.buyer(email=f"{uuid4().hex}@refused.example")
    post.tell(nobody)
    post.send()
    assert post.deliveries(nobody) == [("dead", 1, "SMTPRecipientsRefused")]
    post.smtp.is_busy = True
    post.tell(buyer)
    for _ in range(30):
        post.send()
        post.time.move(hours=1)
    [(status, tries, result)] = post.deliveries(buyer)
    assert (status, result) == ("dead", "SMTPSenderRefused") and 4 <= tries <= 9


def test_two_servers_send_each_mail_once(post: Post) -> None:
    buyers = [post.buyer() for _ in range(8)]
    for buyer in buyers:
        post.tell(buyer)

    def send() -> None:
        sender = post.new_sender()
        while sender.step():
            pass

    with ThreadPoolExecutor() as threads:
        for done in [threads.submit(send) for _ in range(2)]:
            done.result()
    assert [len(post.mails_to(buyer)) for buyer in buyers] == [1] * 8


@pytest.mark.long
def test_a_mail_whose_server_was_killed_is_sent_again_with_the_same_id(post: Post, strict_database_url: str) -> None:
    buyer = post.buyer()
    post.tell(buyer)
    post.smtp.holds_back = True
    with sending_process(strict_database_url, 9, post.smtp.port) as server:
        wait_until_true(lambda: len(post.mails_to(buyer)) == 1)
        server.kill()
        server.wait()
    assert post.deliveries(buyer) == [("waiting", 1, None)]
    post.smtp.holds_back = False
    post.send()
    assert len(post.mails_to(buyer)) == 1, "another server waits for the one that took it"
    post.time.move(seconds=TAKEN_FOR.total_seconds() + 1)
    post.send()
    first, second = post.mails_to(buyer)
    assert first["Message-ID"] == second["Message-ID"] and _text(first) == _text(second)
    post.send()
    assert len(post.mails_to(buyer)) == 2


def test_a_deleted_account_leaves_no_mail_and_no_preferences(post: Post) -> None:
    buyer = post.buyer()
    post.prefer(buyer, digest="daily")
    post.tell(buyer)
    with post.market.writing() as session:
        forget_notices(session, [buyer])
    assert post.deliveries(buyer) == []


def _text(mail: EmailMessage) -> str:
    return text_of(mail).replace("\r\n", "\n")


@contextmanager
def sending_process(url: str, webhook_port: int, smtp_port: int) -> "Iterator[subprocess.Popen[str]]":
    command = [sys.executable, "-m", "tests.marketplace.notices.sender_program", url, str(webhook_port), str(smtp_port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield process
        process.kill()
