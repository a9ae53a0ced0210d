"""One-time links: a secret that only the reader of a mailbox gets. The table has its digest.

A link is used up with all other links of its account. It is void when the account's e-mail is another one by then.
"""

import hashlib
import secrets
from datetime import timedelta
from typing import Any, Literal, cast

from sqlalchemy import CursorResult, delete, func, select
from sqlalchemy.orm import Session

from tis.errors import BadRequest
from tis.marketplace.auth.accounts import account_holder
from tis.marketplace.columns import now
from tis.marketplace.kit.fields import email_key
from tis.marketplace.tables import OneTimeLink, Supplier, User

LinkPurpose = Literal["reset", "confirm", "change"]
LIFETIMES: dict[LinkPurpose, timedelta] = {
    "reset": timedelta(hours=1),
    "confirm": timedelta(days=1),
    "change": timedelta(days=1),
}
# Of one account and purpose: nobody can fill somebody's mailbox.
_MAX_PER_HOUR = 3


def new_link(session: Session, account: str, purpose: LinkPurpose, email: str) -> str | None:
    """The secret of a new link; None if the account got enough of them within the hour."""
    moment = now()
    recent = select(func.count()).where(
        OneTimeLink.account == account,
        OneTimeLink.purpose == purpose,
        OneTimeLink.created_at > moment - timedelta(hours=1),
    )
    if (session.scalar(recent) or 0) >= _MAX_PER_HOUR:
        return None
    secret = secrets.token_urlsafe(32)
    expires_at = moment + LIFETIMES[purpose]
    session.add(
        OneTimeLink(
            digest=_digest(secret),
            account=account,
            purpose=purpose,
            email=email,
            created_at=moment,
            expires_at=expires_at,
        )
    )
    session.flush()
    return secret


def find_link(session: Session, secret: str, *purposes: LinkPurpose) -> tuple[OneTimeLink, User | Supplier]:
    """The link and its account. Locks nothing."""
    link = session.get(OneTimeLink, _digest(secret), populate_existing=True)
    if link is None or link.purpose not in purposes or link.expires_at <= now():
        raise _void()
    holder = account_holder(session, link.account)
    if holder is None:
        raise _void()
    return link, holder


def use_link(session: Session, secret: str, *purposes: LinkPurpose) -> tuple[OneTimeLink, User | Supplier]:
    """The link and its locked account, once. The account is locked before its links, as where it is deleted."""
    link, _ = find_link(session, secret, *purposes)
    session.expunge(link)
    holder = account_holder(session, link.account, locked=True)
    used = session.execute(delete(OneTimeLink).where(OneTimeLink.digest == link.digest))
    if holder is None or cast(CursorResult[Any], used).rowcount != 1:
        raise _void()
    if link.purpose != "change" and holder.email_key != email_key(link.email):
        raise _void()
    delete_links(session, link.account)
    return link, holder


def delete_links(session: Session, account: str) -> None:
    """Also where somebody takes the account back: a link may be on its way to whoever had it before."""
    session.execute(delete(OneTimeLink).where(OneTimeLink.account == account))


def delete_expired_links(session: Session) -> None:
    session.execute(delete(OneTimeLink).where(OneTimeLink.expires_at <= now()))


def _void() -> BadRequest:
    return BadRequest("This link was used, has expired, or is not complete. Ask for a new one.", code="void_link")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
