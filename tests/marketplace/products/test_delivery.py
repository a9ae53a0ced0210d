"""Delivery advice: pickup, courier or parcel, and its reason."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from tis.marketplace.products.delivery import Language, advise, language_of, opens_today


@dataclass(frozen=True)
class SupplierTerms:
    pickup_enabled: bool = True
    courier_enabled: bool = True
    delivery_radius_km: float | None = None


@pytest.mark.parametrize(
    ("distance_km", "terms", "suggestion"),
    [
        (0.0, SupplierTerms(), "pickup"),
        (5.0, SupplierTerms(), "pickup"),
        (5.01, SupplierTerms(), "courier"),
        (3.0, SupplierTerms(pickup_enabled=False), "courier"),
        (3.0, SupplierTerms(pickup_enabled=False, courier_enabled=False), "parcel"),
        (40.0, SupplierTerms(), "courier"),
        (40.01, SupplierTerms(), "parcel"),
        (12.0, SupplierTerms(courier_enabled=False), "parcel"),
        (12.0, SupplierTerms(delivery_radius_km=10), "parcel"),
        (70.0, SupplierTerms(delivery_radius_km=75), "courier"),
        (6.0, SupplierTerms(delivery_radius_km=0), "parcel"),
        (3.0, SupplierTerms(delivery_radius_km=0), "pickup"),
    ],
)
def test_pickup_courier_or_parcel_by_distance_and_terms(
    distance_km: float, terms: SupplierTerms, suggestion: str
) -> None:
    assert advise(distance_km, terms).suggestion == suggestion


def test_the_reason_names_distance_and_radius_in_the_language_of_the_reader() -> None:
    terms = SupplierTerms(delivery_radius_km=12.5)
    assert advise(116.24, terms).reason == (
        "Jaraknya 116,2 km, di luar jangkauan kurir toko (12,5 km): dikirim lewat ekspedisi."
    )
    assert "116.2 km away, out of the reach of its courier (12.5 km)" in advise(116.24, terms, "en").reason
    assert "8 km" in advise(8.0, terms).reason


@dataclass(frozen=True)
class SupplierTimes:
    opening_hours: dict[str, Any] | None
    time_zone: str | None = None
    public_longitude: float = 106.85


def test_today_is_said_only_where_opening_hours_say_so() -> None:
    sunday_evening = datetime(2026, 11, 22, 13, 30, tzinfo=UTC)  # 20:30 in Jakarta, 22:30 in Jayapura
    until_nine = {"sunday": [["09:00", "21:00"]]}
    assert opens_today(SupplierTimes(until_nine), sunday_evening)
    assert not opens_today(SupplierTimes(until_nine, "WIT"), sunday_evening)
    assert not opens_today(SupplierTimes(until_nine, public_longitude=140.7), sunday_evening)
    assert not opens_today(SupplierTimes(None), sunday_evening)
    words: dict[Language, str] = {"id": "hari ini", "en": "today"}
    for language, today in words.items():
        for distance_km in (3.0, 12.0):
            assert today in advise(distance_km, SupplierTerms(), language, today=True).reason
            assert today not in advise(distance_km, SupplierTerms(), language).reason
        assert today not in advise(99.0, SupplierTerms(), language, today=True).reason


@pytest.mark.parametrize(
    ("header", "language"),
    [
        (None, "id"),
        ("", "id"),
        ("en", "en"),
        ("en-GB,en;q=0.9", "en"),
        ("id-ID,id;q=0.9,en-US;q=0.8", "id"),
        ("en;q=0.5, id;q=0.9", "id"),
        ("fr, en;q=0.2", "en"),
        ("de", "id"),
        ("en;q=0", "id"),
        ("en;q=nan,;;,", "id"),
    ],
)
def test_indonesian_unless_english_is_preferred(header: str | None, language: Language) -> None:
    assert language_of(header) == language
