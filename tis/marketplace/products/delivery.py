"""Advises pickup, courier or parcel from the distance and the terms of the supplier. Pure functions."""

import re
from datetime import datetime
from typing import Any, Literal, Protocol, cast

from tis.marketplace.kit.opening_hours import (
    MINUTES_OF_DAY,
    TimeZone,
    WeeklyHours,
    is_within,
    local_time,
    minute_of_week,
    weekly_spans,
    zone_of,
)
from tis.marketplace.products.schemas import Fulfilment

Language = Literal["id", "en"]
Suggestion = Literal["pickup", "courier", "parcel"]

PICKUP_KM = 5.0
COURIER_KM = 40.0


class DeliveryTerms(Protocol):
    """The columns of `Supplier` that matter for delivery."""

    @property
    def pickup_enabled(self) -> bool: ...
    @property
    def courier_enabled(self) -> bool: ...
    @property
    def delivery_radius_km(self) -> float | None: ...


class ShopTimes(Protocol):
    """The columns of `Supplier` that say when it is open."""

    @property
    def opening_hours(self) -> dict[str, Any] | None: ...
    @property
    def time_zone(self) -> str | None: ...
    @property
    def public_longitude(self) -> float: ...


def opens_today(shop: ShopTimes, moment: datetime) -> bool:
    """Whether it says that it is open, or will be on this day. Nobody knows of a shop without opening hours."""
    if shop.opening_hours is None:
        return False
    zone = cast(TimeZone | None, shop.time_zone) or zone_of(shop.public_longitude)
    return opens_later_today(shop.opening_hours, local_time(moment, zone))


def opens_later_today(hours: WeeklyHours, moment: datetime) -> bool:
    """Or is open: whether a buyer who sets out now still gets in on this day."""
    minute = minute_of_week(moment)
    midnight = minute - minute % MINUTES_OF_DAY + MINUTES_OF_DAY
    spans = weekly_spans(hours)
    return is_within(spans, minute) or any(minute < opens < midnight for opens, _ in spans)


class GoodsOfShop(Protocol):
    """The columns of `Product` that say whether there is any, and its shop."""

    @property
    def is_available(self) -> bool: ...
    @property
    def on_hand(self) -> int: ...
    @property
    def reserved(self) -> int: ...
    @property
    def supplier(self) -> ShopTimes: ...


def is_there_today(goods: GoodsOfShop, moment: datetime, branch: ShopTimes | None = None) -> bool:
    """Whether a buyer can have it on this day: not what is sold out, nor of a shop, or its branch that has the goods,
    that may be closed."""
    return goods.is_available and goods.on_hand > goods.reserved and opens_today(branch or goods.supplier, moment)


def advise(distance_km: float, terms: DeliveryTerms, language: Language = "id", *, today: bool = False) -> Fulfilment:
    radius_km = COURIER_KM if terms.delivery_radius_km is None else terms.delivery_radius_km
    suggestion: Suggestion
    if terms.pickup_enabled and distance_km <= PICKUP_KM:
        suggestion, why = "pickup", "near"
    elif not terms.courier_enabled:
        suggestion, why = "parcel", "no courier"
    elif distance_km <= radius_km:
        suggestion, why = "courier", "within reach"
    else:
        suggestion, why = "parcel", "too far"
    reason = _REASONS[language][why].format(
        km=_format_km(distance_km, language),
        radius=_format_km(radius_km, language),
        today=_TODAY[language] if today else "",
    )
    return Fulfilment(suggestion=suggestion, reason=reason)


def language_of(accept_language: str | None) -> Language:
    """Picks id or en by `Accept-Language`; Indonesian if neither is preferred."""
    quality: dict[str, float] = {}
    for part in (accept_language or "")[:500].split(","):
        if match := _LANGUAGE.fullmatch(part.strip().lower()):
            quality.setdefault(match[1], float(match[2] or 1))
    return "en" if quality.get("en", 0) > quality.get("id", 0) else "id"


_LANGUAGE = re.compile(r"(id|en)(?:-[a-z0-9-]+)?(?:\s*;\s*q=([01](?:\.\d{0,3})?))?")

_TODAY: dict[Language, str] = {"id": " hari ini", "en": " today"}
_REASONS: dict[Language, dict[str, str]] = {
    "id": {
        "near": "Toko hanya {km} km dari Anda: bisa diambil sendiri{today}.",
        "within reach": "Jaraknya {km} km, dalam jangkauan kurir toko ({radius} km): bisa diantar{today}.",
        "no courier": "Jaraknya {km} km dan toko ini tidak memakai kurir: dikirim lewat ekspedisi.",
        "too far": "Jaraknya {km} km, di luar jangkauan kurir toko ({radius} km): dikirim lewat ekspedisi.",
    },
    "en": {
        "near": "The shop is only {km} km away: you can pick it up{today}.",
        "within reach": "It is {km} km away, within reach of its courier ({radius} km): it can be delivered{today}.",
        "no courier": "It is {km} km away and this shop has no courier: it is sent by parcel.",
        "too far": "It is {km} km away, out of the reach of its courier ({radius} km): it is sent by parcel.",
    },
}


def _format_km(distance: float, language: Language) -> str:
    text = f"{distance:.1f}".removesuffix(".0")
    return text.replace(".", ",") if language == "id" else text
