"""Reads and changes what an account hears by mail. A change counts for mails that wait, too."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.kit.notice_deliveries import TRIED_FOR
from tis.marketplace.kit.notice_preferences import MailPreferences, preferences_of
from tis.marketplace.tables import NoticeDelivery, NoticePreferences


def stored_preferences(session: Session, account: str) -> NoticePreferences:
    """With the defaults, in a row that is not in the database, for an account that changed nothing."""
    return session.get(NoticePreferences, account) or _default_row(account)


def save_preferences(session: Session, account: str, values: dict[str, Any]) -> NoticePreferences:
    """The caller has locked the account, which is deleted with its preferences."""
    row = _row_to_change(session, account)
    for name, value in values.items():
        setattr(row, name, value)
    session.flush()
    _set_due_again(session, account)
    return row


def turn_mail_off(session: Session, account: str, groups: Collection[str]) -> Sequence[str]:
    """The caller has locked the account."""
    row = _row_to_change(session, account)
    row.mail = sorted(set(row.mail) - set(groups))
    session.flush()
    return sorted(groups)


def _row_to_change(session: Session, account: str) -> NoticePreferences:
    row = session.scalar(select(NoticePreferences).where(NoticePreferences.account == account).with_for_update())
    if row is None:
        row = _default_row(account)
        session.add(row)
    return row


def _set_due_again(session: Session, account: str) -> None:
    """Mails that wait and were not tried yet follow the new times, as if their news came now."""
    due_at = preferences_of(session, [account])[account].due(now())
    waiting = update(NoticeDelivery).where(
        NoticeDelivery.account == account,
        NoticeDelivery.status == "waiting",
        NoticeDelivery.channel == "mail",
        NoticeDelivery.message_id.is_(None),
    )
    times = {"due_at": due_at, "give_up_at": due_at + TRIED_FOR}
    session.execute(waiting.values(**times), execution_options={"synchronize_session": False})


def _default_row(account: str) -> NoticePreferences:
    default = MailPreferences()
    return NoticePreferences(
        account=account,
        mail=sorted(default.mail),
        digest=default.digest,
        digest_hour=default.digest_hour,
    )
