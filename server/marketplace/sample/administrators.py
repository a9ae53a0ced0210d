"""The first admin: somebody has to be named from outside."""

import secrets

from pydantic import SecretStr
from sqlalchemy import select
from sqlalchemy.orm import Session

from server.marketplace import audit
from server.marketplace.caller import Caller
from server.marketplace.fields import email_key
from server.marketplace.tables import User

_SEEDING = Caller(is_admin=True)


def new_password() -> SecretStr:
    return SecretStr(secrets.token_urlsafe(15))


def make_admin(session: Session, email: str, password_hash: str) -> tuple[bool, bool]:
    """Whether anything changed, and whether the password was taken: somebody who has one keeps it."""
    user = session.scalar(select(User).where(User.email_key == email_key(email), User.deleted_at.is_(None)))
    if user is None:
        user = User(name=email.partition("@")[0], email=email, email_key=email_key(email), role="user")
        session.add(user)
    takes_password = user.password_hash is None
    if takes_password:
        user.password_hash = password_hash
    changes = takes_password or user.role != "admin"
    user.role = "admin"
    session.flush()
    if changes:
        audit.note(session, _SEEDING, "grant", "user", user.id, role="admin", password=takes_password)
    return changes, takes_password
