"""Registering users, signing in with a password, and authenticating access tokens."""

from dataclasses import replace
from typing import Literal

from pydantic import SecretStr
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from tis.errors import BadRequest, Forbidden, Unauthenticated
from tis.marketplace.auth.accounts import SESSION_ENDED, account_by_email, account_holder, note_of_account
from tis.marketplace.auth.links import delete_links
from tis.marketplace.auth.passwords import hashed, is_outdated, matches
from tis.marketplace.auth.schemas import AccountView, MembershipView, UserRegistration
from tis.marketplace.auth.shop_tokens import is_shop_token, program_principal, program_still_there
from tis.marketplace.auth.tokens import TokenPair, begin_chain, end_all_chains, is_chain_active
from tis.marketplace.context import MarketServices
from tis.marketplace.kit import audit
from tis.marketplace.kit.fields import email_key
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.signing import Signer
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.policy import TokenScope, may_grant, require_account, require_no_role
from tis.marketplace.tables import Supplier, SupplierMember, User

AccountKind = Literal["user", "supplier"]


def authenticate(
    session: Session,
    signer: Signer,
    token: str | None,
    *,
    is_open: bool,
    request_id: str,
    scope: TokenScope | None = None,
) -> Principal:
    """Reads the rights from the database, never from the token. A bad token is refused even where none is needed.

    `scope`: what the token of a program needs; without one, such a token is refused.
    """
    if token is None:
        return Principal(is_open=is_open, request_id=request_id)
    if is_shop_token(token):
        return program_principal(session, token, scope, request_id)
    claims = signer.read(token, "access")
    is_current = is_chain_active(session, claims.chain, claims.account)
    principal = _principal_of(session, claims.account, claims.chain) if is_current else None
    if principal is None:
        raise Unauthenticated(SESSION_ENDED)
    return Principal(**{**vars(principal), "is_open": is_open, "request_id": request_id})


def find_principal(session: Session, account: str | None, *, is_open: bool, request_id: str) -> Principal | None:
    """The rights of an account at this moment, for work that goes on after its request; None if it is gone."""
    if account is None:
        return Principal(is_open=is_open, request_id=request_id)
    if account.startswith("token:"):
        return program_still_there(session, account, "goods", request_id)
    principal = _principal_of(session, account, chain="")
    return principal and replace(principal, is_open=is_open, request_id=request_id, chain=None)


def register_user(session: Session, principal: Principal, body: UserRegistration, password_hash: str | None) -> User:
    require_no_role(body.role)
    user = User(
        **body.model_dump(include={"name", "email", "phone", "city", "province"}),
        email_key=email_key(body.email),
        place_code=gazetteer().code_of(body.city, body.province),
        password_hash=password_hash,
        latitude=round_to_100m(body.latitude),
        longitude=round_to_100m(body.longitude),
        role="user",
        ai_access_enabled=bool(body.ai_access_enabled) and may_grant(principal),
    )
    session.add(user)
    flush_unique_email(session)
    audit.note(session, principal, "user.register", "user", user.id)
    return user


def flush_unique_email(session: Session) -> None:
    """The unique constraint decides: of two concurrent registrations, a SELECT beforehand would let both pass."""
    try:
        session.flush()
    except IntegrityError:
        raise BadRequest("Email already registered") from None


def round_to_100m(degrees: float | None) -> float | None:
    """Enough to find what is near a user, not enough to find the house."""
    return None if degrees is None else round(degrees, 3)


def sign_in(
    market: MarketServices, email: str, password: SecretStr, kind: AccountKind | None, agent: str | None = None
) -> TokenPair:
    """Tries users first. Every failure takes the same time, so that nobody learns which e-mails are registered."""
    for each in (kind,) if kind else ("user", "supplier"):
        with market.reading() as session:
            found = account_by_email(session, each, email_key(email))
        account, password_hash = found or (None, None)
        if matches(password, password_hash) and account and password_hash:
            new_hash = hashed(password) if is_outdated(password_hash) else password_hash
            with market.writing() as session:
                return _begin_session(session, market, account, password_hash, new_hash, agent)
    raise _wrong_login()


def set_password(session: Session, principal: Principal, compared_hash: str | None, new_hash: str) -> None:
    """`compared_hash` is the hash that the old password was compared with, before this transaction."""
    assert principal.account is not None
    account = account_holder(session, principal.account, locked=True)
    if account is None or account.password_hash != compared_hash:
        raise wrong_old_password()
    account.password_hash = new_hash
    note_of_account(session, principal.account, "password", principal, password=True)
    end_all_chains(session, principal.account, except_chain=principal.chain)
    delete_links(session, principal.account)


def account_view(session: Session, principal: Principal) -> AccountView:
    account = account_holder(session, require_account(principal))
    assert account is not None  # authenticated in this transaction
    return AccountView(
        id=account.id,
        name=account.name,
        email=account.email,
        city=account.city,
        role=account.role if isinstance(account, User) else "supplier",
        ai_access_enabled=isinstance(account, User) and account.ai_access_enabled,
        created_at=account.created_at if isinstance(account, User) else account.registration_date,
        kind="user" if isinstance(account, User) else "supplier",
        email_confirmed=account.email_confirmed_at is not None,
        has_password=account.password_hash is not None,
        suppliers=_memberships(session, account.id) if isinstance(account, User) else [],
    )


def require_old_password(password: SecretStr | None, password_hash: str | None) -> None:
    """Takes a while. An account without a password needs none."""
    if password_hash is not None and not (password and matches(password, password_hash)):
        raise wrong_old_password()


def wrong_old_password() -> Forbidden:
    return Forbidden("The old password is not right.")


def password_hash_of(session: Session, principal: Principal) -> str | None:
    account = account_holder(session, require_account(principal))
    assert account is not None  # authenticated in this transaction
    return account.password_hash


def require_password(password: SecretStr | None, password_hash: str | None) -> None:
    """Takes a while. An account without a password needs none."""
    if password_hash is not None and not (password and matches(password, password_hash)):
        raise Forbidden("The password is missing or not right.", code="wrong_password")


def _begin_session(
    session: Session, market: MarketServices, account: str, compared_hash: str, new_hash: str, agent: str | None
) -> TokenPair:
    row = account_holder(session, account, locked=True)
    if row is None or row.password_hash != compared_hash:  # changed since the password was compared
        raise _wrong_login()
    row.password_hash = new_hash
    return begin_chain(session, market, account, agent)


def _wrong_login() -> Unauthenticated:
    return Unauthenticated("Incorrect email or password")


def _principal_of(session: Session, account: str, chain: str) -> Principal | None:
    holder = account_holder(session, account)
    if holder is None:
        return None
    if isinstance(holder, Supplier):
        own = frozenset({holder.id})
        return Principal(account, supplier_ids=own, owned_ids=own, chain=chain)
    roles = {one.supplier_id: one.role for one in _memberships(session, holder.id)}
    return Principal(
        account,
        holder.id,
        supplier_ids=frozenset(roles),
        owned_ids=frozenset(number for number, role in roles.items() if role == "owner"),
        is_admin=holder.role == "admin",
        chain=chain,
    )


def _memberships(session: Session, user_id: int) -> list[MembershipView]:
    columns = select(SupplierMember.supplier_id, SupplierMember.role).where(SupplierMember.user_id == user_id)
    rows = session.execute(columns.order_by(SupplierMember.supplier_id))
    return [MembershipView(supplier_id=row.supplier_id, role=row.role) for row in rows]
