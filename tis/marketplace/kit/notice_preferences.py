"""What an account wants to hear by mail, and when: the defaults, quiet hours and digests."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, cast, get_args

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.kit.news import NewsGroup
from tis.marketplace.kit.opening_hours import MINUTES_OF_DAY, TimeZone, local_time, zone_of
from tis.marketplace.tables import NoticePreferences, Supplier, User

Digest = Literal["now", "hourly", "daily"]
NEWS_GROUPS: tuple[NewsGroup, ...] = get_args(NewsGroup)
# Not holds, which are over before many a mail is read, and lead to an order that is told of; nor reviews, which wait.
MAIL_BY_DEFAULT: frozenset[NewsGroup] = frozenset({"orders", "messages", "prices", "stock", "account"})
DEFAULT_ZONE: TimeZone = "WIB"  # Asia/Jakarta


@dataclass(frozen=True)
class MailPreferences:
    mail: frozenset[NewsGroup] = MAIL_BY_DEFAULT
    digest: Digest = "now"
    digest_hour: int = 7
    quiet_from: str | None = None
    quiet_until: str | None = None
    time_zone: TimeZone = DEFAULT_ZONE
    language: Literal["id", "en"] | None = None

    def due(self, moment: datetime) -> datetime:
        """When a mail about something of this moment goes out."""
        at = local_time(moment, self.time_zone)
        if self.digest == "hourly":
            at = at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        elif self.digest == "daily":
            hour = at.replace(hour=self.digest_hour, minute=0, second=0, microsecond=0)
            at = hour if hour > at else hour + timedelta(days=1)
        return self.after_quiet_hours(at)

    def after_quiet_hours(self, moment: datetime) -> datetime:
        """The moment itself, or the end of the quiet hours that it is in."""
        if self.quiet_from is None or self.quiet_until is None or self.quiet_from == self.quiet_until:
            return moment
        at = local_time(moment, self.time_zone)
        begins, ends, minute = _minute(self.quiet_from), _minute(self.quiet_until), at.hour * 60 + at.minute
        since_begin, length = (minute - begins) % MINUTES_OF_DAY, (ends - begins) % MINUTES_OF_DAY
        if since_begin >= length:
            return moment
        return at.replace(second=0, microsecond=0) + timedelta(minutes=length - since_begin)


def preferences_of(session: Session, accounts: Collection[str]) -> dict[str, MailPreferences]:
    """Of all these accounts."""
    rows = {
        row.account: row
        for row in session.scalars(select(NoticePreferences).where(NoticePreferences.account.in_(accounts)))
    }
    of_place = zones_by_place(session, [one for one, row in rows.items() if _needs_zone(row)])
    return {one: _preferences(rows[one], of_place) if one in rows else MailPreferences() for one in accounts}


def mailboxes_of(session: Session, accounts: Iterable[str]) -> dict[str, str]:
    """The keys of confirmed e-mails: nobody else's mailbox gets mails of ours."""
    found: dict[str, str] = {}
    for kind, table in (("user", User), ("supplier", Supplier)):
        if ids := _ids_of(kind, accounts):
            columns = select(table.id, table.email_key)
            confirmed = columns.where(table.id.in_(ids), table.email_confirmed_at.is_not(None))
            found |= {f"{kind}:{number}": email for number, email in session.execute(confirmed) if email}
    return found


def _needs_zone(row: NoticePreferences) -> bool:
    return row.time_zone is None and (row.digest == "daily" or row.quiet_from is not None)


def _preferences(row: NoticePreferences, of_place: dict[str, TimeZone]) -> MailPreferences:
    return MailPreferences(
        mail=frozenset(cast("list[NewsGroup]", row.mail)),
        digest=cast(Digest, row.digest),
        digest_hour=row.digest_hour,
        quiet_from=row.quiet_from,
        quiet_until=row.quiet_until,
        time_zone=cast("TimeZone | None", row.time_zone) or of_place.get(row.account, DEFAULT_ZONE),
        language=cast(Any, row.language),
    )


def zones_by_place(session: Session, accounts: Collection[str]) -> dict[str, TimeZone]:
    zones: dict[str, TimeZone] = {}
    if ids := _ids_of("user", accounts):
        for number, longitude in session.execute(select(User.id, User.longitude).where(User.id.in_(ids))):
            zones[f"user:{number}"] = DEFAULT_ZONE if longitude is None else zone_of(longitude)
    if ids := _ids_of("supplier", accounts):
        shops = select(Supplier.id, Supplier.time_zone, Supplier.longitude).where(Supplier.id.in_(ids))
        for number, zone, longitude in session.execute(shops):
            zones[f"supplier:{number}"] = cast("TimeZone | None", zone) or zone_of(longitude)
    return zones


def _ids_of(kind: str, accounts: Iterable[str]) -> list[int]:
    return [int(one.partition(":")[2]) for one in accounts if one.startswith(f"{kind}:")]


def _minute(time: str) -> int:
    hours, _, minutes = time.partition(":")
    return int(hours) * 60 + int(minutes)
