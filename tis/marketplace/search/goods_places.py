"""From where distances count of goods that lie at several places of a shop: `goods_places`.

A change of a product writes its rows, a change of a shop those of its goods. Both have locked the rows of these
products in `product_search` before.
"""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from tis.marketplace.kit.branch_shares import OWN_ADDRESS, Share, is_any_spread, shares_of
from tis.marketplace.kit.geo import Point, kilometres_between
from tis.marketplace.search.geo_filter import cell_token_at, has_spread_goods
from tis.marketplace.search.query import NearestPlace
from tis.marketplace.search.sql import id_list, run, run_many
from tis.marketplace.tables import Branch, GoodsPlace, Supplier

_Row = tuple[int, int, int, float, float]  # product, branch, supplier, latitude, longitude
_INSERT = (
    "INSERT INTO goods_places (product_id, branch_id, supplier_id, latitude, longitude)"
    " VALUES (:product_id, :branch_id, :supplier_id, :latitude, :longitude)"
)
_KNOWN = "SELECT product_id, branch_id, supplier_id, latitude, longitude FROM goods_places WHERE product_id IN "


def spread_goods(session: Session, suppliers: Mapping[int, int]) -> dict[int, list[Share]]:
    """Of these products, by their suppliers, those that have several places, with the places that count."""
    if not is_any_spread(session, suppliers):
        return {}
    found = shares_of(session, suppliers)
    return {one: _that_count(shares) for one, shares in found.items() if len(shares) > 1}


def _that_count(shares: Sequence[Share]) -> list[Share]:
    """Those with units, or all open ones of a product that is sold out."""
    stocked = [share for share in shares if share.available > 0]
    return stocked or [share for share in shares if share.is_open]


def write_places(session: Session, suppliers: Mapping[int, int], places: Mapping[int, Sequence[Share]]) -> None:
    """Only what differs. Products that are gone have none."""
    wanted = {
        (product_id, share.branch_id, suppliers[product_id], share.place.latitude, share.place.longitude)
        for product_id, shares in places.items()
        for share in shares
    }
    _write(session, set(_known(session, places)), wanted)


def _known(session: Session, product_ids: Iterable[int]) -> Sequence[_Row]:
    ids = list(product_ids)
    return [(row[0], row[1], row[2], row[3], row[4]) for row in run(session, _KNOWN + id_list(ids))] if ids else []


def _write(session: Session, known: set[_Row], wanted: set[_Row]) -> None:
    for product_id, branch_id, *_ in sorted(known - wanted):
        own = GoodsPlace.product_id == product_id, GoodsPlace.branch_id == branch_id
        session.execute(delete(GoodsPlace).where(*own), execution_options={"synchronize_session": False})
    columns = ("product_id", "branch_id", "supplier_id", "latitude", "longitude")
    run_many(session, _INSERT, [dict(zip(columns, row, strict=True)) for row in sorted(wanted - known)])


def forget_places(session: Session, product_ids: Sequence[int]) -> None:
    run(session, f"DELETE FROM goods_places WHERE product_id IN {id_list(product_ids)}")


def points_of_shop(session: Session, supplier_id: int) -> dict[int, Point]:
    """Where its places are, as everybody may know: the own address and open branches."""
    own = select(Supplier.public_latitude, Supplier.public_longitude).where(Supplier.id == supplier_id)
    rows = select(Branch.id, Branch.public_latitude, Branch.public_longitude).where(Branch.supplier_id == supplier_id)
    latitude, longitude = session.execute(own).one()
    points = {OWN_ADDRESS: Point(latitude, longitude)}
    return points | {one: Point(lat, lon) for one, lat, lon in session.execute(rows.where(Branch.is_active.is_(True)))}


def branch_cells(session: Session, supplier_ids: Iterable[int]) -> dict[int, list[str]]:
    """Tokens of the grid cells where the open branches of each shop are."""
    columns = select(Branch.supplier_id, Branch.public_latitude, Branch.public_longitude).order_by(Branch.id)
    found: dict[int, list[str]] = {}
    open_ones = columns.where(Branch.supplier_id.in_(supplier_ids), Branch.is_active.is_(True))
    for supplier_id, latitude, longitude in session.execute(open_ones):
        found.setdefault(supplier_id, []).append(cell_token_at(latitude, longitude))
    return found


def moved_places(session: Session, supplier_id: int, points: Mapping[int, Point]) -> list[int]:
    """The places of a shop whose goods are still where the place was before it moved, or closed."""
    sql = "SELECT DISTINCT branch_id, latitude, longitude FROM goods_places WHERE supplier_id = :supplier_id"
    rows = run(session, sql, {"supplier_id": supplier_id})
    return sorted({one for one, lat, lon in rows if points.get(one) != Point(lat, lon)})


def move_places(session: Session, supplier_id: int, points: Mapping[int, Point], moved: Iterable[int]) -> None:
    """Of a closed branch only sold-out goods have a row, and they have one of the own address, too."""
    sql = (
        "UPDATE goods_places SET latitude = :latitude, longitude = :longitude"
        " WHERE supplier_id = :supplier_id AND branch_id = :branch_id"
    )
    of_shop = {one: {"supplier_id": supplier_id, "branch_id": one} for one in moved}
    run_many(session, sql, [{**of_shop[one], **vars(points[one])} for one in of_shop if one in points])
    closed = "DELETE FROM goods_places WHERE supplier_id = :supplier_id AND branch_id = :branch_id"
    run_many(session, closed, [of_shop[one] for one in of_shop if one not in points])


_NEAREST = (
    "SELECT g.product_id, g.branch_id, g.latitude, g.longitude, b.name, b.city, b.shows_place, b.opening_hours,"
    " b.time_zone FROM goods_places g LEFT JOIN branches b ON b.id = g.branch_id WHERE g.product_id IN "
)


def nearest_places(session: Session, product_ids: Sequence[int], origin: Point) -> dict[int, NearestPlace]:
    """Of those that lie at several places."""
    if not product_ids or not has_spread_goods(session):
        return {}
    nearest: dict[int, NearestPlace] = {}
    for product_id, branch_id, latitude, longitude, *of_branch in run(session, _NEAREST + id_list(product_ids)):
        km = kilometres_between(origin, Point(latitude, longitude))
        known = nearest.get(product_id)
        if known is None or (km, branch_id) < (known.distance_km, known.branch_id):
            nearest[product_id] = NearestPlace.of(branch_id, km, longitude, *of_branch)
    return nearest
