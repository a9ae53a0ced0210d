"""Sends mails: `Mailer` is the Protocol, with SMTP and with files in a folder. Both block: `MailQueue` calls them."""

import os
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import default
from email.utils import formatdate, parseaddr
from pathlib import Path
from typing import Literal, Protocol
from uuid import uuid4

SmtpSecurity = Literal["starttls", "tls", "none"]
_SMTP_SECONDS = 10.0  # for each answer of the mail server
_MAX_FILES = 10_000
_WHOLE_LINES = default.clone(max_line_length=200)  # a link stays on one line in the source of the mail, too


@dataclass(frozen=True)
class Mail:
    """Its text has a secret: only `id` may be logged."""

    to: str = field(repr=False)
    subject: str = field(repr=False)
    text: str = field(repr=False)
    id: str = field(default_factory=lambda: uuid4().hex)


class Mailer(Protocol):
    def send(self, mail: Mail) -> None:
        """Raises `OSError` if it failed. `smtplib` raises subclasses of it."""


@dataclass(frozen=True)
class SmtpMailer:
    host: str
    port: int
    sender: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    security: SmtpSecurity = "starttls"
    timeout_seconds: float = _SMTP_SECONDS

    def send(self, mail: Mail) -> None:
        with self._connection() as smtp:
            if self.user is not None:
                smtp.login(self.user, self.password or "")
            smtp.send_message(_as_message(mail, self.sender))

    @contextmanager
    def _connection(self) -> Iterator[smtplib.SMTP]:
        if self.security == "tls":
            context = ssl.create_default_context()
            with smtplib.SMTP_SSL(self.host, self.port, timeout=self.timeout_seconds, context=context) as smtp:
                yield smtp
            return
        with smtplib.SMTP(self.host, self.port, timeout=self.timeout_seconds) as smtp:
            if self.security == "starttls":
                smtp.starttls(context=ssl.create_default_context())  # raises where the server offers none
            yield smtp


@dataclass(frozen=True)
class FolderMailer:
    """Writes each mail to `<id>.eml`, for development and for programs that send them on."""

    folder: Path
    sender: str

    def send(self, mail: Mail) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if sum(1 for _ in self.folder.iterdir()) >= _MAX_FILES:
            raise OSError(f"MAIL_FOLDER has {_MAX_FILES} files: delete old ones")
        unfinished = self.folder / f"{mail.id}.part"
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(file, "wb") as opened:
            opened.write(_as_message(mail, self.sender).as_bytes())
        unfinished.replace(self.folder / f"{mail.id}.eml")


def _as_message(mail: Mail, sender: str) -> EmailMessage:
    message = EmailMessage(policy=_WHOLE_LINES)
    message["From"], message["To"], message["Subject"] = sender, mail.to, mail.subject
    message["Date"] = formatdate()
    message["Message-ID"] = f"<{mail.id}@{parseaddr(sender)[1].rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"  # so that nobody's out-of-office mail comes back
    message.set_content(mail.text)
    return message
