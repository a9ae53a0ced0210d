"""Opening hours of suppliers over HTTP."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest

from tests.marketplace.accounts import made, register_supplier
from tis.marketplace.columns import now
from tis.marketplace.kit.opening_hours import WEEKDAYS, local_time

ALWAYS = {day: [["00:00", "24:00"]] for day in WEEKDAYS}


def day_after(days: int) -> str:
    return WEEKDAYS[local_time(now() + timedelta(days=days), "WIB").weekday()]


def test_a_shop_tells_when_it_is_open(laptop: httpx2.Client) -> None:
    week = {"monday": [["09:00", "12:00"], ["13:00", "17:30"]], "saturday": [["18:00", "02:00"]]}
    shop = register_supplier(laptop, opening_hours=dict(reversed(week.items())))
    path = f"/api/suppliers/{shop['id']}"
    assert (shop["opening_hours"], shop["time_zone"]) == (week, "WIB")
    seen = made(laptop.get(path))
    assert list(seen["opening_hours"].items()) == list(week.items())
    assert made(laptop.put(path, json={"opening_hours": ALWAYS}))["open_now"] is True
    other_day = made(laptop.put(path, json={"opening_hours": {day_after(3): [["09:00", "17:00"]]}}))
    assert other_day["open_now"] is False
    unknown = made(laptop.put(path, json={"opening_hours": None}))
    assert (unknown["opening_hours"], unknown["open_now"]) == (None, None)
    assert unknown["version"] == shop["version"] + 3


def test_the_zone_is_that_of_the_place_unless_the_shop_names_one(laptop: httpx2.Client) -> None:
    shop = register_supplier(laptop, latitude=-8.65, longitude=115.22, city="Denpasar")
    path = f"/api/suppliers/{shop['id']}"
    assert (shop["time_zone"], shop["opening_hours"], shop["open_now"]) == ("WITA", None, None)
    assert made(laptop.put(path, json={"time_zone": "WIT"}))["time_zone"] == "WIT"
    assert made(laptop.put(path, json={"time_zone": None}))["time_zone"] == "WITA"


def test_a_product_is_there_today_only_if_its_shop_says_that_it_opens(laptop: httpx2.Client) -> None:
    shop = register_supplier(laptop, city="Sabang")
    path = f"/api/suppliers/{shop['id']}"
    goods = {"name": "Kipas", "price": 1000, "stock_quantity": 5, "category": "fan"}
    product = made(laptop.post(f"{path}/products", json=goods))["id"]
    here = {"user_lat": shop["latitude"], "user_lon": shop["longitude"]}

    def advice() -> set[bool]:
        [listed] = laptop.get("/api/products", params={**here, "city": "sabang", "available_only": False}).json()
        single = made(laptop.get(f"/api/products/{product}", params=here))
        return {"hari ini" in one["fulfilment"]["reason"] for one in (listed, single)}

    assert advice() == {False}
    made(laptop.put(path, json={"opening_hours": ALWAYS}))
    assert advice() == {True}
    made(laptop.put(f"/api/products/{product}", json={"stock_quantity": 0}))
    assert advice() == {False}, "it is sold out"
    made(laptop.put(f"/api/products/{product}", json={"stock_quantity": 5}))
    made(laptop.put(path, json={"opening_hours": {day_after(3): [["09:00", "17:00"]]}}))
    assert advice() == {False}


@pytest.mark.parametrize(
    "given",
    [
        {"opening_hours": {}},
        {"opening_hours": {"monday": [["9", "17"]]}},
        {"opening_hours": {"someday": [["09:00", "17:00"]]}},
        {"opening_hours": {"monday": [["09:00", "12:00"], ["11:00", "13:00"]]}},
        {"opening_hours": "always"},
        {"time_zone": "Asia/Jakarta"},
    ],
    ids=str,
)
def test_hours_that_make_no_sense_are_a_422(laptop: httpx2.Client, given: dict[str, Any]) -> None:
    shop = register_supplier(laptop)
    assert laptop.put(f"/api/suppliers/{shop['id']}", json=given).status_code == 422
