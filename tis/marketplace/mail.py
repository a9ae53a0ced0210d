"""Sends mails: `Mailer` is the Protocol, with SMTP and with files in a folder. Both block: `MailQueue` calls them.

The queue is one thread, so that no request waits for a mail server. The log gets the id of a mail only. Mails wait in
memory: those of a killed process are lost, and people ask for another one (`docs/decisions/0032-accounts.md`).
"""

import logging
import os
import smtplib
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import default
from email.utils import formatdate, parseaddr
from functools import partial
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Literal, Protocol, TypeVar
from uuid import uuid4

from tis.errors import Conflict, QueueFull, Unavailable

_log = logging.getLogger("tis.marketplace")
SmtpSecurity = Literal["starttls", "tls", "none"]
_MAX_WAITING = 1000
_RETRY_SECONDS = (1.0, 10.0)
_CLOSE_SECONDS = 5.0
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
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


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
    for name, value in mail.headers.items():
        message[name] = value
    message.set_content(mail.text)
    return message


Job = Callable[[], Sequence[Mail]]
_Result = TypeVar("_Result")


class MailQueue:
    def __init__(
        self,
        mailer: Mailer | None,
        *,
        max_waiting: int = _MAX_WAITING,
        retry_seconds: Sequence[float] = _RETRY_SECONDS,
    ) -> None:
        """Without a `mailer` it sends nothing, and `require_configured` refuses requests that need a mail."""
        self._mailer = mailer
        self._retry_seconds = retry_seconds
        self._jobs: Queue[Job | None] = Queue(max_waiting)
        self._closing = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def is_configured(self) -> bool:
        return self._mailer is not None

    def require_configured(self) -> None:
        if self._mailer is None:
            raise Conflict("This server sends no e-mail: its operator sets SMTP_HOST or MAIL_FOLDER.")

    def submit(self, job: Job) -> None:
        """`job` makes the mails in the thread of the queue."""
        self.require_configured()
        self._start()
        try:
            self._jobs.put_nowait(job)
        except Full:
            raise QueueFull("Too many mails are waiting. Retry later.", retry_after=60) from None

    def send(self, mails: Sequence[Mail]) -> None:
        """For mails beside something that is done already: if the queue is full they are dropped."""
        if not mails or self._mailer is None:
            return
        try:
            self.submit(lambda: mails)
        except QueueFull:
            _log.warning("the queue of mails is full: dropped %s", ", ".join(mail.id for mail in mails))

    def close(self) -> None:
        """Sends what waits, without retries, for a few seconds at most."""
        self._closing.set()
        if self._thread is None:
            return
        try:
            self._jobs.put_nowait(None)
        except Full:
            pass  # the thread sees `_closing` when it has emptied the queue
        self._thread.join(_CLOSE_SECONDS)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mail", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                job = self._jobs.get_nowait() if self._closing.is_set() else self._jobs.get()
            except Empty:
                return
            if job is not None:
                self._do(job)

    def _do(self, job: Job) -> None:
        assert self._mailer is not None
        mailer = self._mailer
        for mail in self._with_retries(job, "to be written") or ():
            self._with_retries(partial(_send, mailer, mail), mail.id)

    def _with_retries(self, action: Callable[[], _Result], mail_id: str) -> _Result | None:
        """The message of an error may contain an address: its class is all that is logged."""
        for seconds in (*self._retry_seconds, None):
            try:
                return action()
            except (OSError, Unavailable) as error:
                if seconds is None or is_final(error) or self._closing.is_set():
                    _log.error("the mail %s could not be sent: %s", mail_id, type(error).__name__)
                    return None
                _log.warning("the mail %s waits for another try: %s", mail_id, type(error).__name__)
                self._closing.wait(seconds)
            except Exception as fault:  # the thread must outlive a mail that cannot be written
                _log.error("the mail %s failed: %s", mail_id, type(fault).__name__)
                return None
        return None


def _send(mailer: Mailer, mail: Mail) -> None:
    mailer.send(mail)
    _log.info("sent the mail %s", mail.id)


def is_final(error: Exception) -> bool:
    """Whether another try would fail, too."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(code >= 500 for code, _ in error.recipients.values())
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return True
    return isinstance(error, smtplib.SMTPResponseException) and error.smtp_code >= 500
