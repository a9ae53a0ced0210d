"""Who asks: the place, the preferences and the daily quota of model tokens of a user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.auth.accounts import account_holder, lock_account, user_account
from tis.marketplace.kit import audit
from tis.marketplace.kit.fields import key_of
from tis.marketplace.kit.geo import Point
from tis.marketplace.kit.principal import Principal
from tis.marketplace.products.delivery import Language
from tis.marketplace.search.city_filter import city_test
from tis.marketplace.search.relaxed_filters import point_of_city
from tis.marketplace.tables import ChatUsage, User, UserPreferences


@dataclass(frozen=True)
class Preferences:
    """What a user told us to prefer. They break ties and never filter."""

    brands: Sequence[str] = ()  # lower case
    max_price: int | None = None
    city: str | None = None
    condition: str | None = None

    def met_by(self, brand: str | None, price: int, city: str, condition: str) -> list[str]:
        """The names of those that a product meets."""
        is_in_city = city_test(self.city) if self.city else None
        met = {
            "brand": bool(brand) and key_of(brand or "") in {key_of(one) for one in self.brands},
            "max_price": self.max_price is not None and price <= self.max_price,
            "city": is_in_city is not None and is_in_city(key_of(city)),
            "condition": self.condition == condition,
        }
        return [name for name, is_met in met.items() if is_met]


@dataclass(frozen=True)
class Viewer:
    """Who asks. `origin` and `city` are measured from, never filtered by."""

    language: Language = "id"
    origin: Point | None = None
    city: str | None = None
    preferences: Preferences = Preferences()

    @property
    def measured_from(self) -> Point | None:
        """The own place, or the centre of the city."""
        if self.origin is not None or self.city is None:
            return self.origin
        place = point_of_city(self.city)
        return place.point if place else None


def viewer_of(session: Session, user_id: int | None, language: Language) -> Viewer:
    """Suppliers and anonymous callers have no place."""
    user = None if user_id is None else session.get(User, user_id)
    if user is None:
        return Viewer(language)
    has_place = user.latitude is not None and user.longitude is not None
    origin = Point(user.latitude or 0.0, user.longitude or 0.0) if has_place else None
    row = session.get(UserPreferences, user.id)
    likes = Preferences(tuple(row.brands), row.max_price, row.city, row.condition) if row else Preferences()
    return Viewer(language, origin, user.city, likes)


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


def tokens_used(session: Session, user_id: int, today: date) -> int:
    """The database counts: restarts forget nothing, several servers share it."""
    used = select(ChatUsage.tokens).where(ChatUsage.user_id == user_id, ChatUsage.day == today)
    return session.scalar(used) or 0


def has_tokens_left(session: Session, user_id: int, today: date, quota: int) -> bool:
    """`quota` 0: there is none. The last answer of a day may use more than was left."""
    return not quota or tokens_used(session, user_id, today) < quota


def count_tokens(session: Session, user_id: int, today: date, tokens: int) -> None:
    """Of an account that was deleted meanwhile nothing is counted."""
    # The lock also keeps two answers of one user from inserting the row of a day at once.
    if tokens <= 0 or account_holder(session, user_account(user_id), locked=True) is None:
        return
    usage = session.get(ChatUsage, (user_id, today), populate_existing=True)
    if usage is None:
        session.add(ChatUsage(user_id=user_id, day=today, tokens=tokens))
    else:
        usage.tokens += tokens
    session.flush()
