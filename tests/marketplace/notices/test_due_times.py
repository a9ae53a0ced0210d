"""When a mail is due: at once, by the hour or the day, and never in quiet hours."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tis.marketplace.kit.notice_preferences import MailPreferences


def moment(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-{text}:00+00:00")


@pytest.mark.parametrize(
    ("preferences", "at", "due"),
    [
        ({}, "28T15:30", "28T15:30"),
        ({"digest": "hourly"}, "28T15:30", "28T16:00"),
        ({"digest": "hourly"}, "28T15:00", "28T16:00"),
        ({"digest": "daily", "digest_hour": 7}, "28T15:30", "29T00:00"),  # 22:30 WIB: 07:00 WIB of the next day
        ({"digest": "daily", "digest_hour": 7}, "28T23:30", "29T00:00"),
        ({"digest": "daily", "digest_hour": 7}, "29T00:00", "30T00:00"),
        ({"digest": "daily", "digest_hour": 7, "time_zone": "WIT"}, "28T15:30", "28T22:00"),
        ({"quiet_from": "22:00", "quiet_until": "06:00"}, "28T14:59", "28T14:59"),
        ({"quiet_from": "22:00", "quiet_until": "06:00"}, "28T15:00", "28T23:00"),
        ({"quiet_from": "22:00", "quiet_until": "06:00"}, "28T22:59", "28T23:00"),
        ({"quiet_from": "22:00", "quiet_until": "06:00"}, "28T23:00", "28T23:00"),
        ({"quiet_from": "12:00", "quiet_until": "13:30"}, "28T06:00", "28T06:30"),
        ({"quiet_from": "12:00", "quiet_until": "13:30"}, "28T16:00", "28T16:00"),
        ({"quiet_from": "12:00", "quiet_until": "13:30", "time_zone": "WITA"}, "28T05:00", "28T05:30"),
        ({"quiet_from": "12:00", "quiet_until": "12:00"}, "28T05:00", "28T05:00"),
        ({"digest": "hourly", "quiet_from": "22:00", "quiet_until": "06:00"}, "28T14:30", "28T23:00"),
        ({"digest": "daily", "digest_hour": 3, "quiet_from": "22:00", "quiet_until": "06:00"}, "28T15:30", "28T23:00"),
    ],
)
def test_a_mail_is_due(preferences: dict[str, Any], at: str, due: str) -> None:
    assert MailPreferences(**preferences).due(moment(at)).astimezone(UTC) == moment(due)
