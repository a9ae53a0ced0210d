"""Closing a supplier, or deleting it with its personal data.

Reviews, reservations and ledger lines stay, without a name: others rely on them.
"""

from collections.abc import Collection, Mapping

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from tis.errors import Conflict
from tis.marketplace.auth.accounts import split_account, supplier_account
from tis.marketplace.auth.links import delete_links
from tis.marketplace.auth.service import password_hash_of
from tis.marketplace.auth.tokens import has_session
from tis.marketplace.kit import audit
from tis.marketplace.kit.branch_shares import UnitsAt
from tis.marketplace.kit.notice_deliveries import turn_off_webhooks_of
from tis.marketplace.kit.notice_outbox import forget_notices, notify
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.talk_erasure import erase_talks
from tis.marketplace.orders.ending import end_orders_of, has_waiting_orders
from tis.marketplace.pictures.service import erase_pictures
from tis.marketplace.reviews.answers import erase_answers
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.supplier_index import index_supplier_words
from tis.marketplace.stock.ending import release_all
from tis.marketplace.suppliers.members import owners_of
from tis.marketplace.suppliers.schemas import LAST_LOGIN
from tis.marketplace.suppliers.service import close_supplier, forget_card, lock_supplier_for_update
from tis.marketplace.tables import (
    Branch,
    IdempotentRequest,
    RefreshToken,
    ShopPaymentMethods,
    ShopToken,
    Supplier,
    SupplierInvitation,
    SupplierMember,
    SupplierVerification,
    Webhook,
)


def password_to_erase(session: Session, principal: Principal, supplier_id: int) -> str | None:
    """The hash of the password that the caller must know, as closing this supplier erases it. None: it needs none."""
    if principal.account != supplier_account(supplier_id) or owners_of(session, supplier_id):
        return None
    return password_hash_of(session, principal)


def close_or_delete_supplier(
    session: Session,
    principal: Principal,
    search: ProductSearch,
    supplier_id: int,
    *,
    confirmed: bool = True,
    compared_hash: str | None = None,
) -> Supplier:
    """A supplier that closes itself and has no owner is deleted: nobody could ever sign in to restore it.

    `compared_hash` is `password_to_erase`, which the password was compared with before this transaction.
    """
    supplier = lock_supplier_for_update(session, principal, supplier_id)
    owners = owners_of(session, supplier_id)
    if not (confirmed or owners or supplier.password_hash or supplier.deleted_at):
        raise Conflict(LAST_LOGIN[409], code="confirm_needed")
    if principal.account == supplier_account(supplier_id) and not owners:
        if supplier.password_hash != compared_hash:
            raise Conflict("The password or an owner was changed meanwhile. Retry.")
        delete_account_data(session, search, [supplier_account(supplier_id)])
        erase_supplier(session, principal, search, supplier)
    else:
        if has_waiting_orders(session, supplier_id):
            raise Conflict(
                "Buyers wait for this shop: refuse, cancel or finish their orders first.", code="open_orders"
            )
        close_supplier(session, principal, search, supplier)
    return supplier


def erase_supplier(session: Session, principal: Principal, search: ProductSearch, supplier: Supplier) -> None:
    """After `delete_account_data`, which locks reservations, and so comes before the products that this locks."""
    for table in (SupplierMember, SupplierInvitation, ShopToken, ShopPaymentMethods, Webhook):
        session.execute(delete(table).where(table.supplier_id == supplier.id))
    _erase_verification(session, supplier)
    supplier.name = supplier.business_name = "Deleted supplier"
    supplier.email = supplier.email_key = f"deleted-{supplier.id}"  # no e-mail: nobody can register or sign in with it
    supplier.email_confirmed_at = None
    supplier.phone = supplier.address = supplier.password_hash = None
    supplier.latitude, supplier.longitude = round(supplier.latitude, 1), round(supplier.longitude, 1)
    supplier.opening_hours = supplier.time_zone = None
    close_supplier(session, principal, search, supplier)
    erase_pictures(session, supplier.id)
    search.refresh_supplier(session, supplier.id)  # of a shop that was closed before: its products have its old words
    index_supplier_words(session, [supplier.id])
    audit.note(session, principal, "supplier.erase", "supplier", supplier.id)


def _erase_verification(session: Session, supplier: Supplier) -> None:
    """The digest of a suspended shop stays for `AUDIT_RETENTION_DAYS`: its card would give the badge to the next."""
    forget_card(session, supplier)
    shown = session.get(SupplierVerification, supplier.id)
    if shown is not None and supplier.status == "suspended":
        shown.shown_by = shown.decided_by = shown.decided_reason = None
    elif shown is not None:
        session.delete(shown)


def _erase_branches(session: Session, supplier_ids: Collection[int]) -> None:
    """Ledger and orders go on naming them by their numbers. Locked before products, as whoever moves units does."""
    rows = select(Branch).where(Branch.supplier_id.in_(supplier_ids)).order_by(Branch.id).with_for_update()
    for branch in session.scalars(rows.execution_options(populate_existing=True)):
        branch.name, branch.address = "Deleted place", None
        branch.latitude, branch.longitude = round(branch.latitude, 1), round(branch.longitude, 1)
        branch.opening_hours = branch.time_zone = None
        branch.version += 1
    session.flush()


def has_login(session: Session, supplier: Supplier) -> bool:
    """Whether the supplier could sign in by itself, if neither its owners nor closing it had ended its sessions.

    Else an owner would end them first, and then erase the supplier with the own account.
    """
    return supplier.password_hash is not None or has_session(session, supplier_account(supplier.id))


def delete_account_data(session: Session, search: ProductSearch, accounts: Collection[str]) -> None:
    """What belongs to the accounts of users or suppliers alone: held stock, open orders, sessions, links, responses.

    Of suppliers also what they answered to reviews: their own words.
    """
    supplier_ids = [number for kind, number in map(split_account, accounts) if kind == "supplier"]

    def end_orders_and_answers() -> Mapping[UnitsAt, int]:
        units = end_orders_of(session, accounts)
        erase_talks(session, accounts, supplier_ids)
        erase_answers(session, supplier_ids)
        _erase_branches(session, supplier_ids)
        return units

    release_all(session, search, accounts, end_orders_and_answers)
    forget_notices(session, accounts)
    for account in (RefreshToken.account, IdempotentRequest.actor, ShopToken.created_by):
        session.execute(delete(account.class_).where(account.in_(accounts)))
    for one in accounts:
        delete_links(session, one)
        notify(session, turn_off_webhooks_of(session, one))
