"""Register, sign in, refresh, list and end sessions, change the password."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request

from tis.errors import BadRequest, Unauthenticated
from tis.marketplace.auth.accounts import account_holder
from tis.marketplace.auth.passwords import hashed_new
from tis.marketplace.auth.registration import RegistrationKeyDep
from tis.marketplace.auth.schemas import (
    ACCOUNT_EXAMPLE,
    LOGIN_EXAMPLE,
    NEW_ACCOUNT_EXAMPLE,
    SESSION_EXAMPLE,
    TOKEN_REQUIRED,
    TOKENS_EXAMPLE,
    TOO_MANY_LOGINS,
    TOO_MANY_REGISTRATIONS,
    USER_REGISTRATION_ERRORS,
    AccountRegistration,
    AccountView,
    Login,
    PasswordChange,
    RefreshTokenBody,
    SessionId,
    SessionView,
)
from tis.marketplace.auth.service import account_view, register_user, require_old_password, set_password, sign_in
from tis.marketplace.auth.tokens import TokenPair, end_chain, end_other_sessions_of, end_session_of, rotate, sessions_of
from tis.marketplace.context import ContextDep, RequestContext
from tis.marketplace.kit.docs import example_body, responses
from tis.marketplace.kit.responses import Message, no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.policy import require_account
from tis.marketplace.rates import limited

router = APIRouter(prefix="/auth", tags=["accounts"], dependencies=[Depends(no_store)], route_class=CheckedRoute)

_TokenBody = Annotated[RefreshTokenBody | None, example_body({"refresh_token": "eyJhbGciOi…"})]


@router.post(
    "/register",
    responses=responses(TOKENS_EXAMPLE, USER_REGISTRATION_ERRORS, TOO_MANY_REGISTRATIONS),
    dependencies=[limited("registrations", by_address=True)],
)
async def register(
    context: ContextDep,
    body: Annotated[AccountRegistration, example_body(NEW_ACCOUNT_EXAMPLE)],
    key: RegistrationKeyDep,
) -> TokenPair:
    """Register a user with a password."""

    def create() -> TokenPair:
        password_hash = hashed_new(body.password, body.name, body.email)
        create = partial(register_user, body=body, password_hash=password_hash)
        return key.register(context, body.consent_version, create, lambda user: None)[1]

    return await context.market.passwords.run(create)


@router.post(
    "/login",
    responses=responses(TOKENS_EXAMPLE, {401: "Incorrect email or password"}, TOO_MANY_LOGINS),
    dependencies=[limited("logins", by_address=True)],
)
async def login(context: ContextDep, body: Annotated[Login, example_body(LOGIN_EXAMPLE)]) -> TokenPair:
    """Sign in as a user or a supplier."""
    market, agent = context.market, context.agent
    return await market.passwords.run(lambda: sign_in(market, body.email, body.password, body.kind, agent))


@router.post("/refresh", responses=responses(TOKENS_EXAMPLE, {401: "This token was used before."}))
def refresh(
    request: Request,
    context: ContextDep,
    body: _TokenBody = None,
) -> TokenPair:
    """Exchange the newest refresh token for new tokens. A token used twice ends the whole session."""
    if "refresh_token" in request.query_params:
        raise BadRequest(
            "Send refresh_token in the body: URLs end up in logs. Sign in again, as this one may be in some."
        )
    if body is None:
        raise BadRequest("Send your refresh_token in the body.")
    # Without authentication: the access token in the header has often expired.
    with context.market.writing() as session:
        tokens = rotate(session, context.market, body.refresh_token, context.agent)
    if tokens is None:
        raise Unauthenticated("This refresh token is not the newest one of its session. Sign in again.")
    return tokens


@router.post("/logout", responses=responses({"detail": "Signed out."}, TOKEN_REQUIRED))
def logout(context: ContextDep, body: _TokenBody = None) -> Message:
    """End the session of this refresh token, or of the access token in the header."""
    if body:
        with context.market.writing() as session:
            end_chain(session, context.market.signer.read(body.refresh_token, "refresh").chain, signed_out=True)
    else:
        with context.writing() as (session, principal):
            require_account(principal)
            end_chain(session, principal.chain or "", signed_out=True)
    return Message(detail="Signed out.")


@router.post(
    "/password",
    responses=responses(ACCOUNT_EXAMPLE, {**TOKEN_REQUIRED, 403: "The old password is not right."}, TOO_MANY_LOGINS),
    dependencies=[limited("logins")],
)
async def change_password(
    context: ContextDep,
    body: Annotated[PasswordChange, example_body({"password": "another long sentence"})],
) -> AccountView:
    """Set a password, or change it with the old one. All other sessions end."""
    return await context.market.passwords.run(lambda: _change_password(context, body))


def _change_password(context: RequestContext, body: PasswordChange) -> AccountView:
    with context.reading() as (session, principal):
        account = account_holder(session, require_account(principal))
        assert account is not None  # authenticated in this transaction
        compared_hash, facts = account.password_hash, (account.name, account.email)
    require_old_password(body.old_password, compared_hash)
    new_hash = hashed_new(body.password, *facts)
    with context.writing() as (session, principal):
        set_password(session, principal, compared_hash, new_hash)
        return account_view(session, principal)


@router.get("/me", responses=responses(ACCOUNT_EXAMPLE, TOKEN_REQUIRED))
def me(context: ContextDep) -> AccountView:
    """Read the account of this token."""
    with context.reading() as (session, principal):
        return account_view(session, principal)


@router.get("/sessions", responses=responses([SESSION_EXAMPLE], TOKEN_REQUIRED))
def list_sessions(context: ContextDep) -> list[SessionView]:
    """List where the caller is signed in, newest first; at most 100."""
    with context.reading() as (session, principal):
        return sessions_of(session, principal, require_account(principal))


@router.delete("/sessions", responses=responses({"detail": "Signed out everywhere else."}, TOKEN_REQUIRED))
def end_other_sessions(context: ContextDep) -> Message:
    """End all sessions of the caller but this one."""
    with context.writing() as (session, principal):
        end_other_sessions_of(session, principal, require_account(principal))
    return Message(detail="Signed out everywhere else.")


@router.delete(
    "/sessions/{session_id}",
    responses=responses({"detail": "Signed out."}, {**TOKEN_REQUIRED, 404: "Session not found"}),
)
def end_session(context: ContextDep, session_id: SessionId) -> Message:
    """End a session of the caller; its tokens are refused from then on."""
    with context.writing() as (session, principal):
        end_session_of(session, principal, require_account(principal), session_id)
    return Message(detail="Signed out.")
