"""Bodies, views and answers of the routes of pictures, with their examples."""

from typing import Annotated, Any, Literal

from pydantic import Field

from tis.bounds import MaxItems
from tis.marketplace.kit.docs import Responses, responses
from tis.marketplace.kit.fields import AltText
from tis.marketplace.kit.picture_links import HASH_PATTERN, NO_PICTURE, PictureView, picture_view
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.pictures.service import CHANGED_MEANWHILE, MAX_PICTURES
from tis.marketplace.tables import ProductPicture, StoredPicture

_MAX_URL_CHARS = 8192
PictureHash = Annotated[str, Field(pattern=f"^{HASH_PATTERN}$")]
AltStatus = Literal["proposed", "confirmed"]

_HASH = "3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea"
EXAMPLE: dict[str, Any] = {
    **picture_view(_HASH, 1280, 960, "Laptop hitam, layar terbuka, dilihat dari depan").model_dump(),
    "alt_status": "confirmed",
}
PROPOSED = {**EXAMPLE, "alt": "Laptop hitam di atas meja", "alt_status": "proposed"}
URL_BODY = {"url": "https://example.com/laptop.jpg", "alt": EXAMPLE["alt"]}
_REFUSED = {403: "This belongs to another supplier.", 404: "Product not found"}
_ABSENT = {403: _REFUSED[403], 404: NO_PICTURE}

ADDED: Responses = responses(
    EXAMPLE,
    _REFUSED,
    {400: "The format of this image is not supported. Send one of: JPEG, PNG, WebP, GIF, BMP, TIFF."},
    {409: f"A product has at most {MAX_PICTURES} pictures: delete one first."},
    {413: "The picture is too large: the limit is 32 MiB."},
    {422: "The form has no file called `file`."},
    {503: "The store of pictures does not answer. Retry later."},
)
LISTED: Responses = responses([EXAMPLE, PROPOSED], _REFUSED)
ORDERED: Responses = responses([EXAMPLE, PROPOSED], _REFUSED, {409: CHANGED_MEANWHILE})
DESCRIBED: Responses = responses(
    EXAMPLE, _ABSENT, {409: "Nothing is proposed for this picture: send `alt`."}, {422: "Send `alt` or `alt_status`."}
)
DELETED: Responses = responses([PROPOSED], _ABSENT)
SERVED: Responses = {
    200: {
        "description": "The picture",
        "content": {"image/webp": {"schema": {"type": "string", "format": "binary"}, "example": "RIFF....WEBP"}},
    },
    304: {"description": "The client has it"},
    404: {"description": NO_PICTURE, "content": {"application/json": {"example": {"detail": NO_PICTURE}}}},
}


class SellerPicture(PictureView):
    """A picture as members of the shop see it: with what a model proposes, which nobody else sees."""

    alt_status: AltStatus | None = Field(description="`proposed` by a model, `confirmed` by the seller; null: neither")


class PictureUrl(StrictBody):
    """A picture that the server fetches."""

    url: Annotated[str, Field(min_length=1, max_length=_MAX_URL_CHARS)]
    alt: AltText | None = None


class PictureOrder(StrictBody):
    order: Annotated[list[PictureHash], MaxItems(MAX_PICTURES)] = Field(
        description="the ids of all pictures of the product, the first one first"
    )

    model_config = {"json_schema_extra": {"example": {"order": [_HASH]}}}


class PictureText(StrictBody):
    alt: AltText | None = Field(None, description="what the picture shows; null: nothing that has to be said")
    alt_status: Literal["confirmed"] | None = Field(None, description="alone: the proposed text is right")

    model_config = {"json_schema_extra": {"example": {"alt": EXAMPLE["alt"]}}}


def seller_picture(link: ProductPicture, picture: StoredPicture) -> SellerPicture:
    view = picture_view(link.hash, picture.width, picture.height, link.alt)
    return SellerPicture(**dict(view), alt_status=link.alt_status)
