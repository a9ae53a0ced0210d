"""Creates the first admin, which no route can do."""

import secrets
from dataclasses import dataclass
from datetime import datetime

from pydantic import SecretStr
from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.auth.accounts import user_account
from tis.marketplace.auth.links import delete_links
from tis.marketplace.auth.tokens import end_all_chains
from tis.marketplace.kit import audit
from tis.marketplace.kit.fields import email_key
from tis.marketplace.kit.principal import Principal
from tis.marketplace.tables import User

_SEEDING = Principal(is_admin=True)


@dataclass(frozen=True)
class AdminGrant:
    changed: bool
    registered_at: datetime | None  # of an account that existed before


def new_password() -> SecretStr:
    return SecretStr(secrets.token_urlsafe(15))


def make_admin(session: Session, email: str, password_hash: str) -> AdminGrant:
    """E-mails need no confirmation, so an account that exists loses its password, sessions and links."""
    existing = select(User).where(User.email_key == email_key(email), User.deleted_at.is_(None))
    user = session.scalar(existing.with_for_update(key_share=True))
    registered_at = user.created_at if user else None
    if user is None:
        user = User(name=email.partition("@")[0], email=email, email_key=email_key(email), role="user")
        session.add(user)
    elif user.role == "admin" and user.password_hash is not None:
        return AdminGrant(changed=False, registered_at=registered_at)
    user.role, user.password_hash = "admin", password_hash
    session.flush()
    end_all_chains(session, user_account(user.id))
    delete_links(session, user_account(user.id))
    audit.note(session, _SEEDING, "grant", "user", user.id, role="admin", password=True)
    return AdminGrant(changed=True, registered_at=registered_at)
