"""Rings around a buyer: by relevance, products of a nearer one come first among those that match alike."""

from sqlalchemy.orm import Session

from tis.marketplace.kit.geo import Point
from tis.marketplace.search.geo_filter import SUPPLIER_PLACES, bounding_box, haversine_sql, origin_values
from tis.marketplace.search.sql import run

RINGS_KM = (5.0, 15.0, 40.0, 100.0, 300.0)  # where each ends, and the next begins; the last one has no end
LAST_RING = len(RINGS_KM)


def ring_sql(km: str) -> str:
    """The number of the ring at a distance; its outer edge belongs to it."""
    edges = " ".join(f"WHEN {km} <= {edge} THEN {ring}" for ring, edge in enumerate(RINGS_KM))
    return f"CASE {edges} ELSE {LAST_RING} END"


def ring_edges(ring: int, radius_km: float | None) -> tuple[float, float | None]:
    """Where a ring begins and ends within a radius. Below 0: a product at the buyer's place is in the first."""
    start_km = RINGS_KM[ring - 1] if ring else -1.0
    end_km = RINGS_KM[ring] if ring < LAST_RING else None
    if radius_km is not None:
        end_km = radius_km if end_km is None else min(end_km, radius_km)
    return start_km, end_km


def has_suppliers(session: Session, least_function: str, origin: Point, start_km: float, end_km: float) -> bool:
    in_box, edges = bounding_box(origin, end_km).condition("s")
    km = haversine_sql("s", least_function)
    sql = f"SELECT 1 FROM {SUPPLIER_PLACES} WHERE {in_box} AND {km} <= :end_km AND {km} > :start_km LIMIT 1"
    return bool(run(session, sql, {**origin_values(origin), **edges, "start_km": start_km, "end_km": end_km}))
