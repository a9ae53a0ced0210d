"""Changing, granting rights to and deleting users."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Select, delete, or_, select
from sqlalchemy.orm import Session

from tis.errors import BadRequest, Conflict, NotFound
from tis.marketplace.auth.accounts import supplier_account, user_account
from tis.marketplace.auth.service import round_to_100m
from tis.marketplace.columns import now
from tis.marketplace.kit import audit
from tis.marketplace.kit.fields import email_key
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.versions import IfMatch
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.policy import may_grant, require_admin, require_no_role, require_own_user, require_user
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.suppliers.deletion import delete_account_data, erase_supplier, has_login
from tis.marketplace.suppliers.members import owners_of
from tis.marketplace.tables import (
    ChatUsage,
    Conversation,
    ProductAlert,
    SavedSearch,
    Supplier,
    SupplierInvitation,
    SupplierMember,
    User,
    UserPreferences,
)

_GRANTED = {"role", "ai_access_enabled"}
_ROLES = ("user", "admin")


def not_deleted_users() -> Select[User]:
    return select(User).where(User.deleted_at.is_(None))


def users_with_email(beginning: str | None) -> Select[User]:
    """All users, or those whose e-mail begins so."""
    users = not_deleted_users()
    return users.where(User.email_key.startswith(email_key(beginning), autoescape=True)) if beginning else users


def find_user(session: Session, user_id: int) -> User:
    return _require_found(session.scalar(not_deleted_users().where(User.id == user_id)))


def acting_user(session: Session, principal: Principal, user_id: int | None) -> int:
    """See `require_own_user`. A user that the request names must exist."""
    own_id = require_own_user(principal, user_id)
    return own_id if principal.user_id == own_id else find_user(session, own_id).id


def lock_user(session: Session, user_id: int) -> User:
    """FOR NO KEY UPDATE: until the transaction ends nobody else changes the user, but rows may refer to it."""
    locked = not_deleted_users().where(User.id == user_id).with_for_update(key_share=True)
    return _require_found(session.scalar(locked.execution_options(populate_existing=True)))


def change_profile(session: Session, principal: Principal, changes: dict[str, Any], if_match: IfMatch) -> User:
    if not principal.is_admin:
        require_no_role(changes.get("role"))
    granted = {name: changes[name] for name in _GRANTED & changes.keys() if may_grant(principal)}
    user, admins = _lock_for_grant(session, require_user(principal), granted)
    if_match.check(user.version)
    own = {name: value for name, value in changes.items() if name not in _GRANTED}
    own |= {name: round_to_100m(own[name]) for name in {"latitude", "longitude"} & own.keys()}
    own = {name: value for name, value in own.items() if getattr(user, name) != value}
    granted = {name: value for name, value in granted.items() if getattr(user, name) != value}
    if not (own or granted):
        return user
    for name, value in own.items():
        setattr(user, name, value)
    if {"city", "province"} & own.keys():
        user.place_code = gazetteer().code_of(user.city, user.province)
    if own:
        audit.note(session, principal, "user.change", "user", user.id, **dict.fromkeys(own, True))
    _grant(session, principal, user, granted, admins)
    user.version += 1
    session.flush()
    return user


def grant_rights(session: Session, principal: Principal, user_id: int, granted: dict[str, Any]) -> User:
    require_admin(principal)
    user, admins = _lock_for_grant(session, user_id, granted)
    _grant(session, principal, user, granted, admins)
    user.version += 1
    session.flush()
    return user


def delete_user(
    session: Session, principal: Principal, search: ProductSearch, compared_hash: str | None = None
) -> Sequence[str]:
    """`compared_hash`: of the password that the caller has proved to know."""

    def require_same_password(user: User) -> None:
        if user.password_hash != compared_hash:
            raise Conflict("The password was changed meanwhile. Retry.")

    return erase_user(session, principal, search, require_user(principal), require_same_password)


def erase_user(
    session: Session,
    principal: Principal,
    search: ProductSearch,
    user_id: int,
    check: Callable[[User], None] | None = None,
    **noted: Any,
) -> Sequence[str]:
    """Reviews, reservations and ledger lines stay, without a name: others rely on them. Conversations do not.

    Suppliers that nobody could sign in to any more are deleted, too; one with a login of its own is not.
    `check` may refuse it, once the user is locked. Returns the ids of the conversations' sessions.
    """
    admins = lock_admins(session)
    suppliers = _lock_own_suppliers(session, user_id)
    user = lock_user(session, user_id)
    if check:
        check(user)
    require_another_admin(user, admins)
    orphans = _leave_suppliers(session, user_id, suppliers)
    accounts = [user_account(user_id), *(supplier_account(supplier.id) for supplier in orphans)]
    delete_account_data(session, search, accounts)
    for supplier in orphans:
        erase_supplier(session, principal, search, supplier)
    session_ids = session.scalars(select(Conversation.session_id).where(Conversation.user_id == user_id)).all()
    # Messages go with their conversation, what a search has found with the search.
    for table in (Conversation, UserPreferences, ChatUsage, ProductAlert, SavedSearch):
        session.execute(delete(table).where(table.user_id == user_id))
    _clear_personal_data(user)
    audit.note(session, principal, "user.erase", "user", user_id, **noted)
    session.flush()
    return session_ids


def lock_admins(session: Session) -> set[int]:
    """All admins, before any other row is locked: of two who leave at once, the second sees that it is the last."""
    admins = select(User.id).where(User.role == "admin", User.deleted_at.is_(None)).order_by(User.id)
    return set(session.scalars(admins.with_for_update(key_share=True)))


def require_another_admin(user: User, admins: set[int]) -> None:
    if admins == {user.id}:
        raise Conflict("This is the last admin: name another one first.")


def _lock_for_grant(session: Session, user_id: int, granted: dict[str, Any]) -> tuple[User, set[int]]:
    admins = lock_admins(session) if "role" in granted else set()
    return lock_user(session, user_id), admins


def _grant(session: Session, principal: Principal, user: User, granted: dict[str, Any], admins: set[int]) -> None:
    if not granted:
        return
    role = granted.get("role", user.role)
    if role not in _ROLES:
        raise BadRequest(f"role is one of: {', '.join(_ROLES)}.")
    if role != "admin":
        require_another_admin(user, admins)
    logged = {name: [getattr(user, name), value] for name, value in granted.items()}
    for name, value in granted.items():
        setattr(user, name, value)
    audit.note(session, principal, "user.grant", "user", user.id, **logged)


def _require_found(user: User | None) -> User:
    if user is None:
        raise NotFound("User not found")
    return user


def _lock_own_suppliers(session: Session, user_id: int) -> Sequence[Supplier]:
    """Also those that invite the user, who could be accepting at this moment."""
    tables = (SupplierMember, SupplierInvitation)
    own = or_(*(Supplier.id.in_(select(table.supplier_id).where(table.user_id == user_id)) for table in tables))
    locked = select(Supplier).where(own).order_by(Supplier.id).with_for_update(key_share=True)
    return session.scalars(locked.execution_options(populate_existing=True)).all()


def _leave_suppliers(session: Session, user_id: int, suppliers: Sequence[Supplier]) -> list[Supplier]:
    """Returns the suppliers that nobody can sign in to without this user."""
    orphans = [
        supplier
        for supplier in suppliers
        if owners_of(session, supplier.id) == {user_id} and not has_login(session, supplier)
    ]
    for table in (SupplierMember, SupplierInvitation):
        session.execute(delete(table).where(table.user_id == user_id))
    return orphans


def _clear_personal_data(user: User) -> None:
    user.name = "Deleted user"
    user.email_confirmed_at = None
    user.email = user.email_key = user.phone = user.password_hash = None
    user.latitude = user.longitude = user.city = user.province = user.place_code = None
    user.role, user.ai_access_enabled = "user", False
    user.deleted_at = now()
    user.version += 1
