"""A group of variants as it is shown: what there is to choose from, and what each choice costs."""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.kit.picture_links import PictureView, pictures_of
from tis.marketplace.kit.ratings import weighted_stars
from tis.marketplace.products.schemas import PRODUCT
from tis.marketplace.search.variant_groups import axis_values, options_of
from tis.marketplace.tables import Product, ProductGroup

GROUP = {
    "id": 3,
    "supplier_id": 1,
    "name": "Sepatu Lari Rinjani",
    "axes": ["ukuran", "warna"],
    "options": {"ukuran": ["41", "42"], "warna": ["merah", "hitam"]},
    "rating": 4.5,
    "rating_count": 12,
    "version": 1,
    "variants": [
        {
            "id": 8,
            "name": "Sepatu Lari Rinjani 42 Merah",
            "values": {"ukuran": "42", "warna": "merah"},
            "price": 399000,
            "available_quantity": 3,
            "is_available": True,
            "sku": "RJ-42-M",
            "picture": PRODUCT["picture"],
        }
    ],
}


class VariantView(BaseModel):
    id: int
    name: str
    values: dict[str, str] = Field(description="of each axis")
    price: int
    available_quantity: int = Field(description="0 if it is not on sale")
    is_available: bool
    sku: str | None
    picture: PictureView | None


class GroupView(BaseModel):
    id: int
    supplier_id: int
    name: str
    axes: list[str] = Field(description="names of attributes, in the order in which they are chosen")
    options: dict[str, list[str]] = Field(description="the values of each axis that some variant has")
    rating: float | None = Field(description="of the reviews of all variants")
    rating_count: int
    version: int
    variants: list[VariantView] = Field(description="oldest first, those that are sold out, too")


def group_view(session: Session, group: ProductGroup) -> GroupView:
    [view] = group_views(session, [group])
    return view


def group_views(session: Session, groups: Sequence[ProductGroup]) -> list[GroupView]:
    """In their order."""
    ids = [group.id for group in groups]
    rows = session.scalars(select(Product).where(Product.group_id.in_(ids))).all() if ids else []
    pictures = pictures_of(session, [product.id for product in rows])
    variants: dict[int | None, list[Product]] = {}
    for product in sorted(rows, key=lambda one: one.id):
        variants.setdefault(product.group_id, []).append(product)
    return [_view(group, variants.get(group.id, ()), pictures) for group in groups]


def _view(group: ProductGroup, products: Sequence[Product], pictures: Mapping[int, Sequence[PictureView]]) -> GroupView:
    views = [
        VariantView(
            id=product.id,
            name=product.name,
            values=axis_values(group.axes, product.attributes),
            price=product.price,
            available_quantity=product.on_hand - product.reserved if product.is_available else 0,
            is_available=product.is_available,
            sku=product.sku,
            picture=next(iter(pictures[product.id]), None),
        )
        for product in products
    ]
    return GroupView(
        id=group.id,
        supplier_id=group.supplier_id,
        name=group.name,
        axes=list(group.axes),
        options=options_of(group.axes, [view.values for view in views]),
        rating=_mean(group),
        rating_count=group.rating_count,
        version=group.version,
        variants=views,
    )


def _mean(group: ProductGroup) -> float | None:
    stars, weight = weighted_stars(group)
    return round(stars / weight, 2) if weight else None
