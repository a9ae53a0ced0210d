"""Finds suppliers by name and city, near a place, by what they sell and whether they are open now."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Double,
    Select,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    union_all,
)
from sqlalchemy.orm import Session, aliased

from tis.marketplace.columns import now
from tis.marketplace.kit.fields import key_of
from tis.marketplace.kit.geo import EARTH_RADIUS_KM, Point, kilometres_between, shown_distance
from tis.marketplace.kit.opening_hours import MINUTES_OF_WEEK, minute_of_week
from tis.marketplace.kit.origin import Vicinity
from tis.marketplace.kit.paging import CursorPage
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.ratings import PRIOR_COUNT
from tis.marketplace.policy import require_admin
from tis.marketplace.reading.tokens import tokenize
from tis.marketplace.reading.word_lists import word_list
from tis.marketplace.search.city_filter import MAX_CITIES, cities_of, city_test
from tis.marketplace.search.geo_filter import bounding_box, origin_values
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.supplier_index import NAME, name_key_of
from tis.marketplace.suppliers.schemas import FoundSupplier, supplier_view
from tis.marketplace.tables import UNRATED, ProductFacts, Supplier, SupplierFacts, SupplierHours, SupplierWord

SupplierState = Literal["active", "suspended", "closed"]
_MAX_WORDS = 12
# With more suppliers than fit on a page within one of these, those further away are not measured.
_RINGS_KM = (10.0, 50.0, 250.0)
_MAX_RARE = 500
_AFTER_ALL_WORDS = "\U0010ffff"
# The scores of a word: 0 for a word of the name, more for the beginning of one, and for a place.
_IS_PREFIX, _IS_PLACE = 1, 2


@dataclass(frozen=True)
class SupplierQuery:
    """All fields filter. With a text or an origin the best match comes first, else the oldest supplier."""

    text: str | None = None
    city: str | None = None
    category: str | None = None
    open_now: bool = False
    vicinity: Vicinity = field(default_factory=Vicinity)
    status: SupplierState = "active"
    is_verified: bool = False

    @property
    def is_ranked(self) -> bool:
        return self.text is not None or self.vicinity.origin is not None


def found_suppliers(
    session: Session, search: ProductSearch, principal: Principal, page: CursorPage, query: SupplierQuery
) -> list[FoundSupplier]:
    if query.status != "active":
        require_admin(principal)
    query = _with_said_city(session, search, query)
    if query.is_ranked:
        ids = page.read_ranked(session, ranked_suppliers(session, search, query))
        by_id = {one.id: one for one in session.scalars(select(Supplier).where(Supplier.id.in_(ids)))} if ids else {}
        suppliers = [by_id[one] for one in ids]
    else:
        suppliers = list(page.read(session, Supplier, filtered_suppliers(session, search, query)))
    return found_view(session, principal, suppliers, query.vicinity.origin)


def _with_said_city(session: Session, search: ProductSearch, query: SupplierQuery) -> SupplierQuery:
    """`toko elektronik di Bandung`; but Bandung of `Toko Bandung Jaya` is a part of the name."""
    if query.text is None or query.city:
        return query
    found = search.read(session, ProductQuery(text=query.text)).query
    taken = set(query.text.lower().split()) - set((found.text or "").lower().split())
    if not found.text or not found.city or taken.isdisjoint(word_list("preposition")):
        return query
    return replace(query, text=found.text, city=found.city)


def found_view(
    session: Session, principal: Principal, suppliers: Sequence[Supplier], origin: Point | None
) -> list[FoundSupplier]:
    ratings = _ratings(session, [supplier.id for supplier in suppliers])
    return [
        FoundSupplier(
            **vars(supplier_view(supplier, principal)),
            rating=round(ratings[supplier.id], 2) if supplier.id in ratings else None,
            distance_km=_distance_km(supplier, origin),
        )
        for supplier in suppliers
    ]


def _ratings(session: Session, supplier_ids: Sequence[int]) -> dict[int, float]:
    """The mean of all reviews of their products, of suppliers that have any."""
    facts = select(SupplierFacts.supplier_id, SupplierFacts.stars, SupplierFacts.weight)
    rated = facts.where(SupplierFacts.supplier_id.in_(supplier_ids), SupplierFacts.weight > 0)
    return {supplier_id: stars / weight for supplier_id, stars, weight in session.execute(rated)}


def _distance_km(supplier: Supplier, origin: Point | None) -> float | None:
    if origin is None:
        return None
    place = Point(supplier.public_latitude, supplier.public_longitude)
    return shown_distance(kilometres_between(origin, place), shows_place=supplier.shows_place)


def filtered_suppliers(session: Session, search: ProductSearch, query: SupplierQuery) -> Select[Supplier]:
    """Those of its status, usually open for business; without the words and the place."""
    found = select(Supplier).where(Supplier.deleted_at.is_not(None))
    if query.status != "closed":
        found = select(Supplier).where(Supplier.status == query.status, Supplier.deleted_at.is_(None))
    if query.is_verified:
        found = found.where(Supplier.verified_at.is_not(None))
    if query.city:
        found = found.where(_is_in_city(session, query.city))
    if query.category is not None:
        sold = exists().where(
            ProductFacts.supplier_id == Supplier.id,
            ProductFacts.category_key.in_(search.category_keys(session, query.category)),
            ProductFacts.sellable == 1,
        )
        found = found.where(sold)
    if query.open_now:
        minute = minute_of_week(now().astimezone(UTC))
        is_open = or_(*(_is_open_at(one) for one in (minute, minute + MINUTES_OF_WEEK)))
        found = found.where(exists().where(SupplierHours.supplier_id == Supplier.id, is_open))
    return found


def ranked_suppliers(session: Session, search: ProductSearch, query: SupplierQuery) -> list[Select[Any]]:
    """Match, distance, rating and id of each supplier, in the order of these columns.

    The last statement has all of them. Those before have fewer, which come first.
    """
    found = filtered_suppliers(session, search, query)
    match: ColumnElement[Any] = literal(0)
    if query.text is not None:
        words = list(dict.fromkeys(tokenize(query.text)))[:_MAX_WORDS]
        if not words:
            return []
        matches = _matches(session, words)
        match = case((SupplierFacts.name_key == name_key_of(words), 0), else_=matches.c.score + 1)
        found = found.join(matches, matches.c.supplier_id == Supplier.id)
    found = found.outerjoin(SupplierFacts, SupplierFacts.supplier_id == Supplier.id)
    origin, radius_km = query.vicinity.origin, query.vicinity.radius_km
    distance: ColumnElement[float] = literal(0.0, Double)
    if origin is not None:
        distance = _distance_to(origin, search.index.least_function)
    found = found.with_only_columns(
        match.label("tier"), distance.label("km"), -_rating_rank().label("unrated"), Supplier.id.label("id")
    )
    if origin is None:
        return [found]
    if radius_km is not None:
        return [_within(found, origin, radius_km)]
    rings = [] if query.text is not None else [_within(found, origin, radius) for radius in _RINGS_KM]
    return [*rings, found]


def _matches(session: Session, words: Sequence[str]) -> Any:
    """The suppliers with all words, of which the last may be the beginning of one."""
    rare = _rare_word(session, words)
    is_place = case((SupplierWord.scope == NAME, 0), else_=_IS_PLACE)
    is_prefix = case((SupplierWord.word == words[-1], 0), else_=_IS_PREFIX)
    parts = []
    for number in range(len(words)):
        score = func.min(is_place + is_prefix if number == len(words) - 1 else is_place)
        part = select(SupplierWord.supplier_id, score.label("score")).where(_is_word(SupplierWord, words, number))
        if rare is not None and rare != number:
            other = aliased(SupplierWord)
            part = part.where(
                SupplierWord.supplier_id.in_(select(other.supplier_id).where(_is_word(other, words, rare)))
            )
        parts.append(part.group_by(SupplierWord.supplier_id))
    if len(words) == 1:
        return parts[0].subquery()
    each = union_all(*parts).subquery()
    all_words = select(each.c.supplier_id, func.sum(each.c.score).label("score")).group_by(each.c.supplier_id)
    return all_words.having(func.count() == len(words)).subquery()


def _is_word(table: type[SupplierWord], words: Sequence[str], number: int) -> ColumnElement[bool]:
    word = words[number]
    return table.word.between(word, word + _AFTER_ALL_WORDS) if number == len(words) - 1 else table.word == word


def _rare_word(session: Session, words: Sequence[str]) -> int | None:
    """The number of one that few suppliers have: the other words are then read of these suppliers alone."""
    if len(words) == 1:
        return None
    counts = []
    for number in range(len(words)):
        some = select(SupplierWord.supplier_id).where(_is_word(SupplierWord, words, number)).limit(_MAX_RARE).subquery()
        counts.append(select(select(func.count()).select_from(some).scalar_subquery()))
    num_suppliers = session.execute(union_all(*(one.add_columns(literal(n)) for n, one in enumerate(counts)))).all()
    count, number = min((count, number) for count, number in num_suppliers)
    return number if count < _MAX_RARE else None


def _is_in_city(session: Session, city: str) -> ColumnElement[bool]:
    """The same filter as that of products."""
    if is_found := city_test(city):
        keys = [key for key in cities_of(session, "suppliers") if is_found(key)]
        if len(keys) <= MAX_CITIES:
            # No column, so that lists are read in their order until a page is full.
            return func.coalesce(Supplier.city_key, "").in_(keys)
    return Supplier.city_key.contains(key_of(city), autoescape=True)


def _distance_to(origin: Point, least_function: str) -> ColumnElement[float]:
    """`haversine_sql` for statements of SQLAlchemy."""
    at = {name: literal(value, Double) for name, value in origin_values(origin).items()}
    lat = func.radians(Supplier.public_latitude + literal(90.0, Double))
    lon = func.radians(Supplier.public_longitude + literal(180.0, Double))
    half = literal(2.0, Double)
    squared = func.power(func.sin((lat - at["origin_lat"]) / half), half) + at["origin_cos"] * func.sin(
        lat
    ) * func.power(func.sin((lon - at["origin_lon"]) / half), half)
    least: ColumnElement[float] = getattr(func, least_function)(literal(1.0, Double), squared)
    return literal(2 * EARTH_RADIUS_KM, Double) * func.asin(func.sqrt(least))


def _rating_rank() -> ColumnElement[Any]:
    """`rating_rank_of` in SQL: a shop with one five does not stand before one with forty times 4.8."""
    stars, weight = (func.coalesce(column, 0.0) for column in (SupplierFacts.stars, SupplierFacts.weight))
    prior_stars, prior_weight = literal(PRIOR_COUNT * UNRATED, Double), literal(float(PRIOR_COUNT), Double)
    rank: ColumnElement[Any] = (prior_stars + stars) / (prior_weight + weight)
    return rank


def _within(found: Select[Any], origin: Point, radius_km: float) -> Select[Any]:
    box = bounding_box(origin, radius_km)
    ranges = [Supplier.public_longitude.between(west, east) for west, east in box.longitude_ranges]
    in_box = found.where(Supplier.public_latitude.between(box.south, box.north), or_(*ranges))
    inner = in_box.subquery()
    return select(*inner.c).where(inner.c.km <= radius_km)


def _is_open_at(minute: int) -> ColumnElement[bool]:
    return (SupplierHours.opens <= minute) & (SupplierHours.closes > minute)
