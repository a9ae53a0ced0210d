"""Distances in SQL: boxes, cells of a grid, and rings around the buyer."""

from dataclasses import dataclass
from math import asin, cos, degrees, floor, pi, radians, sin

from sqlalchemy.orm import Session

from tis.marketplace.kit.geo import EARTH_RADIUS_KM, Point
from tis.marketplace.search.index_tokens import cell_token
from tis.marketplace.search.sql import run, run_once

# The box is slightly larger than the circle, so that rounding excludes nothing at its edge.
_MARGIN_DEGREES = 1e-6
_MAX_CELLS = 64
_CELLS_PER_DEGREE = 4
_GRID_COLUMNS = 360 * _CELLS_PER_DEGREE
# Only public places: a distance to the exact place would reveal it.
SUPPLIER_PLACES = "(SELECT id, public_latitude AS latitude, public_longitude AS longitude FROM suppliers) s"


BRANCH_PLACES = (
    "(SELECT supplier_id, public_latitude AS latitude, public_longitude AS longitude FROM branches WHERE is_active) b"
)
_ANY_SPREAD = "SELECT 1 FROM goods_places LIMIT 1"


def has_spread_goods(session: Session) -> bool:
    """Goods at several places of a shop. A market without any pays no more than this look at a table."""
    return bool(run_once(session, _ANY_SPREAD))


def goods_distance_sql(least_function: str, of_shop: str) -> str:
    """Of a product from the nearest place that has it; `of_shop` where it has only one."""
    nearest = f"SELECT min({haversine_sql('b', least_function)}) FROM goods_places b WHERE b.product_id = p.product_id"
    return f"(CASE WHEN p.is_spread = 0 THEN {of_shop} ELSE ({nearest}) END)"


def haversine_sql(table: str, least_function: str) -> str:
    """The distance of a row from the origin in kilometres. `least_function` clamps rounding errors above 1."""
    # Angles count from the south pole and the date line: PostgreSQL fails to square the tiny numbers around 0 degrees.
    lat, lon = f"radians({table}.latitude + 90.0)", f"radians({table}.longitude + 180.0)"
    squared = (
        f"power(sin(({lat} - :origin_lat) / 2), 2)"
        f" + :origin_cos * sin({lat}) * power(sin(({lon} - :origin_lon) / 2), 2)"
    )
    return f"(2 * {EARTH_RADIUS_KM} * asin(sqrt({least_function}(1.0, {squared}))))"


def origin_values(origin: Point) -> dict[str, float]:
    """Values of the placeholders in `haversine_sql`."""
    lat, lon = radians(origin.latitude + 90.0), radians(origin.longitude + 180.0)
    return {"origin_lat": lat, "origin_lon": lon, "origin_cos": sin(lat)}


@dataclass(frozen=True)
class BoundingBox:
    """Has two ranges of longitude where it crosses 180 degrees, and one of all longitudes around a pole."""

    south: float
    north: float
    longitude_ranges: tuple[tuple[float, float], ...]

    def condition(self, table: str) -> tuple[str, dict[str, float]]:
        values = {"south": self.south, "north": self.north}
        parts = []
        for number, (west, east) in enumerate(self.longitude_ranges):
            parts.append(f"{table}.longitude BETWEEN :west{number} AND :east{number}")
            values |= {f"west{number}": west, f"east{number}": east}
        return f"{table}.latitude BETWEEN :south AND :north AND ({' OR '.join(parts)})", values

    @property
    def cell_tokens(self) -> tuple[str, ...] | None:
        """Tokens of the grid cells that intersect the box; None if there are too many for a text query."""
        rows = range(_row(self.south), _row(self.north) + 1)
        columns = [column for west, east in self.longitude_ranges for column in range(_column(west), _column(east) + 1)]
        if len(rows) * len(columns) > _MAX_CELLS:
            return None
        return tuple(dict.fromkeys(cell_token(row, column % _GRID_COLUMNS) for row in rows for column in columns))


def bounding_box(origin: Point, radius_km: float) -> BoundingBox:
    angle = radius_km / EARTH_RADIUS_KM
    latitude_reach = degrees(angle) + _MARGIN_DEGREES
    south, north = origin.latitude - latitude_reach, origin.latitude + latitude_reach
    all_longitudes = ((-180.0, 180.0),)
    if south <= -90 or north >= 90 or angle >= pi / 2:
        return BoundingBox(max(south, -90.0), min(north, 90.0), all_longitudes)
    # Meridians converge: the circle is widest nearer to the pole than its centre.
    longitude_reach = degrees(asin(min(1.0, sin(angle) / cos(radians(origin.latitude))))) + _MARGIN_DEGREES
    west, east = origin.longitude - longitude_reach, origin.longitude + longitude_reach
    if east - west >= 360:
        return BoundingBox(south, north, all_longitudes)
    if west < -180:
        return BoundingBox(south, north, ((west + 360, 180.0), (-180.0, east)))
    if east > 180:
        return BoundingBox(south, north, ((west, 180.0), (-180.0, east - 360)))
    return BoundingBox(south, north, ((west, east),))


def cell_token_at(latitude: float, longitude: float) -> str:
    return cell_token(_row(latitude), _column(longitude) % _GRID_COLUMNS)


def _row(latitude: float) -> int:
    return floor((latitude + 90) * _CELLS_PER_DEGREE)


def _column(longitude: float) -> int:
    return floor((longitude + 180) * _CELLS_PER_DEGREE)


RINGS_KM = (5.0, 15.0, 40.0, 100.0, 300.0)  # where each ends, and the next begins; the last one has no end
LAST_RING = len(RINGS_KM)


def ring_sql(km: str) -> str:
    """The number of the ring at a distance; its outer edge belongs to it."""
    edges = " ".join(f"WHEN {km} <= {edge} THEN {ring}" for ring, edge in enumerate(RINGS_KM))
    return f"CASE {edges} ELSE {LAST_RING} END"


def ring_of(km: float) -> int:
    """As `ring_sql`."""
    return next((ring for ring, edge in enumerate(RINGS_KM) if km <= edge), LAST_RING)


def ring_edges(ring: int, radius_km: float | None) -> tuple[float, float | None]:
    """Where a ring begins and ends within a radius. Below 0: a product at the buyer's place is in the first."""
    start_km = RINGS_KM[ring - 1] if ring else -1.0
    end_km = RINGS_KM[ring] if ring < LAST_RING else None
    if radius_km is not None:
        end_km = radius_km if end_km is None else min(end_km, radius_km)
    return start_km, end_km


def has_suppliers(session: Session, least_function: str, origin: Point, start_km: float, end_km: float) -> bool:
    """Or branches of suppliers."""
    box, values = bounding_box(origin, end_km), origin_values(origin)
    tables = [("s", SUPPLIER_PLACES), *([("b", BRANCH_PLACES)] if has_spread_goods(session) else [])]
    for table, places in tables:
        in_box, edges = box.condition(table)
        km = haversine_sql(table, least_function)
        sql = f"SELECT 1 FROM {places} WHERE {in_box} AND {km} <= :end_km AND {km} > :start_km LIMIT 1"
        if run(session, sql, {**values, **edges, "start_km": start_km, "end_km": end_km}):
            return True
    return False
