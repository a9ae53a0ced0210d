"""Registering, changing, closing, restoring and suspending suppliers."""

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound
from tis.marketplace.auth.accounts import (
    MAX_EXPORTED_ROWS,
    account_export,
    columns_of,
    lock_account,
    rows_of,
    supplier_account,
    user_account,
)
from tis.marketplace.auth.service import flush_unique_email
from tis.marketplace.auth.tokens import end_all_chains
from tis.marketplace.columns import now
from tis.marketplace.kit import audit
from tis.marketplace.kit.fields import abbreviated_name, email_key, key_of
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.versions import IfMatch
from tis.marketplace.pictures.service import exported_pictures
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.policy import require_account_owner, require_admin, require_owner, sees_hidden_goods
from tis.marketplace.reviews.answers import exported_answers
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.supplier_index import index_supplier_words
from tis.marketplace.suppliers.schemas import SupplierRegistration
from tis.marketplace.tables import (
    Branch,
    Product,
    Review,
    ShopPaymentMethods,
    ShopToken,
    Supplier,
    SupplierMember,
    SupplierVerification,
    User,
    Webhook,
)

NO_CARD = "none of "  # instead of a digest: the card was withdrawn
WITHDRAWN_CARD = "withdrawn"  # among `doubts`: only the digest is kept, until the suspension ends
_SEARCHED = {"business_name", "city", "province", "latitude", "longitude", "shows_place"}  # found with its products
_FOUND_BY = {"business_name", "city", "province", "opening_hours", "time_zone", "longitude"}
_PRIVATE = {"name", "email", "phone", "address", "latitude", "longitude"}


def register_supplier(
    session: Session, principal: Principal, body: SupplierRegistration, password_hash: str | None
) -> Supplier:
    """A user who registers a supplier owns it."""
    if principal.user_id is not None:
        lock_account(session, user_account(principal.user_id))
    supplier = Supplier(
        **body.model_dump(exclude={"password", "consent_version"}),
        email_key=email_key(body.email),
        city_key=key_of(body.city),
        place_code=gazetteer().code_of(body.city, body.province),
        password_hash=password_hash,
    )
    session.add(supplier)
    flush_unique_email(session)
    if principal.user_id is not None:
        session.add(SupplierMember(supplier_id=supplier.id, user_id=principal.user_id, role="owner"))
    audit.note(session, principal, "supplier.register", "supplier", supplier.id)
    index_supplier_words(session, [supplier.id])
    return supplier


def public_supplier(session: Session, principal: Principal, supplier_id: int) -> Supplier:
    """A closed supplier is visible only to those who may see its hidden products."""
    supplier = session.get(Supplier, supplier_id)
    if supplier is None or not (supplier.is_active or sees_hidden_goods(principal, supplier_id)):
        raise NotFound("Supplier not found")
    return supplier


def lock_supplier_for_update(session: Session, principal: Principal, supplier_id: int) -> Supplier:
    """For its owners to change it, until the transaction ends. In open mode also a closed one.

    `key_share` (FOR NO KEY UPDATE): transactions that write rows with a foreign key to the supplier need not wait.
    """
    supplier = session.get(Supplier, supplier_id, with_for_update={"key_share": True}, populate_existing=True)
    if supplier is None or not (supplier.is_active or principal.is_open or sees_hidden_goods(principal, supplier_id)):
        raise NotFound("Supplier not found")
    require_owner(principal, supplier_id)
    return supplier


def change_supplier(
    session: Session,
    principal: Principal,
    search: ProductSearch,
    supplier_id: int,
    changes: dict[str, Any],
    if_match: IfMatch,
    *,
    email_by_link: bool = False,
) -> Supplier:
    """`email_by_link`: the e-mail changes only when a link that is mailed to it is followed."""
    supplier = lock_supplier_for_update(session, principal, supplier_id)
    if_match.check(supplier.version)
    changes = {name: new for name, new in changes.items() if getattr(supplier, name) != new}
    if not changes:
        return supplier
    if email_by_link and "email" in changes:
        raise Conflict("The e-mail changes by a link: ask for one with `POST /api/auth/email`.", code="email_by_link")
    logged = {name: True if name in _PRIVATE else [getattr(supplier, name), new] for name, new in changes.items()}
    for name, value in changes.items():
        setattr(supplier, name, value)
    supplier.email_key, supplier.city_key = email_key(supplier.email), key_of(supplier.city)
    supplier.place_code = gazetteer().code_of(supplier.city, supplier.province)
    if "email" in changes:
        supplier.email_confirmed_at = None
    if "name" in changes:
        forget_card(session, supplier)  # it was compared with the other name
    supplier.version += 1
    flush_unique_email(session)
    audit.note(session, principal, "supplier.change", "supplier", supplier_id, **logged)
    if _SEARCHED & changes.keys():
        search.refresh_supplier(session, supplier_id)
    if _FOUND_BY & changes.keys():
        index_supplier_words(session, [supplier_id])
    return supplier


