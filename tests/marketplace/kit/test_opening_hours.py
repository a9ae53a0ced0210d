"""Opening hours: what may be sent, and when a shop is open."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tis.marketplace.kit.opening_hours import (
    OpeningHours,
    is_within,
    local_time,
    minute_of_week,
    weekly_spans,
    zone_of,
)
from tis.marketplace.products.delivery import opens_later_today
from tis.marketplace.search.supplier_index import utc_spans

HOURS = TypeAdapter[Any](OpeningHours)
# 22 November 2026 is a Sunday.
WARUNG = HOURS.validate_python(
    {"sunday": [["17:00", "02:00"]], "monday": [["18:00", "22:00"], ["08:00", "12:00"]], "friday": [["00:00", "24:00"]]}
)


def at(day: int, time: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-{day}T{time}:00+07:00")


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (at(22, "16:59"), False),
        (at(22, "17:00"), True),
        (at(22, "23:59"), True),
        (at(23, "01:59"), True),  # Monday: Sunday's evening closes at two
        (at(23, "02:00"), False),
        (at(23, "08:00"), True),
        (at(23, "12:00"), False),
        (at(23, "18:00"), True),
        (at(24, "10:00"), False),
        (at(27, "00:00"), True),
        (at(27, "23:59"), True),
        (at(28, "00:00"), False),
    ],
)
def test_a_shop_is_open_from_the_minute_it_opens_until_it_closes(moment: datetime, expected: bool) -> None:
    assert is_within(weekly_spans(WARUNG), minute_of_week(moment)) is expected
    assert is_within(utc_spans(WARUNG, "WIB"), minute_of_week(moment.astimezone(UTC))) is expected


def test_the_days_are_stored_in_their_order_without_closed_ones() -> None:
    given = {"friday": [["09:00", "17:00"]], "tuesday": [], "monday": [["18:00", "22:00"], ["08:00", "12:00"]]}
    stored = HOURS.validate_python(given)
    assert list(stored.items()) == [
        ("monday", [["08:00", "12:00"], ["18:00", "22:00"]]),
        ("friday", [["09:00", "17:00"]]),
    ]


@pytest.mark.parametrize(
    "hours",
    [
        {},
        {"monday": []},
        {"monday": [["9:00", "17:00"]]},
        {"monday": [["09:00", "24:01"]]},
        {"monday": [["٠٩:٠٠", "17:00"]]},
        {"monday": [["09:00", "17:00\n"]]},
        {"monday": [["09:00", "09:00"]]},
        {"monday": [["24:00", "02:00"]]},
        {"monday": [["09:00"]]},
        {"monday": [["09:00", "12:00", "17:00"]]},
        {"monday": [["09:00", "12:00"], ["11:00", "17:00"]]},
        {"monday": [["20:00", "03:00"]], "tuesday": [["02:00", "09:00"]]},
        {"sunday": [["20:00", "03:00"]], "monday": [["02:00", "09:00"]]},
        {"monday": [["01:00", "02:00"]] * 5},
        {"senin": [["09:00", "17:00"]]},
        [["09:00", "17:00"]],
    ],
    ids=str,
)
def test_tables_that_make_no_sense_are_refused(hours: Any) -> None:
    with pytest.raises(ValidationError):
        HOURS.validate_python(hours)


def test_the_longitude_tells_the_zone() -> None:
    places = {
        "Medan": 98.67,
        "Banyuwangi": 114.36,
        "Denpasar": 115.22,
        "Manado": 124.84,
        "Ternate": 127.38,
        "Jayapura": 140.7,
    }
    assert [zone_of(longitude) for longitude in places.values()] == ["WIB", "WIB", "WITA", "WITA", "WIT", "WIT"]
    moment = datetime(2026, 11, 22, 23, 30, tzinfo=UTC)
    assert [local_time(moment, zone).strftime("%a %H:%M") for zone in ("WIB", "WITA", "WIT")] == [
        "Mon 06:30",
        "Mon 07:30",
        "Mon 08:30",
    ]


def test_later_today_ends_at_midnight() -> None:
    assert opens_later_today(WARUNG, at(22, "09:00")) and opens_later_today(WARUNG, at(23, "13:00"))
    assert not opens_later_today(WARUNG, at(23, "22:00")) and not opens_later_today(WARUNG, at(21, "23:00"))
