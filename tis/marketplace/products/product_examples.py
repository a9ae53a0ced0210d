"""Examples of products for /docs, and the answers of the product routes."""

from typing import Any

from tis.marketplace.kit.docs import KEY_USED, STALE_VERSION, responses

PRODUCT_FORM: dict[str, Any] = {
    "name": "Laptop ASUS ROG Strix G15",
    "description": "Gaming laptop with RTX 4060",
    "price": 15999000,
    "stock_quantity": 5,
    "category": "laptop",
    "tags": "gaming,asus,rtx",
    "sku": "ASU-ROG-G15-001",
}
PRODUCT_CHANGE: dict[str, Any] = {"price": 14999000, "stock_quantity": 3}
PRODUCT: dict[str, Any] = {
    **PRODUCT_FORM,
    "id": 1,
    "supplier_id": 1,
    "is_available": True,
    "created_at": "2026-11-21T03:00:00Z",
    "supplier_name": "Tech Store Jakarta",
    "distance_km": None,
    "available_quantity": 5,
    "brand": "ASUS",
    "condition": "new",
    "attributes": {"ram_gb": 16},
    "city": "Jakarta",
    "rating": 4.5,
    "rating_count": 2,
    "version": 1,
    "updated_at": "2026-11-21T03:00:00Z",
    "deleted_at": None,
    "fulfilment": None,
}
_NEAR = {
    "distance_km": 3.2,
    "fulfilment": {
        "suggestion": "pickup",
        "reason": "Toko hanya 3,2 km dari Anda: bisa diambil sendiri hari ini.",
    },
}
_NO_PRODUCT = {404: "Product not found"}
_OTHER_SUPPLIER = {403: "This belongs to another supplier."}
DETAIL = {**PRODUCT, "lowest_price_30d": None}

PRODUCT_CREATED = responses(
    DETAIL, {400: "SKU already registered"}, _OTHER_SUPPLIER, {404: "Supplier not found"}, KEY_USED
)
PRODUCT_SEEN = responses({**DETAIL, **_NEAR, "lowest_price_30d": 16499000}, _NO_PRODUCT)
PRODUCT_CHANGED = responses(
    {**DETAIL, "price": 14999000, "stock_quantity": 3, "version": 2, "lowest_price_30d": 15999000},
    {400: "SKU already registered"},
    _OTHER_SUPPLIER,
    _NO_PRODUCT,
    {409: "4 units are reserved: stock_quantity cannot be 3."},
    STALE_VERSION,
)
PRODUCT_DELETED = responses(
    {**DETAIL, "version": 2, "deleted_at": "2026-11-21T04:00:00Z"}, _OTHER_SUPPLIER, _NO_PRODUCT, STALE_VERSION
)
DELETED_PRODUCTS_LISTED = responses(
    [{**PRODUCT, "version": 2, "deleted_at": "2026-11-21T04:00:00Z"}], _OTHER_SUPPLIER, {404: "Supplier not found"}
)
PRODUCT_RESTORED = responses(
    {**DETAIL, "version": 3},
    _OTHER_SUPPLIER,
    _NO_PRODUCT,
    {409: "SKU already registered: another product took it meanwhile."},
    STALE_VERSION,
)
PRICES_SEEN = responses([{"price": 15999000, "valid_from": "2026-11-21T03:00:00Z"}], _NO_PRODUCT)
COMPARED = responses(
    {
        "products": [{**PRODUCT, **_NEAR}, {**PRODUCT, "id": 2, "price": 11999000, "distance_km": 8.0}],
        "rows": [
            {"field": "price", "label": "Harga", "values": [15999000, 11999000], "best": 1},
            {"field": "distance_km", "label": "Jarak (km)", "values": [3.2, 8.0], "best": 0},
            {"field": "attributes.ram_gb", "label": "RAM (GB)", "values": [16, 16], "best": None},
        ],
    },
    {404: "Product 7 not found"},
    {422: "Compare 2 to 10 products."},
)
