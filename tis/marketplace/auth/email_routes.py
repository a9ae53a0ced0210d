"""Forgotten passwords, and confirming and changing an e-mail, by one-time links. Consent to the privacy notice."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends

from tis.marketplace.auth.accounts import supplier_account
from tis.marketplace.auth.recovery import ask_change, ask_confirmation, confirm_email, reset_mails, reset_password
from tis.marketplace.auth.registration import agree, consent_view
from tis.marketplace.auth.schemas import (
    CONSENT_EXAMPLE,
    TOKEN_REQUIRED,
    TOO_MANY_LOGINS,
    ConsentView,
    ForgottenPassword,
    LinkSecret,
    NewConsent,
    NewEmail,
    PasswordReset,
)
from tis.marketplace.auth.service import password_hash_of, require_old_password
from tis.marketplace.context import ContextDep, RequestContext
from tis.marketplace.kit.docs import example_body, responses
from tis.marketplace.kit.responses import Message, no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.policy import require_account, require_account_owner
from tis.marketplace.rates import limited

router = APIRouter(prefix="/auth", tags=["accounts"], dependencies=[Depends(no_store)], route_class=CheckedRoute)

_TOO_MANY_MAILS = {429: "Too many mails: at most 20 per hour. Try again in 1200 s."}
_NO_MAILS = {409: "This server sends no e-mail: its operator sets SMTP_HOST or MAIL_FOLDER."}
_VOID_LINK = {400: "This link was used, has expired, or is not complete. Ask for a new one."}
_SENT = "If an account has this e-mail, a link is on its way to it."
_LINK_SENT = "A link is on its way to this e-mail."


@router.post(
    "/password/forgot",
    responses=responses({"detail": _SENT}, _NO_MAILS, _TOO_MANY_MAILS),
    dependencies=[limited("mails", by_address=True)],
)
def forgot_password(
    context: ContextDep,
    body: Annotated[ForgottenPassword, example_body({"email": "jane@email.com"})],
) -> Message:
    """Send a link to set a new password. The answer is the same for every e-mail."""
    context.market.mail.submit(partial(reset_mails, context.market, body.email, body.kind))
    return Message(detail=_SENT)


@router.post(
    "/password/reset",
    responses=responses({"detail": "The password is set. Sign in with it."}, _VOID_LINK, TOO_MANY_LOGINS),
    dependencies=[limited("logins", by_address=True)],
)
async def use_reset_link(
    context: ContextDep,
    body: Annotated[PasswordReset, example_body({"token": "from-the-link", "password": "a long sentence"})],
) -> Message:
    """Set a new password with the link from the mail. All sessions end."""
    market = context.market
    await market.passwords.run(lambda: reset_password(market, body.token, body.password))
    return Message(detail="The password is set. Sign in with it.")


@router.post(
    "/email/confirmation",
    responses=responses({"detail": _LINK_SENT}, TOKEN_REQUIRED, _NO_MAILS, _TOO_MANY_MAILS),
    dependencies=[limited("mails", by_address=True)],
)
def send_confirmation(context: ContextDep) -> Message:
    """Send a link again that confirms the e-mail of the caller, at most three an hour."""
    with context.writing() as (session, principal):
        require_account(principal)
        context.market.mail.require_configured()
        mails = ask_confirmation(session, principal, context.market)
    context.market.mail.send(mails)
    return Message(detail=_LINK_SENT)


@router.post(
    "/email",
    responses=responses(
        {"detail": _LINK_SENT}, TOKEN_REQUIRED, {403: "The old password is not right."}, _NO_MAILS, _TOO_MANY_MAILS
    ),
    dependencies=[limited("mails", by_address=True), limited("logins")],
)
async def change_email(
    context: ContextDep,
    body: Annotated[NewEmail, example_body({"email": "jane@example.com", "password": "a long sentence"})],
) -> Message:
    """Change an e-mail: it changes when the link that is sent to the new address is followed."""
    await context.market.passwords.run(lambda: _change_email(context, body))
    return Message(detail=_LINK_SENT)


def _change_email(context: RequestContext, body: NewEmail) -> None:
    with context.reading() as (session, principal):
        account = require_account(principal) if body.supplier_id is None else supplier_account(body.supplier_id)
        require_account_owner(principal, account)
        compared_hash = password_hash_of(session, principal)
    context.market.mail.require_configured()
    require_old_password(body.password, compared_hash)
    with context.writing() as (session, principal):
        require_account_owner(principal, account)
        mails = ask_change(session, principal, context.market, account, body.email, compared_hash)
    context.market.mail.send(mails)


@router.post("/email/confirm", responses=responses({"detail": "The e-mail is confirmed."}, _VOID_LINK))
def use_email_link(
    context: ContextDep, body: Annotated[LinkSecret, example_body({"token": "from-the-link"})]
) -> Message:
    """Confirm an e-mail, or a new one, with the link from the mail."""
    with context.market.writing() as session:
        confirm_email(session, body.token)
    return Message(detail="The e-mail is confirmed.")


@router.get("/consent", responses=responses(CONSENT_EXAMPLE))
def read_consent(context: ContextDep) -> ConsentView:
    """Read which privacy notice registrations agree to, and which one the caller agreed to."""
    with context.reading() as (session, principal):
        return consent_view(session, context.market.rules, principal.account)


@router.post("/consent", responses=responses(CONSENT_EXAMPLE, {**TOKEN_REQUIRED, 400: "Show the privacy notice …"}))
def give_consent(
    context: ContextDep,
    body: Annotated[NewConsent, example_body({"consent_version": "2026-11"})],
) -> ConsentView:
    """Agree to the current privacy notice; the version and the time are kept."""
    with context.writing() as (session, principal):
        agree(session, context.market.rules, require_account(principal), body.consent_version)
        session.flush()
        return consent_view(session, context.market.rules, principal.account)
