"""Builds the SQL that selects all products of a query. Pages, totals and facets are read from it."""

from dataclasses import replace

from tis.marketplace.reading.tokens import category_token
from tis.marketplace.search.attribute_filter import attribute_conditions
from tis.marketplace.search.backends.text_index import RowSource, TextIndex
from tis.marketplace.search.cursor import ResolvedQuery
from tis.marketplace.search.filters import (
    SqlCondition,
    brand_conditions,
    city_conditions,
    fulfilment_conditions,
    goods_conditions,
)
from tis.marketplace.search.geo_filter import (
    SUPPLIER_PLACES,
    bounding_box,
    haversine_sql,
    origin_values,
)
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.sql import placeholders
from tis.marketplace.search.text_query import TextMatch, excluded_phrases

# A LIMIT that changes no result: databases do not flatten a subquery with a LIMIT, which would compute each distance
# several times.
NO_LIMIT = 1_000_000_000


def candidate_query(
    index: TextIndex,
    query: ProductQuery,
    resolved: ResolvedQuery,
    match: TextMatch | None,
    radius_km: float | None,
    *,
    products_first: bool = False,
) -> RowSource:
    """Reads the text index first if there is a text, else suppliers in the radius; the reverse is 100 times slower.

    `products_first` is for lists that are read in the order of an index of products until a page is full.
    """
    box = bounding_box(query.origin, radius_km) if query.origin and radius_km is not None else None
    is_narrow = query.supplier_id is not None or resolved.product_ids is not None or products_first
    suppliers_first = match is None and not is_narrow and box is not None
    excluded = excluded_phrases(query.exclude_terms)
    source = RowSource()
    if match:
        wanted = replace(match, excluded_phrases=excluded)
        source = index.match_source(narrowed(wanted, query, resolved, radius_km))
    conditions, values = _filter_conditions(query, resolved)
    # With a sign, SQLite does not ask the text index for each product of a set.
    id_of_filters = source.product_id if source.product_id == "p.product_id" else f"+{source.product_id}"
    of_attributes, named = attribute_conditions(query.attributes, resolved.rare_attributes, id_of_filters)
    conditions, values = conditions + of_attributes, values | named
    distance_km = None
    tables = source.tables
    if query.origin:
        distance_km = haversine_sql("p", index.least_function)
        values |= origin_values(query.origin)
        if box:
            in_box, edges = box.condition("s" if suppliers_first else "p")
            values |= edges | {"radius_km": radius_km}
            if suppliers_first:
                tables = (
                    f"(SELECT s.id, {haversine_sql('s', index.least_function)} AS km FROM {SUPPLIER_PLACES}"
                    f" WHERE {in_box} LIMIT {NO_LIMIT}) s"
                    f" {index.ordered_join} product_search p ON p.supplier_id = s.id"
                )
                distance_km = "s.km"
            else:
                conditions.append(in_box)
            conditions.append(f"{distance_km} <= :radius_km")
    for condition, condition_values in (
        *fulfilment_conditions(query, distance_km),
        *([index.without_phrases(excluded)] if excluded and not match else ()),
    ):
        conditions.append(condition)
        values |= condition_values
    return replace(
        source,
        tables=tables,
        conditions=(*source.conditions, *conditions),
        values={**source.values, **values},
        distance_km=distance_km,
    )


def narrowed(
    match: TextMatch, query: ProductQuery, resolved: ResolvedQuery, radius_km: float | None = None
) -> TextMatch:
    """Filters by category and grid cell inside the text index, too, which reads fewer rows of `product_search`."""
    required: list[tuple[str, ...]] = []
    categories = resolved.categories if query.category is not None else None
    tokens = [token for key in categories or () if (token := category_token(key))]
    if tokens and len(tokens) == len(categories or ()):
        required.append(tuple(dict.fromkeys(tokens)))
    if query.origin and radius_km is not None and (cells := bounding_box(query.origin, radius_km).cell_tokens):
        required.append(cells)
    return replace(match, required_tokens=tuple(required)) if required else match


def _filter_conditions(query: ProductQuery, resolved: ResolvedQuery) -> tuple[list[str], dict[str, object]]:
    conditions = ["p.sellable = 1" if query.available_only else "p.sellable >= 0"]
    values: dict[str, object] = {}
    if resolved.categories is not None and query.category is not None:
        names, keys = placeholders("category", resolved.categories)
        values |= keys
        conditions.append(f"p.category_key IN {names}" if len(keys) > 1 else "p.category_key = :category0")
    others: list[SqlCondition] = [
        *brand_conditions(query),
        *city_conditions(query, resolved),
        *goods_conditions(query, resolved),
    ]
    for condition, condition_values in others:
        conditions.append(condition)
        values |= condition_values
    for column, operator, value in (
        ("supplier_id", "=", query.supplier_id),
        ("condition", "=", query.condition),
        ("price", ">=", query.min_price),
        ("price", "<=", query.max_price),
        ("rating", ">=", query.min_rating),
    ):
        if value is not None:
            name = f"{column}{'_max' if operator == '<=' else ''}"
            conditions.append(f"p.{column} {operator} :{name}")
            values[name] = value
    return conditions, values
