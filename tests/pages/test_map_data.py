"""The drawn map: small, of a known source, and the cities lie in their provinces."""

import gzip
import json
import re
from functools import cache

import pytest

from tests.serving import REPOSITORY

FOLDER = REPOSITORY / "web" / "market" / "map"
MAP = FOLDER / "provinces.js"
_MAX_COMPRESSED = 40_000
_STEP = re.compile(r"-?\d+")
CITIES = {
    "Jakarta": (-6.2088, 106.8456, "DKI Jakarta"),
    "Medan": (3.5952, 98.6722, "Sumatera Utara"),
    "Bandung": (-6.9175, 107.6191, "Jawa Barat"),
    "Yogyakarta": (-7.7956, 110.3695, "DI Yogyakarta"),
    "Surabaya": (-7.2875, 112.7200, "Jawa Timur"),
    "Denpasar": (-8.6500, 115.2167, "Bali"),
    "Palangka Raya": (-2.2088, 113.9163, "Kalimantan Tengah"),
    "Palu": (-0.9167, 119.9000, "Sulawesi Tengah"),
    "Wamena": (-4.0940, 138.9500, "Papua"),
}


@cache
def _shapes() -> tuple[dict[str, float], dict[str, list[list[tuple[int, int]]]]]:
    source = MAP.read_text(encoding="utf-8")
    found = re.search(r"export const area = (\{.*\});", source)
    assert found
    rows = dict(re.findall(r'^  \["([^"]+)", "([^"]+)"\]', source, re.MULTILINE))
    return json.loads(found[1]), {name: _rings(path) for name, path in rows.items()}


def _rings(path: str) -> list[list[tuple[int, int]]]:
    rings = []
    for part in path.split("M")[1:]:
        start, _, steps = part.rstrip("z").partition("l")
        x, y = map(int, start.split())
        ring = [(x, y)]
        numbers = list(map(int, _STEP.findall(steps)))
        for step_x, step_y in zip(numbers[::2], numbers[1::2], strict=True):
            x, y = x + step_x, y + step_y
            ring.append((x, y))
        rings.append(ring)
    return rings


def _is_inside(x: float, y: float, ring: list[tuple[int, int]]) -> bool:
    crossings = 0
    for (x1, y1), (x2, y2) in zip(ring, [*ring[1:], ring[0]], strict=True):
        crossings += (y1 > y) != (y2 > y) and x < x1 + (y - y1) / (y2 - y1) * (x2 - x1)
    return crossings % 2 == 1


@pytest.mark.parametrize("city", CITIES)
def test_a_city_lies_in_its_province_and_in_no_other(city: str) -> None:
    area, shapes = _shapes()
    latitude, longitude, province = CITIES[city]
    x, y = (longitude - area["west"]) * 100, (area["north"] - latitude) * 100
    assert [name for name, rings in shapes.items() if any(_is_inside(x, y, ring) for ring in rings)] == [province]


def test_the_map_is_small_and_says_whose_it_is() -> None:
    area, shapes = _shapes()
    assert len(shapes) == 33
    points = [point for rings in shapes.values() for ring in rings for point in ring]
    assert all(0 < x < area["width"] and 0 < y < area["height"] for x, y in points)
    assert len(gzip.compress(MAP.read_bytes(), 9)) < _MAX_COMPRESSED
    head = MAP.read_text(encoding="utf-8")[:1000]
    assert all(name in head for name in ("Natural Earth", "public domain", "draw_provinces.py", "LICENCES.txt"))
    licences = (FOLDER / "LICENCES.txt").read_text(encoding="utf-8")
    assert "Mark DiMarco" in licences and "Michael Bostock" in licences