def forget_card(session: Session, supplier: Supplier) -> None:
    """What is kept of the card that it showed, and the badge. A refusal stays, without the card: else who is refused
    would withdraw, show the card again, and pass by the admin. While a shop is suspended the digest stays, too: else
    its card would give the badge to the next shop."""
    shown = session.get(SupplierVerification, supplier.id, with_for_update=True, populate_existing=True)
    supplier.verified_at = None
    if shown is None:
        return
    is_refused, is_suspended = was_refused(shown), supplier.status == "suspended"
    if not (is_refused or is_suspended):
        session.delete(shown)
        return
    if not is_refused:  # an admin has decided otherwise, or not
        shown.decided_at = shown.decided_by = shown.decided_reason = None
    shown.status, shown.name_matches, shown.first_digest = "refused", False, None
    if not is_suspended:
        shown.card_digest = f"{NO_CARD}{supplier.id}"
    found = {"refused_before": is_refused, WITHDRAWN_CARD: is_suspended}
    shown.doubts = [name for name, is_so in found.items() if is_so]


def was_refused(shown: SupplierVerification) -> bool:
    """By an admin, who has not pardoned it since."""
    is_decided = shown.status == "refused" and shown.decided_at is not None
    return shown.status != "verified" and (is_decided or "refused_before" in shown.doubts)


def close_supplier(session: Session, principal: Principal, search: ProductSearch, supplier: Supplier) -> None:
    if supplier.deleted_at is None:
        supplier.deleted_at = now()
        end_all_chains(session, supplier_account(supplier.id))
        _record_status(session, principal, search, supplier, "supplier.delete")


def restore_supplier(session: Session, principal: Principal, search: ProductSearch, supplier_id: int) -> Supplier:
    supplier = lock_supplier_for_update(session, principal, supplier_id)
    if supplier.deleted_at is not None:
        supplier.deleted_at = None
        _record_status(session, principal, search, supplier, "supplier.restore")
    return supplier


def set_status(
    session: Session,
    principal: Principal,
    search: ProductSearch,
    supplier_id: int,
    status: str,
    reason: str | None = None,
) -> Supplier:
    require_admin(principal)
    supplier = lock_supplier_for_update(session, principal, supplier_id)
    before, supplier.status = supplier.status, status
    if before != status:
        if status == "suspended":
            end_all_chains(session, supplier_account(supplier_id))
        else:
            _forget_withdrawn_card(session, supplier)
        noted = {"reason": reason} if reason else {}
        _record_status(session, principal, search, supplier, "supplier.status", status=[before, status], **noted)
    return supplier


def _forget_withdrawn_card(session: Session, supplier: Supplier) -> None:
    shown = session.get(SupplierVerification, supplier.id)
    if shown is not None and WITHDRAWN_CARD in shown.doubts:
        forget_card(session, supplier)


def _record_status(
    session: Session, principal: Principal, search: ProductSearch, supplier: Supplier, action: str, **changes: Any
) -> None:
    supplier.version += 1
    session.flush()
    audit.note(session, principal, action, "supplier", supplier.id, **changes)
    search.refresh_supplier(session, supplier.id)
    if supplier.is_active:
        search.note_reopened(session, supplier.id)


def export_supplier_data(session: Session, principal: Principal, supplier_id: int) -> dict[str, Any]:
    account = supplier_account(supplier_id)
    require_account_owner(principal, account)
    supplier = session.get(Supplier, supplier_id)
    if supplier is None:
        raise NotFound("Supplier not found")
    pictures = exported_pictures(session, supplier_id, MAX_EXPORTED_ROWS + 1)
    goods = session.scalar(select(func.count()).where(Product.supplier_id == supplier_id))
    answers = exported_answers(session, Review.supplier_id == supplier_id)
    methods = session.get(ShopPaymentMethods, supplier_id)
    full = {"pictures": len(pictures) > MAX_EXPORTED_ROWS, "review_answers": len(answers) == MAX_EXPORTED_ROWS}
    return {
        "profile": {**columns_of(supplier), "has_password": supplier.password_hash is not None},
        "members": _exported_members(session, supplier_id),
        "product_count": goods,
        **account_export(session, account, [name for name, is_full in full.items() if is_full]),
        "pictures": pictures[:MAX_EXPORTED_ROWS],
        "review_answers": answers,
        "verification": rows_of(
            session, select(SupplierVerification).where(SupplierVerification.supplier_id == supplier_id)
        ),
        "payment_methods": columns_of(methods) if methods else None,
        "branches": rows_of(session, select(Branch).where(Branch.supplier_id == supplier_id)),
        "tokens": rows_of(session, select(ShopToken).where(ShopToken.supplier_id == supplier_id)),
        "webhooks": rows_of(session, select(Webhook).where(Webhook.supplier_id == supplier_id)),
    }


def _exported_members(session: Session, supplier_id: int) -> list[dict[str, Any]]:
    rows = session.execute(
        select(SupplierMember, User.name)
        .join(User, User.id == SupplierMember.user_id)
        .where(SupplierMember.supplier_id == supplier_id)
        .order_by(SupplierMember.user_id)
    )
    return [{**columns_of(member), "name": abbreviated_name(name)} for member, name in rows]
