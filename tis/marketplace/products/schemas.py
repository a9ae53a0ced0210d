"""Bodies, views and answers of the routes of products, with their examples."""

import json
import math
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field

from tis.bounds import MaxItems
from tis.marketplace.kit.docs import KEY_USED, STALE_VERSION, responses, schema_example
from tis.marketplace.kit.fields import MAX_ATTRIBUTES, LongText, Price, ShortName, Sku, Stock, Tags, Title
from tis.marketplace.kit.picture_links import PictureView, picture_view
from tis.marketplace.kit.promoted_prices import CurrentPrice, ShownPromotion
from tis.marketplace.kit.ratings import mean_rating
from tis.marketplace.search.product_rows import ProductRow
from tis.marketplace.search.query import NearestPlace
from tis.marketplace.tables import Product, ProductGroup

_MAX_ATTRIBUTE_BYTES = 8 * 1024
_MAX_NUMBER = 2**53  # above it JavaScript rounds, and JSONB turns floats into integers

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
    "supplier_verified": False,
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
    "picture": picture_view(
        "3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea", 1280, 960, "Laptop hitam, layar terbuka"
    ).model_dump(),
    "group_id": None,
    "variants": None,
    "promotion": None,
}
PROMOTION: dict[str, Any] = {
    "id": 7,
    "normal_price": 15999000,
    "lowest_price_30d": 15499000,
    "discount_percent": 9,
    "begins_at": "2026-12-12T00:00:00Z",
    "ends_at": "2026-12-13T00:00:00Z",
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
DETAIL = {**PRODUCT, "pictures": [PRODUCT["picture"]], "lowest_price_30d": None, "group": None}

PRODUCT_CREATED = responses(
    DETAIL, {400: "SKU already registered"}, _OTHER_SUPPLIER, {404: "Supplier not found"}, KEY_USED
)
PRODUCT_SEEN = responses(
    {**DETAIL, **_NEAR, "price": 13999000, "promotion": PROMOTION, "lowest_price_30d": 15499000}, _NO_PRODUCT
)
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


def _check_attributes(attributes: dict[str, Any]) -> dict[str, Any]:
    for name, value in attributes.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name}: must be a finite number")
        if isinstance(value, int | float) and abs(value) > _MAX_NUMBER:
            raise ValueError(f"{name}: must be between -2**53 and 2**53")
    if len(json.dumps(attributes, ensure_ascii=False).encode()) > _MAX_ATTRIBUTE_BYTES:
        raise ValueError(f"must take at most {_MAX_ATTRIBUTE_BYTES} bytes")
    return attributes


Condition = Literal["new", "used"]
Rating = Annotated[float, Field(ge=0, le=5, allow_inf_nan=False)]
Attributes = Annotated[
    dict[ShortName, LongText | bool | int | float | None],
    MaxItems(MAX_ATTRIBUTES),
    AfterValidator(_check_attributes),
]
_RATING_DESCRIPTION = "set by admins; ignored from others if tokens are required"


class ProductForm(BaseModel):
    model_config = schema_example(PRODUCT_FORM)

    name: Title
    description: LongText | None = None
    price: Price
    stock_quantity: Stock
    category: ShortName
    tags: Tags | None = Field(None, description="words, separated by commas")
    sku: Sku | None = Field(None, description="unique among the products of one supplier")
    brand: ShortName | None = None
    condition: Condition = "new"
    attributes: Attributes | None = Field(None, description="a flat object, such as `ram_gb: 16`")
    is_available: bool = True
    rating: Rating | None = Field(None, description=_RATING_DESCRIPTION)


Version = Annotated[int, Field(ge=1)]
# A field that is left out stays unchanged. Only nullable fields accept null, which clears them.
_UNCHANGED: Any = None


class ProductChange(BaseModel):
    model_config = schema_example(PRODUCT_CHANGE)

    name: Title = _UNCHANGED
    description: LongText | None = None
    price: Price = _UNCHANGED
    stock_quantity: Stock = _UNCHANGED
    category: ShortName = _UNCHANGED
    tags: Tags | None = None
    sku: Sku | None = None
    brand: ShortName | None = None
    condition: Condition = _UNCHANGED
    attributes: Attributes | None = None
    is_available: bool = _UNCHANGED
    rating: Rating | None = Field(None, description=_RATING_DESCRIPTION)
    version: Version | None = Field(None, description="the version that you read, as in `If-Match`")


