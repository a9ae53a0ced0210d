"""What is done to a user."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from server.errors import Conflict, NotFound
from server.marketplace import audit
from server.marketplace.caller import Caller
from server.marketplace.people.registering import granted_role, roughly
from server.marketplace.policy import may_grant, require_admin, require_user
from server.marketplace.preconditions import Precondition
from server.marketplace.tables import User

_GRANTED = {"role", "ai_access_enabled"}


def living_users() -> Select[User]:
    return select(User).where(User.deleted_at.is_(None))


def find_user(session: Session, user_id: int) -> User:
    return _found(session.scalar(living_users().where(User.id == user_id)))


def hold_user(session: Session, user_id: int) -> User:
    """To change; nobody else changes it before the transaction ends."""
    held = living_users().where(User.id == user_id).with_for_update().execution_options(populate_existing=True)
    return _found(session.scalar(held))


def change_profile(session: Session, caller: Caller, changes: dict[str, Any], seen: Sequence[Precondition]) -> User:
    user = hold_user(session, require_user(caller))
    for precondition in seen:
        precondition.check(user.version)
    granted = {name: changes[name] for name in _GRANTED & changes.keys() if may_grant(caller)}
    own = {name: value for name, value in changes.items() if name not in _GRANTED}
    own |= {name: roughly(own[name]) for name in {"latitude", "longitude"} & own.keys()}
    for name, value in own.items():
        setattr(user, name, value)
    audit.note(session, caller, "user.change", "user", user.id, **dict.fromkeys(own, True))
    _grant(session, caller, user, granted)
    user.version += 1
    session.flush()
    return user


def grant(session: Session, caller: Caller, user_id: int, granted: dict[str, Any]) -> User:
    require_admin(caller)
    user = hold_user(session, user_id)
    _grant(session, caller, user, granted)
    user.version += 1
    session.flush()
    return user


def require_another_admin(session: Session, user: User) -> None:
    """All admins are held, so that two cannot both go because of the other."""
    admins = select(User.id).where(User.role == "admin", User.deleted_at.is_(None)).order_by(User.id)
    if user.role == "admin" and set(session.scalars(admins.with_for_update())) == {user.id}:
        raise Conflict("This is the last admin: name another one first.")


def _grant(session: Session, caller: Caller, user: User, granted: dict[str, Any]) -> None:
    if not granted:
        return
    if granted_role(granted.get("role", user.role)) != "admin":
        require_another_admin(session, user)
    noted = {name: [getattr(user, name), value] for name, value in granted.items()}
    for name, value in granted.items():
        setattr(user, name, value)
    audit.note(session, caller, "user.grant", "user", user.id, **noted)


def _found(user: User | None) -> User:
    if user is None:
        raise NotFound("User not found")
    return user
