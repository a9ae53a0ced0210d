"""How a shop is paid, for its owners."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool

from tis.errors import TooLarge, Unprocessable
from tis.http.admission import ticket_of
from tis.http.multipart import read_form
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.responses import no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.payments.method_schemas import (
    CHANGED,
    QRIS_UPLOAD,
    SHOWN,
    UPLOADED,
    MethodsChange,
    PaymentMethodsView,
    QrisChange,
)
from tis.marketplace.payments.methods import change_methods, shown_methods
from tis.marketplace.rates import limited
from tis.media.limits import in_mib

router = APIRouter(
    prefix="/suppliers/{supplier_id}/payment-methods",
    tags=["payments"],
    route_class=CheckedRoute,
    dependencies=[Depends(no_store)],
)


@router.get("", responses=SHOWN)
def show(context: ContextDep, supplier_id: Id) -> PaymentMethodsView:
    """Read how a shop is paid, for its owners. A shop that has said nothing takes cash.

    The keys of a provider are never shown.
    """
    with context.reading() as (session, principal):
        return shown_methods(session, principal, context.market, supplier_id)


@router.put("", responses=CHANGED)
def change(context: ContextDep, supplier_id: Id, body: MethodsChange) -> PaymentMethodsView:
    """Change how a shop is paid, for its owners. What is left out stays; null takes a way away.

    The keys of a provider are stored sealed. Sent again, they replace those before.
    """
    with context.writing() as (session, principal):
        return change_methods(session, principal, context.market, supplier_id, body)


def _require_owner(supplier_id: Id, context: ContextDep) -> None:
    """Before the body is read: nobody else makes the server hold megabytes, or decode."""
    with context.reading() as (session, principal):
        shown_methods(session, principal, context.market, supplier_id)


@router.post("/qris", responses=UPLOADED, openapi_extra=QRIS_UPLOAD, dependencies=[limited("pictures")])
async def upload(
    request: Request, supplier_id: Id, context: ContextDep, _: Annotated[None, Depends(_require_owner)]
) -> PaymentMethodsView:
    """Upload a picture of the shop's static QRIS code, as the `file` of a form. It is read, checked and kept as text.

    Where no code is found in the picture, send its text as `qris` with `PUT`.
    """
    pictures = context.market.pictures.source
    image = await pictures.from_file(await _picture(request, pictures.max_bytes), ticket_of(request))
    text = await run_in_threadpool(context.market.payments.codes.text_in, image.pixels)
    body = MethodsChange(qris=QrisChange.model_construct(text=text))
    return await run_in_threadpool(change, context, supplier_id, body)


async def _picture(request: Request, max_bytes: int) -> bytes:
    def max_bytes_of(name: str, num_before: int) -> int:
        if name != "file" or num_before:
            raise Unprocessable("The form takes one `file`.")
        return max_bytes

    parts = await read_form(request, max_bytes_of)
    if not parts:
        raise Unprocessable("Send a picture as the `file` of a form.")
    if parts[0].is_too_large:
        raise TooLarge(f"The picture is too large: the limit is {in_mib(max_bytes)}.")
    return parts[0].take()
