"""Mails over a real socket and into a folder, and the thread that sends them."""

import logging
import os
import smtplib
import stat
import threading
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.marketplace.database_failures import wait_until_true
from tests.marketplace.smtp_server import SmtpServer, smtp_server
from tests.serving import settings_with
from tis.arguments.marketplace import market_rules_of
from tis.errors import Conflict, QueueFull
from tis.marketplace.mail import FolderMailer, Mail, MailQueue, SmtpMailer

MAIL = Mail("jane@example.com", "Atur ulang", "The link:\n\nhttps://shop.example/api/auth/link#reset=secret\n")


@pytest.fixture
def smtp() -> Iterator[SmtpServer]:
    with smtp_server() as server:
        yield server


class FlakyMailer:
    """Fails as often as it is told, then remembers what it sent."""

    def __init__(self, *failures: Exception) -> None:
        self._failures = list(failures)
        self.sent: list[Mail] = []

    def send(self, mail: Mail) -> None:
        if self._failures:
            raise self._failures.pop(0)
        self.sent.append(mail)


def test_the_settings_choose_the_mailer() -> None:
    smtp = {"smtp_host": "mail.example.com", "mail_from": "noreply@example.com", "public_url": "https://shop.example/"}
    rules = market_rules_of(settings_with(**smtp, smtp_user="shop", smtp_password="hidden words", smtp_security="tls"))
    assert rules.mailer == SmtpMailer("mail.example.com", 587, "noreply@example.com", "shop", "hidden words", "tls")
    assert rules.public_url == "https://shop.example" and "hidden words" not in repr(rules)
    folder = market_rules_of(settings_with(mail_folder="mails", port=3001))
    assert folder.mailer == FolderMailer(Path("mails"), "noreply@localhost")
    assert folder.public_url == "http://127.0.0.1:3001"
    assert market_rules_of(settings_with()).mailer is None


def test_a_mail_goes_out_by_smtp(smtp: SmtpServer) -> None:
    SmtpMailer("127.0.0.1", smtp.port, "Shop <noreply@shop.example>", security="none").send(MAIL)
    message = message_from_bytes(smtp.received[0])
    assert (message["From"], message["To"]) == ("Shop <noreply@shop.example>", "jane@example.com")
    assert message["Message-ID"] == f"<{MAIL.id}@shop.example>" and message["Auto-Submitted"] == "auto-generated"
    assert b"/api/auth/link#reset=secret\r\n" in smtp.received[0]


def test_nothing_is_sent_in_the_clear_where_encryption_is_wanted(smtp: SmtpServer) -> None:
    with pytest.raises(smtplib.SMTPNotSupportedError):
        SmtpMailer("127.0.0.1", smtp.port, "noreply@shop.example").send(MAIL)
    assert smtp.received == []


def test_mails_in_a_folder_are_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "mails"
    FolderMailer(folder, "noreply@localhost").send(MAIL)
    [file] = folder.iterdir()
    assert file.name == f"{MAIL.id}.eml" and b"#reset=secret\n" in file.read_bytes()
    assert os.name == "nt" or stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_mail_that_fails_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    mailer = FlakyMailer(ConnectionRefusedError("jane@example.com"), TimeoutError())
    queue = MailQueue(mailer, retry_seconds=(0, 0))
    with caplog.at_level(logging.INFO, "tis.marketplace"):
        queue.send([MAIL])
        wait_until_true(lambda: mailer.sent == [MAIL])
        queue.close()
    assert f"sent the mail {MAIL.id}" in caplog.text
    assert MAIL.to not in caplog.text and "secret" not in caplog.text


def test_a_mail_that_cannot_be_sent_does_not_stop_the_next(smtp: SmtpServer, caplog: pytest.LogCaptureFixture) -> None:
    queue = MailQueue(SmtpMailer("127.0.0.1", smtp.port, "noreply@shop.example", security="none"), retry_seconds=(60,))
    refused, broken = Mail("jane@refused.example", "a", "b"), Mail("jane@example.com", "a\nBcc: x@example.com", "b")
    queue.send([refused, broken, MAIL])
    wait_until_true(lambda: len(smtp.received) == 1)
    queue.close()
    assert f"{refused.id} could not be sent: SMTPRecipientsRefused" in caplog.text and refused.to not in caplog.text
    assert f"{broken.id} failed: ValueError" in caplog.text and "Bcc" not in caplog.text


def test_a_full_queue_refuses_links_and_drops_notices(caplog: pytest.LogCaptureFixture) -> None:
    entered, release = threading.Event(), threading.Event()

    def block() -> list[Mail]:
        entered.set()
        release.wait(30)
        return []

    mailer = FlakyMailer()
    queue = MailQueue(mailer, max_waiting=1)
    queue.submit(block)
    assert entered.wait(30)
    queue.send([MAIL])
    with pytest.raises(QueueFull):
        queue.submit(block)
    queue.send([Mail("jane@example.com", "a", "b")])
    assert "dropped" in caplog.text
    release.set()
    wait_until_true(lambda: mailer.sent == [MAIL])
    queue.close()


def test_closing_sends_what_waits() -> None:
    mailer = FlakyMailer()
    queue = MailQueue(mailer)
    queue.send([MAIL, MAIL])
    queue.close()
    assert len(mailer.sent) == 2


def test_without_a_mailer_notices_are_skipped_and_links_refused() -> None:
    queue = MailQueue(None)
    queue.send([MAIL])
    with pytest.raises(Conflict):
        queue.submit(lambda: [MAIL])
    queue.close()
