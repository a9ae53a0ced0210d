"""When a shop is open: a weekly table in the local time of its place."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field

Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
TimeZone = Literal["WIB", "WITA", "WIT"]
# Opens and closes at these minutes of a week; one that closes after midnight on Sunday has more minutes than a week.
Span = tuple[int, int]
WeeklyHours = Mapping[Any, Sequence[Sequence[str]]]  # by weekday, as `OpeningHours` are stored

WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)
MINUTES_OF_WEEK = 7 * 24 * 60
MINUTES_OF_DAY = 24 * 60
_MAX_SPANS_OF_DAY = 4
UTC_OFFSET_HOURS: dict[TimeZone, int] = {"WIB": 7, "WITA": 8, "WIT": 9}
# Between Java and Bali, and between Sulawesi and the Moluccas. Along these meridians the zones follow provinces, and a
# shop on the wrong side of one sends its `time_zone`.
_WITA_BEGINS, _WIT_BEGINS = 114.43, 125.8


def weekly_spans(days: WeeklyHours) -> list[Span]:
    spans = []
    for number, day in enumerate(WEEKDAYS):
        for opens_at, closes_at in days.get(day, ()):
            opens, closes = _minutes(opens_at), _minutes(closes_at)
            length = closes - opens if closes > opens else closes - opens + MINUTES_OF_DAY
            spans.append((number * MINUTES_OF_DAY + opens, number * MINUTES_OF_DAY + opens + length))
    return sorted(spans)


def _minutes(time: str) -> int:
    hours, _, minutes = time.partition(":")
    return int(hours) * 60 + int(minutes)


def _checked(days: dict[Weekday, list[list[str]]]) -> dict[Weekday, list[list[str]]]:
    """In the order of the week, without the days on which the shop is closed."""
    for opens_at, closes_at in (span for spans in days.values() for span in spans):
        if opens_at == closes_at or opens_at == "24:00":
            raise ValueError(f"{opens_at} to {closes_at} is no time: a whole day is 00:00 to 24:00")
    spans = weekly_spans(days)
    if not spans:
        raise ValueError("must have a day with a time; null says that they are not known")
    following = [*spans[1:], (spans[0][0] + MINUTES_OF_WEEK, 0)]
    if any(closes > next_opens for (_, closes), (next_opens, _) in zip(spans, following, strict=True)):
        raise ValueError("two times overlap")
    return {day: sorted(days[day]) for day in WEEKDAYS if days.get(day)}


_Time = Annotated[str, Field(pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$")]
_DayHours = Annotated[
    list[Annotated[list[_Time], Field(min_length=2, max_length=2)]], Field(max_length=_MAX_SPANS_OF_DAY)
]
OpeningHours = Annotated[dict[Weekday, _DayHours], AfterValidator(_checked)]


def is_within(spans: Sequence[Span], minute: int) -> bool:
    """At the minute of closing a shop is closed."""
    return any(opens <= minute < closes or opens <= minute + MINUTES_OF_WEEK < closes for opens, closes in spans)


def local_time(moment: datetime, zone: TimeZone) -> datetime:
    return moment.astimezone(timezone(timedelta(hours=UTC_OFFSET_HOURS[zone]), zone))


def zone_of(longitude: float) -> TimeZone:
    """The zone of most places at this longitude, for shops that name none."""
    return "WIB" if longitude < _WITA_BEGINS else "WITA" if longitude < _WIT_BEGINS else "WIT"


def minute_of_week(moment: datetime) -> int:
    """Of the zone that `moment` is in: see `local_time`."""
    return moment.weekday() * MINUTES_OF_DAY + moment.hour * 60 + moment.minute


def hours_in_order(hours: WeeklyHours | None) -> dict[str, list[list[str]]] | None:
    """PostgreSQL keeps its own order of the days."""
    return None if hours is None else {day: [list(span) for span in hours[day]] for day in WEEKDAYS if day in hours}


def is_open_now(hours: WeeklyHours | None, zone: TimeZone, moment: datetime) -> bool | None:
    """None: nobody knows."""
    return None if hours is None else is_within(weekly_spans(hours), minute_of_week(local_time(moment, zone)))
