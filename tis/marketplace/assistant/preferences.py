"""What users told the assistant to prefer: their own to read, to change and to delete."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from tis.marketplace.assistant.goods import Preferences
from tis.marketplace.auth.accounts import lock_account, user_account
from tis.marketplace.kit import audit
from tis.marketplace.kit.principal import Principal
from tis.marketplace.tables import UserPreferences


def preferences_of(session: Session, user_id: int) -> Preferences:
    """Empty without any."""
    row = session.get(UserPreferences, user_id)
    if row is None:
        return Preferences()
    return Preferences(tuple(row.brands), row.max_price, row.city, row.condition)


def find_preferences(session: Session, user_id: int) -> UserPreferences | None:
    return session.get(UserPreferences, user_id)


def save_preferences(
    session: Session, principal: Principal, user_id: int, values: Mapping[str, Any]
) -> UserPreferences:
    """`values` are all fields: what was saved before is replaced."""
    lock_account(session, user_account(user_id))
    row = session.get(UserPreferences, user_id)
    if row is None:
        row = UserPreferences(user_id=user_id)
        session.add(row)
    changed = [name for name, value in values.items() if getattr(row, name) != value]
    for name in changed:
        setattr(row, name, values[name])
    session.flush()
    if changed:
        audit.note(session, principal, "preferences.change", "user", user_id, **dict.fromkeys(changed, True))
    return row


def delete_preferences(session: Session, principal: Principal, user_id: int) -> None:
    lock_account(session, user_account(user_id))
    if (row := session.get(UserPreferences, user_id)) is not None:
        session.delete(row)
        audit.note(session, principal, "preferences.delete", "user", user_id)
