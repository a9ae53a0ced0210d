"""Pictures as answers show them: with an address for each size, and the text that their seller has confirmed."""

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Literal, get_args

from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.tables import ProductPicture, StoredPicture

PictureSize = Literal["small", "medium", "large"]
PICTURE_SIZES: tuple[PictureSize, ...] = get_args(PictureSize)
NO_PICTURE = "Picture not found"
HASH_PATTERN = "[0-9a-f]{64}"
_OWN_PATH = re.compile(rf"/api/pictures/({HASH_PATTERN})/(?:{'|'.join(PICTURE_SIZES)})\.webp")


class PictureUrls(BaseModel):
    """On this server. What an address shows never changes."""

    small: str = Field(description="160 pixels at most")
    medium: str = Field(description="480 pixels at most")
    large: str = Field(description="1280 pixels at most")


class PictureView(BaseModel):
    id: str = Field(description="a hash of its pixels")
    width: int = Field(description="of the largest size, in pixels")
    height: int
    alt: str | None = Field(description="what it shows, once the seller has confirmed it")
    urls: PictureUrls


def picture_path(picture_id: str, size: PictureSize) -> str:
    return f"/api/pictures/{picture_id}/{size}.webp"


def hash_in_url(url: str, public_url: str) -> str | None:
    """Of a picture of this server; None for any other address."""
    match = _OWN_PATH.fullmatch(url.removeprefix(public_url.rstrip("/")))
    return match[1] if match else None


def picture_view(picture_id: str, width: int, height: int, alt: str | None) -> PictureView:
    urls = PictureUrls(**{size: picture_path(picture_id, size) for size in PICTURE_SIZES})
    return PictureView(id=picture_id, width=width, height=height, alt=alt, urls=urls)


def pictures_of(session: Session, product_ids: Collection[int]) -> dict[int, Sequence[PictureView]]:
    """In the order of each product; an empty list for one without."""
    if not product_ids:
        return {}
    rows = session.execute(
        select(ProductPicture, StoredPicture.width, StoredPicture.height)
        .join(StoredPicture, StoredPicture.hash == ProductPicture.hash)
        .where(ProductPicture.product_id.in_(product_ids))
        .order_by(ProductPicture.product_id, ProductPicture.position)
    )
    found: defaultdict[int, list[PictureView]] = defaultdict(list)
    for one, width, height in rows:
        alt = one.alt if one.alt_status == "confirmed" else None
        found[one.product_id].append(picture_view(one.hash, width, height, alt))
    return {product_id: found[product_id] for product_id in product_ids}
