"""Sends news by mail: all that is due to one account is one mail.

Every server does this. A server takes rows by making them due again a few minutes later; one that is killed between
the mail and its mark sends the mail again, with the same Message-ID. See docs/decisions/0144-notices-that-go-out.md.
"""

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import ColumnElement, and_, delete, exists, select
from sqlalchemy.orm import Session

from tis.marketplace.auth.accounts import account_holder
from tis.marketplace.columns import now
from tis.marketplace.kit.news import NEWS_KINDS
from tis.marketplace.kit.notice_deliveries import new_message_id
from tis.marketplace.kit.notice_preferences import MailPreferences, preferences_of
from tis.marketplace.kit.signing import Signer
from tis.marketplace.mail import Mail, Mailer, is_final
from tis.marketplace.notices.mail_texts import MailedNotice, subject_of, text_of
from tis.marketplace.notices.unsubscribing import PATH, unsubscribe_token
from tis.marketplace.tables import NoticeDelivery, Product

_log = logging.getLogger("tis.marketplace")
OpenTransaction = Callable[[], AbstractContextManager[Session]]
TAKEN_FOR = timedelta(minutes=5)  # longer than a mail server may take for all its answers together
_MAX_IN_MAIL = 500  # notices
_PAUSES = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=30), timedelta(hours=2), timedelta(hours=6))


@dataclass(frozen=True)
class MailBatch:
    ids: Sequence[int]
    mail: Mail


class NoticeMailSender:
    def __init__(
        self,
        reading: OpenTransaction,
        writing: OpenTransaction,
        signer: Callable[[], Signer],
        mailer: Mailer,
        public_url: str,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._reading, self._writing = reading, writing
        self._signer = signer
        self._mailer = mailer
        self._public_url = public_url
        self._clock = clock

    def step(self) -> bool:
        """Sends one mail. Returns whether there may be more to send at once."""
        with self._reading() as session:
            if not session.scalar(select(exists().where(self._is_due()))):
                return False
        with self._writing() as session:
            account, batch = self._take(session)
        return self._send(batch) if batch else account is not None

    def _is_due(self) -> ColumnElement[bool]:
        return and_(
            NoticeDelivery.channel == "mail",
            NoticeDelivery.status == "waiting",
            NoticeDelivery.due_at <= self._clock(),
        )

    def _take(self, session: Session) -> tuple[str | None, MailBatch | None]:
        """The account that was looked at, and its mail if there is one to send."""
        first = session.scalar(
            select(NoticeDelivery)
            .where(self._is_due())
            .order_by(NoticeDelivery.due_at)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        if first is None:
            return None, None
        # What was one mail before stays that mail, with its Message-ID.
        is_same_mail = NoticeDelivery.message_id == first.message_id
        if first.message_id is None:
            is_same_mail = and_(NoticeDelivery.message_id.is_(None), self._is_due())
        rows = session.scalars(
            select(NoticeDelivery)
            .where(NoticeDelivery.account == first.account, NoticeDelivery.status == "waiting", is_same_mail)
            .order_by(NoticeDelivery.id)
            .limit(_MAX_IN_MAIL)
            .with_for_update(skip_locked=True)
        ).all()
        return first.account, self._batch(session, first.account, rows)

    def _batch(self, session: Session, account: str, rows: Sequence[NoticeDelivery]) -> MailBatch | None:
        holder = account_holder(session, account)
        preferences = preferences_of(session, [account])[account]
        is_reached = holder is not None and holder.email is not None and holder.email_confirmed_at is not None
        wanted = [row for row in rows if is_reached and NEWS_KINDS[row.type].group in preferences.mail]
        _delete(session, [row for row in rows if row not in wanted])
        moment = self._clock()
        allowed = preferences.after_quiet_hours(moment)
        if not wanted or allowed > moment:
            for row in wanted:
                row.due_at = allowed
            return None
        assert holder is not None and holder.email is not None
        message_id = wanted[0].message_id or new_message_id()
        for row in wanted:
            row.message_id, row.due_at, row.tries = message_id, moment + TAKEN_FOR, row.tries + 1
        notices = [MailedNotice(row.type, row.data, row.created_at) for row in wanted]
        mail = self._mail(session, account, holder.email, holder.email_key or "", notices, preferences, message_id)
        return MailBatch([row.id for row in wanted], mail)

    def _mail(
        self,
        session: Session,
        account: str,
        email: str,
        email_key: str,
        notices: Sequence[MailedNotice],
        preferences: MailPreferences,
        message_id: str,
    ) -> Mail:
        token = unsubscribe_token(self._signer(), account, {one.group for one in notices}, email_key)
        link = f"{self._public_url}{PATH}?token={token}"
        headers = {"List-Unsubscribe": f"<{link}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}  # RFC 8058
        text = text_of(notices, preferences, _product_names(session, notices), self._public_url, link)
        return Mail(email, subject_of(notices, preferences.language), text, message_id, headers)

    def _send(self, batch: MailBatch) -> bool:
        try:
            self._mailer.send(batch.mail)
        except Exception as error:  # its message may have the address: only its class is logged
            may_help = isinstance(error, OSError) and not is_final(error)
            _log.warning("the mail %s of notices failed: %s", batch.mail.id, type(error).__name__)
            self._mark(batch, partial(self._failed, type(error).__name__, may_help))
            return not may_help  # a mail server that is gone fails the next mail, too
        _log.info("sent the mail %s", batch.mail.id)
        self._mark(batch, self._sent)
        return True

    def _mark(self, batch: MailBatch, mark: Callable[[NoticeDelivery], None]) -> None:
        with self._writing() as session:
            rows = select(NoticeDelivery).where(NoticeDelivery.id.in_(batch.ids)).order_by(NoticeDelivery.id)
            for row in session.scalars(rows.with_for_update()):
                mark(row)

    def _sent(self, row: NoticeDelivery) -> None:
        row.status, row.ended_at, row.result = "sent", self._clock(), "sent"

    def _failed(self, result: str, may_help: bool, row: NoticeDelivery) -> None:
        due_at = self._clock() + _PAUSES[min(row.tries, len(_PAUSES)) - 1] * random.uniform(0.8, 1.2)
        row.result = result[:32]
        if may_help and due_at < row.give_up_at:
            row.due_at = due_at
        else:
            row.status, row.ended_at = "dead", self._clock()


def _delete(session: Session, rows: Sequence[NoticeDelivery]) -> None:
    if rows:
        session.execute(delete(NoticeDelivery).where(NoticeDelivery.id.in_([row.id for row in rows])))


def _product_names(session: Session, notices: Sequence[MailedNotice]) -> Mapping[int, str]:
    ids = {one.data["product_id"] for one in notices if "product_id" in one.data}
    named = select(Product.id, Product.name).where(Product.id.in_(ids))
    return {row.id: row.name for row in session.execute(named)} if ids else {}
