"""Builds the SQL that selects all products of a query. Pages, totals and facets are read from it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tis.marketplace.kit.fields import key_of
from tis.marketplace.search.backends.text_index import RowSource, TextIndex
from tis.marketplace.search.filter_keys import FilterKeys, attribute_tests, with_attribute
from tis.marketplace.search.geo_filter import (
    BRANCH_PLACES,
    SUPPLIER_PLACES,
    BoundingBox,
    bounding_box,
    goods_distance_sql,
    haversine_sql,
    origin_values,
)
from tis.marketplace.search.index_tokens import category_token
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.sql import id_list, placeholders
from tis.marketplace.search.text_query import TextMatch, excluded_phrases

# A LIMIT that changes no result: databases do not flatten a subquery with a LIMIT, which would compute each distance
# several times.
NO_LIMIT = 1_000_000_000
_NOTHING = "1 = 0"
# The facet that counts what the condition filters, if one does; the SQL and its values.
FilterCondition = tuple[str, str, dict[str, object]]


def candidate_query(
    index: TextIndex,
    query: ProductQuery,
    keys: FilterKeys,
    match: TextMatch | None,
    radius_km: float | None,
    *,
    products_first: bool = False,
    stops_early: bool = False,
) -> RowSource:
    """Reads the text index first if there is a text, else suppliers in the radius; the reverse is 100 times slower.

    `products_first` is for lists that are read in the order of an index of products until a page is full, and
    `stops_early` for those of which a statement reads no more than its LIMIT.
    """
    box = bounding_box(query.origin, radius_km) if query.origin and radius_km is not None else None
    is_narrow = query.supplier_id is not None or keys.product_ids is not None or products_first
    suppliers_first = match is None and not is_narrow and box is not None
    excluded = excluded_phrases(query.exclude_terms)
    source = RowSource()
    if match:
        source = index.match_source(
            narrowed(replace(match, excluded_phrases=excluded), query, keys, radius_km), stops_early=stops_early
        )
    conditions = [*filter_conditions(query, keys)]
    # With a sign, SQLite does not ask the text index for each product of a set.
    id_of_filters = source.product_id if source.product_id == "p.product_id" else f"+{source.product_id}"
    conditions += _attribute_conditions(query, keys, id_of_filters)
    distance_km, tables = None, source.tables
    if query.origin:
        distance_km = haversine_sql("p", index.least_function)
        conditions.append(("", "", {**origin_values(query.origin)}))
        if box:
            in_box, edges = box.condition("s" if suppliers_first else "p")
            if suppliers_first:
                nearby = _shops_in(box, index.least_function, with_branches=keys.has_spread_goods)
                tables = f"({nearby}) s {index.ordered_join} product_search p ON p.supplier_id = s.id"
                in_box, distance_km = "", "s.km"
        if keys.has_spread_goods:
            distance_km = goods_distance_sql(index.least_function, distance_km)
        if box:
            if in_box and keys.has_spread_goods:
                in_box = f"(p.is_spread = 1 OR ({in_box}))"
            conditions.append(("", in_box, {**edges}))
            conditions.append(("", f"{distance_km} <= :radius_km", {"radius_km": radius_km}))
    if query.fulfilment is not None:
        conditions.append(("", _offered(query.fulfilment == "pickup", distance_km), {}))
    if excluded and not match:
        conditions.append(("", *index.without_phrases(excluded)))
    values = dict(source.values)
    for _, _, named in conditions:
        values |= named
    every = (*source.conditions, *(sql for _, sql, _ in conditions if sql))
    return replace(source, tables=tables, conditions=every, values=values, distance_km=distance_km)


def _shops_in(box: BoundingBox, least_function: str, *, with_branches: bool) -> str:
    """`id` and `km` of the shops in a box, by their own address; with those that have a branch there."""
    shops = f"SELECT s.id, {haversine_sql('s', least_function)} AS km FROM {SUPPLIER_PLACES} WHERE"
    in_box, _ = box.condition("s")
    if not with_branches:
        return f"{shops} {in_box} LIMIT {NO_LIMIT}"
    branch_in_box, _ = box.condition("b")
    by_branch = f"{shops} s.id IN (SELECT b.supplier_id FROM {BRANCH_PLACES} WHERE {branch_in_box})"
    return f"SELECT id, km FROM ({shops} {in_box} UNION {by_branch}) x LIMIT {NO_LIMIT}"


def narrowed(match: TextMatch, query: ProductQuery, keys: FilterKeys, radius_km: float | None = None) -> TextMatch:
    """Filters by category and grid cell inside the text index, too, which reads fewer rows of `product_search`."""
    required: list[tuple[str, ...]] = []
    tokens = [category_token(key) for key in keys.categories or ()]
    if tokens and all(tokens):
        required.append(tuple(dict.fromkeys(filter(None, tokens))))
    if query.origin and radius_km is not None and (cells := bounding_box(query.origin, radius_km).cell_tokens):
        required.append(cells)
    return replace(match, required_tokens=tuple(required)) if required else match


def filter_conditions(query: ProductQuery, keys: FilterKeys, prefix: str = "") -> Iterator[FilterCondition]:
    """Those on columns of `product_search p`. The names of their values begin with the prefix."""
    yield "", "p.sellable = 1" if query.available_only else "p.sellable >= 0", {}
    if keys.categories is not None:
        yield "category", *_is_one_of("p.category_key", keys.categories, f"{prefix}category")
    excluded = {key_of(brand) for brand in query.exclude_brands}
    if query.any_brand:
        brands = sorted({key_of(brand) for brand in query.any_brand} - excluded)
        yield "brand", *_is_one_of("p.brand_key", brands, f"{prefix}brand")
    elif excluded:
        names, values = placeholders(f"{prefix}no_brand", sorted(excluded))
        yield "", f"COALESCE(p.brand_key, '') NOT IN {names}", values
    yield from _city_conditions(query, keys, prefix)
    if keys.product_ids is not None:
        yield "", f"p.product_id IN {id_list(keys.product_ids)}" if keys.product_ids else _NOTHING, {}
    if query.of_verified_shops:
        few = keys.verified_suppliers
        with_badge = "EXISTS (SELECT 1 FROM suppliers v WHERE v.id = p.supplier_id AND v.verified_at IS NOT NULL)"
        sql = with_badge if few is None else f"p.supplier_id IN {id_list(few)}" if few else _NOTHING
        yield "", sql, {}
    if query.on_promotion:
        yield "", "EXISTS (SELECT 1 FROM promotions o WHERE o.product_id = p.product_id AND o.state = 'running')", {}
    if query.large_quantity is not None:
        # Not a column of `product_search`: every reservation would write it, and its row is otherwise written only when
        # the last unit goes or the first one comes.
        units = "SELECT 1 FROM products g WHERE g.id = p.product_id AND g.on_hand - g.reserved >= :quantity"
        yield "", f"EXISTS ({units})", {"quantity": query.quantity}
    for facet, column, operator, value in (
        ("", "supplier_id", "=", query.supplier_id),
        ("", "condition", "=", query.condition),
        ("price", "price", ">=", query.min_price),
        ("price", "price", "<=", query.max_price),
        ("", "rating", ">=", query.min_rating),
    ):
        if value is not None:
            name = f"{prefix}{column}{'_max' if operator == '<=' else ''}"
            yield facet, f"p.{column} {operator} :{name}", {name: value}


def _city_conditions(query: ProductQuery, keys: FilterKeys, prefix: str) -> Iterator[FilterCondition]:
    facet = "city" if query.any_city else ""
    cities = keys.cities
    if cities.found and cities.are_rare:
        names, values = placeholders(f"{prefix}city", cities.found)
        yield facet, f"p.product_id IN (SELECT product_id FROM product_search WHERE city_key IN {names})", values
    elif cities.found:
        # No column: an index would read all products of large cities.
        yield facet, *_is_one_of("COALESCE(p.city_key, '')", cities.found, f"{prefix}city")
    elif cities.excluded:
        names, values = placeholders(f"{prefix}no_city", cities.excluded)
        yield "", f"COALESCE(p.city_key, '') NOT IN {names}", values
    elif query.any_city:
        # A part of a name is enough: "Jakarta" matches Jakarta Selatan.
        parts = [f"%{_escape_like(key_of(city))}%" for city in query.any_city]
        _, values = placeholders(f"{prefix}city", parts)
        matches = " OR ".join(f"p.city_key LIKE :{name} ESCAPE '!'" for name in values)
        yield "city", f"({matches})", values


def _attribute_conditions(query: ProductQuery, keys: FilterKeys, product_id: str) -> Iterator[FilterCondition]:
    """`product_id` is the column of the candidates."""
    for number, one in enumerate(query.attributes):
        name = f"attr{number}"
        tests, values = attribute_tests(one, name)
        if one in keys.rare_attributes:
            # With a LIMIT it is read once: PostgreSQL would read the range of numbers again for each product.
            ids = f"SELECT product_id FROM ({with_attribute(name, tests)} LIMIT {NO_LIMIT}) y"
            condition = f"{product_id} IN ({ids})"
        else:
            row = (
                f"(SELECT 1 FROM product_attributes a WHERE a.product_id = {product_id}"
                f" AND a.name = :{name} AND ({' OR '.join(tests)}))"
            )
            condition = f"{row} IS NULL" if one.operator == "ne" else f"{row} = 1"
        yield "attributes", condition, {name: one.name, **values}


def _is_one_of(column: str, keys: Sequence[str], name: str) -> tuple[str, dict[str, object]]:
    names, values = placeholders(name, keys)
    return f"{column} = :{name}0" if len(keys) == 1 else f"{column} IN {names}" if keys else _NOTHING, values


def _offered(is_pickup: bool, distance_km: str | None) -> str:
    """What the shop offers. `distance_km` is the SQL of the distance to the buyer, if the buyer's place is known."""
    shop = "SELECT 1 FROM suppliers u WHERE u.id = p.supplier_id AND "
    if is_pickup:
        return f"EXISTS ({shop}u.pickup_enabled)"
    reach = f" AND (u.delivery_radius_km IS NULL OR {distance_km} <= u.delivery_radius_km)" if distance_km else ""
    return f"EXISTS ({shop}u.courier_enabled{reach})"


def _escape_like(text: str) -> str:
    for character in "!%_":
        text = text.replace(character, "!" + character)
    return text
