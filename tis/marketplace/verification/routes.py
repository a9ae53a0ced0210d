"""A shop shows a card, looks at what became of it, and withdraws; admins decide what is doubtful."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from tis.errors import Unavailable, Unprocessable
from tis.http.admission import ticket_of
from tis.http.multipart import FormPart, read_form
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.card_check import CardCheck
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.paging import Before, Limit, page_response
from tis.marketplace.kit.responses import Message, no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.policy import require_owner
from tis.marketplace.rates import limited
from tis.marketplace.verification.schemas import (
    CARD_FORM,
    CHECKED,
    DECIDED,
    LISTED,
    SHOWN,
    WITHDRAWN,
    DoubtfulSupplier,
    VerificationDecision,
    VerificationStatus,
    VerificationView,
)
from tis.marketplace.verification.service import (
    decide,
    find_verification,
    list_verifications,
    record_card,
    require_readable,
    verification_view,
    withdraw,
)

router = APIRouter(route_class=CheckedRoute)
_MAX_CONSENT_BYTES = 16


def _require_owner(supplier_id: Id, context: ContextDep) -> None:
    """Before the body is read: nobody else makes the server read cards."""
    with context.reading() as (session, principal):
        require_owner(principal, supplier_id)


def _card_check(context: ContextDep) -> CardCheck:
    if context.market.card_check is None:
        raise Unavailable("Cards cannot be read here.")
    return context.market.card_check


async def _read_card_form(
    request: Request,
    check: Annotated[CardCheck, Depends(_card_check)],
    _: Annotated[None, Depends(_require_owner)],
) -> FormPart:
    """Without `consent` the picture is not looked at."""
    wanted = {"image": check.max_bytes, "consent": _MAX_CONSENT_BYTES}
    seen = set[str]()

    def max_bytes_of(name: str, _: int) -> int:
        if name not in wanted or name in seen:
            raise Unprocessable("The form takes one `image` and `consent`.", code="bad_form")
        seen.add(name)
        return wanted[name]

    parts = {part.name: part for part in await read_form(request, max_bytes_of) or ()}
    consent = parts.get("consent")
    if consent is None or consent.take() != b"true":
        raise Unprocessable(
            "A card is read only with the consent of its holder: send `consent` with `true`.",
            param="consent",
            code="consent_missing",
        )
    if "image" not in parts:
        raise Unprocessable("The form has no picture called `image`.", param="image", code="missing_field")
    return parts["image"]


@router.put(
    "/suppliers/{supplier_id}/verification",
    responses=CHECKED,
    openapi_extra=CARD_FORM,
    tags=["suppliers"],
    dependencies=[limited("card_checks"), Depends(no_store)],
)
async def show_card(
    request: Request,
    supplier_id: Id,
    context: ContextDep,
    check: Annotated[CardCheck, Depends(_card_check)],
    picture: Annotated[FormPart, Depends(_read_card_form)],
) -> VerificationView:
    """Show the identity card of the person behind a supplier, for its owners: it is read once and not kept.

    A card that is read for certain, is not contradicted by itself, has the name of the supplier and was shown by no
    other supplier gives the badge at once; of any other, an admin decides. What is kept: the day, the method, whether
    the name matches, and a keyed digest that only tells whether another supplier shows the same card.
    """
    ticket = ticket_of(request)
    ticket.answer()
    card = await check.look_at(picture, ticket.owner)
    require_readable(card)

    def record() -> VerificationView:
        with context.writing() as (session, principal):
            recorded = record_card(session, principal, context.market.signer, supplier_id, card)
            return verification_view(recorded)

    return await run_in_threadpool(record)


@router.get("/suppliers/{supplier_id}/verification", responses=SHOWN, tags=["suppliers"])
def read_verification(supplier_id: Id, context: ContextDep) -> VerificationView:
    """Read what is kept of the card that a supplier showed, for its owners and admins."""
    with context.reading() as (session, principal):
        return verification_view(find_verification(session, principal, supplier_id))


@router.delete("/suppliers/{supplier_id}/verification", responses=WITHDRAWN, tags=["suppliers"])
def withdraw_consent(supplier_id: Id, context: ContextDep) -> Message:
    """Withdraw the consent, for owners: what is kept of the card is deleted, and the badge goes. Idempotent.

    Of a suspended supplier the digest stays until the suspension ends, so that its card verifies no other one.
    """
    with context.writing() as (session, principal):
        keeps_digest = withdraw(session, principal, supplier_id)
    return Message(
        detail="A digest of the card is kept until the suspension ends."
        if keeps_digest
        else "Nothing of a card is kept."
    )


@router.get("/admin/verifications", response_model=list[DoubtfulSupplier], responses=LISTED, tags=["admin"])
def list_doubtful(
    request: Request,
    context: ContextDep,
    status: VerificationStatus = "doubtful",
    before: Before = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List suppliers by what became of their cards, for admins; `Link` has the next page."""
    with context.reading() as (session, principal):
        found = list_verifications(session, principal, status, before, limit + 1)
        return page_response(request, found, limit, lambda one: one, lambda one: one.supplier_id)


@router.put("/admin/verifications/{supplier_id}", responses=DECIDED, tags=["admin"])
def decide_doubtful(supplier_id: Id, body: VerificationDecision, context: ContextDep) -> DoubtfulSupplier:
    """Give a supplier the badge or refuse it, with the reason, for admins. A later decision replaces it."""
    with context.writing() as (session, principal):
        return decide(session, principal, supplier_id, body)
