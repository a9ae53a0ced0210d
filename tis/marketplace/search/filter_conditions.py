"""SQL of the filters that name several values, and of those that read the product or its shop."""

from tis.marketplace.kit.fields import key_of
from tis.marketplace.search.cursor import ResolvedQuery
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.sql import id_list, placeholders

SqlCondition = tuple[str, dict[str, object]]
_NOTHING = "1 = 0"


def brand_conditions(query: ProductQuery) -> list[SqlCondition]:
    conditions: list[SqlCondition] = []
    excluded = {key_of(brand) for brand in query.exclude_brands}
    if query.any_brand:
        brands = sorted({key_of(brand) for brand in query.any_brand} - excluded)
        names, values = placeholders("brand", brands)
        found = "p.brand_key = :brand0" if len(brands) == 1 else f"p.brand_key IN {names}"
        conditions.append((found if brands else _NOTHING, values))
    elif excluded:
        names, values = placeholders("no_brand", sorted(excluded))
        conditions.append((f"COALESCE(p.brand_key, '') NOT IN {names}", values))
    return conditions


def city_conditions(query: ProductQuery, resolved: ResolvedQuery) -> list[SqlCondition]:
    if resolved.cities:
        names, values = placeholders("city", resolved.cities)
        if resolved.are_cities_rare:
            return [(f"p.product_id IN (SELECT product_id FROM product_search WHERE city_key IN {names})", values)]
        # No column: an index would read all products of large cities.
        return [(f"COALESCE(p.city_key, '') IN {names}", values)]
    if resolved.excluded_cities:
        names, values = placeholders("no_city", resolved.excluded_cities)
        return [(f"COALESCE(p.city_key, '') NOT IN {names}", values)]
    # A part of a name is enough: "Jakarta" matches Jakarta Selatan.
    parts = {f"city{number}": f"%{_escape_like(key_of(city))}%" for number, city in enumerate(query.any_city)}
    matches = " OR ".join(f"p.city_key LIKE :{name} ESCAPE '!'" for name in parts)
    return [(f"({matches})", dict(parts))] if parts else []


def goods_conditions(query: ProductQuery, resolved: ResolvedQuery) -> list[SqlCondition]:
    """Which products, and how many units of them."""
    conditions: list[SqlCondition] = []
    if resolved.product_ids is not None:
        found = f"p.product_id IN {id_list(resolved.product_ids)}" if resolved.product_ids else _NOTHING
        conditions.append((found, {}))
    if query.large_quantity is not None:
        # Not a column of `product_search`: every reservation would write it, and its row is otherwise written only when
        # the last unit goes or the first one comes.
        units = "SELECT 1 FROM products g WHERE g.id = p.product_id AND g.on_hand - g.reserved >= :quantity"
        conditions.append((f"EXISTS ({units})", {"quantity": query.quantity}))
    return conditions


def fulfilment_conditions(query: ProductQuery, distance_km: str | None) -> list[SqlCondition]:
    """`distance_km` is the SQL of the distance to the buyer, if the buyer's place is known."""
    if query.fulfilment is None:
        return []
    shop = "SELECT 1 FROM suppliers u WHERE u.id = p.supplier_id AND "
    if query.fulfilment == "pickup":
        return [(f"EXISTS ({shop}u.pickup_enabled)", {})]
    reach = f" AND (u.delivery_radius_km IS NULL OR {distance_km} <= u.delivery_radius_km)" if distance_km else ""
    return [(f"EXISTS ({shop}u.courier_enabled{reach})", {})]


def _escape_like(text: str) -> str:
    for character in "!%_":
        text = text.replace(character, "!" + character)
    return text
