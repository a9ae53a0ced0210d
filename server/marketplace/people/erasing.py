"""A user goes. What others rely on stays, without a name: reviews, reservations, lines of ledgers."""

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from server.marketplace import audit
from server.marketplace.caller import Caller
from server.marketplace.columns import now
from server.marketplace.people.accounts import user_account
from server.marketplace.people.membership import require_another_owner
from server.marketplace.people.profiles import hold_admins, hold_user, require_another_admin
from server.marketplace.policy import require_user
from server.marketplace.search.search import Search
from server.marketplace.stock.holding import release_all
from server.marketplace.tables import IdempotencyKey, RefreshToken, Supplier, SupplierMember, User


def erase_user(session: Session, caller: Caller, search: Search) -> None:
    user_id = require_user(caller)
    admins = hold_admins(session)
    _leave_suppliers(session, user_id)
    user = hold_user(session, user_id)
    require_another_admin(user, admins)
    account = user_account(user_id)
    release_all(session, search, account)
    session.execute(delete(RefreshToken).where(RefreshToken.account == account))
    session.execute(delete(IdempotencyKey).where(IdempotencyKey.actor == account))
    _blank(user)
    audit.note(session, caller, "user.erase", "user", user_id)
    session.flush()


def _leave_suppliers(session: Session, user_id: int) -> None:
    mine = SupplierMember.user_id == user_id
    of_mine = select(SupplierMember.supplier_id).where(mine)
    held = select(Supplier).where(Supplier.id.in_(of_mine)).order_by(Supplier.id).with_for_update(key_share=True)
    for supplier in session.scalars(held.execution_options(populate_existing=True)):
        require_another_owner(session, supplier, user_id)
    session.execute(delete(SupplierMember).where(mine))


def _blank(user: User) -> None:
    user.name = "Deleted user"
    user.email = user.email_key = user.phone = user.password_hash = None
    user.latitude = user.longitude = user.city = user.province = None
    user.role, user.ai_access_enabled = "user", False
    user.deleted_at = now()
    user.version += 1