class Fulfilment(BaseModel):
    """How the goods would best get to the buyer, and why."""

    suggestion: Literal["pickup", "courier", "parcel"]
    reason: str


class VariantsView(BaseModel):
    """What there is to choose from: of the variants that can be bought now, or of all if none can."""

    group_id: int
    name: str
    count: int
    price_from: int
    price_to: int
    options: dict[str, list[str]] = Field(description="the values of each axis, such as sizes and colours")


class NearestPlaceView(BaseModel):
    branch_id: int = Field(description="0: the shop's own address")
    name: str
    city: str


class ProductView(BaseModel):
    id: int
    supplier_id: int
    name: str
    description: str | None
    price: int = Field(description="in force now: that of the promotion, if there is one")
    stock_quantity: int
    category: str
    tags: str | None
    sku: str | None
    is_available: bool
    created_at: datetime
    supplier_name: str
    supplier_verified: bool = Field(description="the person behind the shop showed an identity card")
    distance_km: float | None = None
    available_quantity: int
    brand: str | None
    condition: Condition
    attributes: dict[str, Any]
    city: str
    rating: float | None
    rating_count: int
    version: int
    updated_at: datetime
    deleted_at: datetime | None = None
    fulfilment: Fulfilment | None = None
    picture: PictureView | None = Field(None, description="the first one")
    group_id: int | None = Field(None, description="of a variant; `rating` is the mean of all variants of its group")
    variants: VariantsView | None = Field(None, description="in lists: of the group that this product stands for")
    promotion: ShownPromotion | None = Field(None, description="if the price is lower for a while")
    place: NearestPlaceView | None = Field(
        None, description="from where `distance_km` counts, if the shop has it at several places"
    )


def product_view(
    product: Product | ProductRow,
    distance_km: float | None = None,
    fulfilment: Fulfilment | None = None,
    picture: PictureView | None = None,
    variants: VariantsView | None = None,
    current: CurrentPrice | None = None,
    place: NearestPlace | None = None,
) -> ProductView:
    """A `Product` needs its supplier loaded (`joinedload(Product.supplier)`), and `picture` and `current`, which a
    `ProductRow` has. The distance is shown as it is given: see `shown_distance`."""
    if isinstance(product, ProductRow):
        current, picture = CurrentPrice(product.price, product.promotion), product.cover
    return ProductView(
        id=product.id,
        supplier_id=product.supplier_id,
        name=product.name,
        description=product.description,
        price=current.price if current else product.price,
        stock_quantity=product.on_hand,
        category=product.category,
        tags=product.tags,
        sku=product.sku,
        is_available=product.is_available,
        created_at=product.created_at,
        supplier_name=product.supplier.business_name,
        supplier_verified=product.supplier.is_verified,
        distance_km=distance_km,
        available_quantity=product.on_hand - product.reserved,
        brand=product.brand,
        condition=product.condition,
        attributes=product.attributes,
        city=product.supplier.city,
        rating=rating_of(product),
        rating_count=_counters(product).rating_count,
        version=product.version,
        updated_at=product.updated_at,
        deleted_at=product.deleted_at,
        fulfilment=fulfilment,
        picture=picture,
        promotion=current.promotion if current else None,
        group_id=product.group_id,
        variants=variants,
        place=_place_view(product, place),
    )


def _place_view(product: Product | ProductRow, place: NearestPlace | None) -> NearestPlaceView | None:
    if place is None:
        return None
    shop = product.supplier
    return NearestPlaceView(
        branch_id=place.branch_id, name=place.name or shop.business_name, city=place.city or shop.city
    )


def rating_of(product: Product | ProductRow) -> float | None:
    """The mean of the reviews, rounded; without any, the rating that an admin granted."""
    counters = _counters(product)
    mean = mean_rating(product, counters)
    return round(mean, 2) if counters.rating_count and mean is not None else mean


def _counters(product: Product | ProductRow) -> Product | ProductRow | ProductGroup:
    """Of the reviews of all variants. A `ProductRow` has them as its own."""
    return product if isinstance(product, ProductRow) else product.group or product
