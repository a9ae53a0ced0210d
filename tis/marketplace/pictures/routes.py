"""Pictures of a product, for the members of its shop, and the picture files, for everybody."""

from typing import Annotated

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter
from sqlalchemy.orm import Session

from tis.errors import NotFound, Unprocessable
from tis.http.admission import ticket_of
from tis.marketplace.context import ContextDep, RequestContext
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.picture_links import HASH_PATTERN, NO_PICTURE, PictureSize
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.responses import JSONText, json_response
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.picture_files.picture_rendering import RenderedPicture
from tis.marketplace.pictures.schemas import (
    ADDED,
    DELETED,
    DESCRIBED,
    LISTED,
    ORDERED,
    SERVED,
    PictureOrder,
    PictureText,
    SellerPicture,
    seller_picture,
)
from tis.marketplace.pictures.service import (
    NewPicture,
    add_picture,
    describe_picture,
    order_pictures,
    pictures_for_member,
    remove_picture,
)
from tis.marketplace.pictures.upload import OPENAPI_BODY, UploadDep
from tis.marketplace.rates import limited

router = APIRouter(tags=["pictures"], route_class=CheckedRoute)
_LIST: TypeAdapter[list[SellerPicture]] = TypeAdapter(list[SellerPicture])
PictureId = Annotated[str, Path(pattern=f"^{HASH_PATTERN}$")]
_HEADERS = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Content-Disposition": "inline",
}


@router.post(
    "/products/{product_id}/pictures",
    response_model=SellerPicture,
    responses=ADDED,
    openapi_extra=OPENAPI_BODY,
    dependencies=[limited("pictures")],
)
async def add(request: Request, product_id: Id, upload: UploadDep, context: ContextDep) -> JSONResponse:
    """Add a picture behind the others: the `file` of a form, or the `url` of JSON, which the server fetches.

    What the product has already changes nothing. Only pixels are kept, as WebP in three sizes: no metadata, the first
    picture of an animation, and white where the picture is transparent.
    """
    pictures = context.market.pictures
    rendered = await pictures.rendered(upload.picture, ticket_of(request))
    view = await pictures.in_thread(lambda: _keep_and_add(context, product_id, rendered, upload.alt))
    context.market.wake_alt_texts()
    return json_response(view)


@router.get("/products/{product_id}/pictures", response_model=list[SellerPicture], responses=LISTED)
def list_pictures(product_id: Id, context: ContextDep) -> JSONResponse:
    """List the pictures of a product with the texts that a model has proposed, for members of its shop."""
    with context.reading() as (session, principal):
        return _listed(session, principal, product_id)


@router.put("/products/{product_id}/pictures", response_model=list[SellerPicture], responses=ORDERED)
def order(product_id: Id, body: PictureOrder, context: ContextDep) -> JSONResponse:
    """Put the pictures of a product into another order. The first one stands for the product in lists."""
    with context.writing() as (session, principal):
        order_pictures(session, principal, product_id, body.order)
        session.flush()
        return _listed(session, principal, product_id)


@router.put("/products/{product_id}/pictures/{picture_id}", response_model=SellerPicture, responses=DESCRIBED)
def describe(product_id: Id, picture_id: PictureId, body: PictureText, context: ContextDep) -> JSONResponse:
    """Say what a picture shows (`alt`), or confirm what a model has proposed (`alt_status` alone)."""
    if not body.model_fields_set:
        raise Unprocessable("Send `alt` or `alt_status`.")
    keeps_text = "alt" not in body.model_fields_set
    with context.writing() as (session, principal):
        describe_picture(session, principal, product_id, picture_id, body.alt, keeps_text=keeps_text)
        session.flush()
        rows = pictures_for_member(session, principal, product_id)
        return json_response(next(seller_picture(*row) for row in rows if row[0].hash == picture_id))


@router.delete("/products/{product_id}/pictures/{picture_id}", response_model=list[SellerPicture], responses=DELETED)
def delete(product_id: Id, picture_id: PictureId, context: ContextDep) -> JSONResponse:
    """Take a picture from a product. Its files are deleted a day after the last product has lost it."""
    with context.writing() as (session, principal):
        remove_picture(session, principal, product_id, picture_id)
        return _listed(session, principal, product_id)


@router.get("/pictures/{picture_id}/{size}.webp", response_class=Response, responses=SERVED)
async def serve(
    picture_id: PictureId,
    size: PictureSize,
    context: ContextDep,
    if_none_match: Annotated[str, Header(max_length=2000)] = "",
) -> Response:
    """Read a picture. What an address shows never changes, so caches may keep it for ever."""
    etag = f'"{picture_id[:32]}-{size}"'
    headers = {**_HEADERS, "ETag": etag}
    if etag in [one.strip().removeprefix("W/") for one in if_none_match.split(",")]:
        return Response(status_code=304, headers=headers)
    data = await context.market.pictures.read(picture_id, size)
    if data is None:
        raise NotFound(NO_PICTURE)
    return Response(data, media_type="image/webp", headers=headers)


def _keep_and_add(
    context: RequestContext, product_id: int, rendered: RenderedPicture, alt: str | None
) -> SellerPicture:
    context.market.pictures.storage.keep(rendered)
    with context.writing() as (session, principal):
        return seller_picture(*add_picture(session, principal, product_id, NewPicture(rendered.hash, alt=alt)))


def _listed(session: Session, principal: Principal, product_id: int) -> JSONResponse:
    views = [seller_picture(*row) for row in pictures_for_member(session, principal, product_id)]
    return JSONText(_LIST.dump_json(views).decode())
