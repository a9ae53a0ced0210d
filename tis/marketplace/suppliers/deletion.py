"""Closing a supplier, or deleting it with its personal data.

Reviews, reservations and ledger lines stay, without a name: others rely on them.
"""

from collections.abc import Collection

from sqlalchemy import delete
from sqlalchemy.orm import Session

from tis.marketplace.auth.accounts import supplier_account
from tis.marketplace.kit import audit
from tis.marketplace.kit.principal import Principal
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.stock.service import release_all
from tis.marketplace.suppliers.members import owners_of
from tis.marketplace.suppliers.service import close_supplier, lock_supplier_for_update
from tis.marketplace.tables import IdempotentRequest, RefreshToken, Supplier, SupplierMember


def close_or_delete_supplier(
    session: Session, principal: Principal, search: ProductSearch, supplier_id: int
) -> Supplier:
    """A supplier that closes itself and has no owner is deleted: nobody could ever sign in to restore it."""
    supplier = lock_supplier_for_update(session, principal, supplier_id)
    if principal.account == supplier_account(supplier_id) and not owners_of(session, supplier_id):
        delete_account_data(session, search, [supplier_account(supplier_id)])
        erase_supplier(session, principal, search, supplier)
    else:
        close_supplier(session, principal, search, supplier)
    return supplier


def erase_supplier(session: Session, principal: Principal, search: ProductSearch, supplier: Supplier) -> None:
    """After `delete_account_data`, which locks reservations, and so comes before the products that this locks."""
    session.execute(delete(SupplierMember).where(SupplierMember.supplier_id == supplier.id))
    supplier.name = supplier.business_name = "Deleted supplier"
    supplier.email = supplier.email_key = f"deleted-{supplier.id}"  # no e-mail: nobody can register or sign in with it
    supplier.phone = supplier.address = supplier.password_hash = None
    supplier.latitude, supplier.longitude = round(supplier.latitude, 1), round(supplier.longitude, 1)
    close_supplier(session, principal, search, supplier)
    audit.note(session, principal, "supplier.erase", "supplier", supplier.id)


def delete_account_data(session: Session, search: ProductSearch, accounts: Collection[str]) -> None:
    """What belongs to the accounts of users or suppliers alone: held stock, sessions, saved responses."""
    release_all(session, search, accounts)
    session.execute(delete(RefreshToken).where(RefreshToken.account.in_(accounts)))
    session.execute(delete(IdempotentRequest).where(IdempotentRequest.actor.in_(accounts)))
