"""Users: register, read, change, export and delete."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from tis.http.dependencies import SessionsDep
from tis.marketplace.auth.passwords import hashed_new
from tis.marketplace.auth.registration import RegistrationKeyDep
from tis.marketplace.auth.schemas import (
    ADMIN_REQUIRED,
    TOKENS_EXAMPLE,
    TOO_MANY_LOGINS,
    TOO_MANY_REGISTRATIONS,
    USER_REGISTRATION_ERRORS,
    Erasure,
    UserRegistration,
)
from tis.marketplace.auth.service import password_hash_of, register_user, require_password
from tis.marketplace.context import ContextDep, RequestContext
from tis.marketplace.kit import audit
from tis.marketplace.kit.docs import STALE_VERSION, example_body, responses
from tis.marketplace.kit.fields import Id, TypedEmail
from tis.marketplace.kit.paging import CursorPageDep
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.responses import Message, no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.kit.versions import IfMatchDep, set_etag
from tis.marketplace.policy import require_admin, require_user, require_user_visible
from tis.marketplace.rates import limited
from tis.marketplace.tables import User
from tis.marketplace.users.chat_streams import delete_all_streams
from tis.marketplace.users.data_export import export_user_data
from tis.marketplace.users.schemas import (
    EXPORT_EXAMPLE,
    LAST_ADMIN,
    NEW_USER_EXAMPLE,
    NO_USER,
    USER_EXAMPLE,
    USER_REQUIRED,
    WRONG_PASSWORD,
    Grants,
    RegisteredUser,
    UserChange,
    UserView,
    user_view,
)
from tis.marketplace.users.service import change_profile, delete_user, find_user, grant_rights, users_with_email

router = APIRouter(prefix="/users", tags=["users"], route_class=CheckedRoute)


@router.post(
    "/register",
    responses=responses({**USER_EXAMPLE, **TOKENS_EXAMPLE}, USER_REGISTRATION_ERRORS, TOO_MANY_REGISTRATIONS),
    dependencies=[limited("registrations", by_address=True), Depends(no_store)],
)
async def register(
    context: ContextDep,
    body: Annotated[UserRegistration, example_body(NEW_USER_EXAMPLE)],
    key: RegistrationKeyDep,
) -> RegisteredUser:
    """Register a user; the password may be set later."""

    def create() -> RegisteredUser:
        password_hash = hashed_new(body.password, body.name, body.email) if body.password else None
        create = partial(register_user, body=body, password_hash=password_hash)
        view, tokens = key.register(context, body.consent_version, create, _own_view)
        return RegisteredUser(**vars(view), **vars(tokens))

    return await context.market.passwords.run(create)


def _own_view(user: User) -> UserView:
    return user_view(user, Principal(user_id=user.id))


@router.get("", responses=responses([USER_EXAMPLE], ADMIN_REQUIRED))
def list_users(
    context: ContextDep,
    page: CursorPageDep,
    email: Annotated[TypedEmail | None, Query(description="an e-mail, or how it begins")] = None,
) -> list[UserView]:
    """List all users, for admins, or those whose e-mail begins so."""
    with context.reading() as (session, principal):
        require_admin(principal)
        users = [user_view(user, principal) for user in page.read(session, User, users_with_email(email))]
    _note_read(context, principal, [user.id for user in users])
    return users


@router.get("/me/export", dependencies=[Depends(no_store)], responses=responses(EXPORT_EXAMPLE, USER_REQUIRED))
def export_me(context: ContextDep) -> dict[str, Any]:
    """Export all data about the caller."""
    with context.reading() as (session, principal):
        return export_user_data(session, require_user(principal))


@router.put("/me", responses=responses(USER_EXAMPLE, USER_REQUIRED, STALE_VERSION))
def change_me(
    context: ContextDep,
    response: Response,
    body: Annotated[UserChange, example_body({"city": "Bandung", "phone": None})],
    if_match: IfMatchDep,
) -> UserView:
    """Change the sent fields of your own profile; `null` clears a field."""
    with context.writing() as (session, principal):
        user = change_profile(session, principal, body.changes(), if_match.with_body_version(body.version))
        set_etag(response, user.version)
        return user_view(user, principal)


@router.delete(
    "/me",
    responses=responses({"detail": "Erased."}, {**USER_REQUIRED, 403: WRONG_PASSWORD}, LAST_ADMIN, TOO_MANY_LOGINS),
    dependencies=[limited("logins")],
)
async def delete_me(
    context: ContextDep,
    sessions: SessionsDep,
    body: Annotated[Erasure | None, example_body({"password": "a long sentence"})] = None,
) -> Message:
    """Delete your account; reviews and reservations stay without a name. Needs the password, if there is one."""

    def delete() -> tuple[int | None, Sequence[str]]:
        with context.reading() as (session, principal):
            compared_hash = password_hash_of(session, principal)
        require_password(body.password if body else None, compared_hash)
        with context.writing() as (session, principal):
            return principal.user_id, delete_user(session, principal, context.market.search, compared_hash)

    user_id, session_ids = await context.market.passwords.run(delete)
    if user_id is not None:
        await delete_all_streams(sessions, user_id, session_ids)
    return Message(detail="Erased.")


@router.get("/{user_id}", responses=responses(USER_EXAMPLE, NO_USER))
def get_user(context: ContextDep, user_id: Id, response: Response) -> UserView:
    """Read a user, for the user and for admins; in open mode for everybody."""
    with context.reading() as (session, principal):
        require_user_visible(principal, user_id)
        user = find_user(session, user_id)
        set_etag(response, user.version)
        view = user_view(user, principal)
    _note_read(context, principal, [user_id])
    return view


def _note_read(context: RequestContext, principal: Principal, user_ids: Sequence[int]) -> None:
    """Admins see personal data of others: the audit log has whose, and when."""
    others = [number for number in user_ids if number != principal.user_id]
    if principal.is_admin and others:
        with context.market.writing() as session:
            for number in others:
                audit.note(session, principal, "user.read", "user", number)


@router.put("/{user_id}/grants", responses=responses(USER_EXAMPLE, {**ADMIN_REQUIRED, **NO_USER}))
def change_grants(
    context: ContextDep,
    user_id: Id,
    body: Annotated[Grants, example_body({"ai_access_enabled": True})],
) -> UserView:
    """Grant or revoke the admin role and AI access."""
    with context.writing() as (session, principal):
        return user_view(grant_rights(session, principal, user_id, body.model_dump(exclude_unset=True)), principal)
