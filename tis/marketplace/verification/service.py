"""What becomes of a card that a shop shows, and what an admin decides."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound, Unprocessable
from tis.marketplace.columns import now
from tis.marketplace.kit import audit
from tis.marketplace.kit.card_check import SeenCard
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.signing import Signer
from tis.marketplace.policy import require_admin, require_owner
from tis.marketplace.suppliers.service import (
    NO_CARD,
    WITHDRAWN_CARD,
    forget_card,
    lock_supplier_for_update,
    was_refused,
)
from tis.marketplace.tables import Supplier, SupplierVerification
from tis.marketplace.verification.names import names_match
from tis.marketplace.verification.schemas import (
    NOT_SHOWN,
    DoubtfulSupplier,
    VerificationDecision,
    VerificationStatus,
    VerificationView,
)

# Below these a card is read again: with a wrong digit its digest would be that of another card.
_MIN_NIK_CONFIDENCE, _MIN_NAME_CONFIDENCE = 0.9, 0.75
_MAX_NAMED = 10


def require_readable(card: SeenCard) -> None:
    """Raises Unprocessable, and nothing is kept."""
    for part, confidence, least, is_there in (
        ("NIK", card.nik_confidence, _MIN_NIK_CONFIDENCE, card.nik is not None and len(card.nik) == 16),
        ("name", card.name_confidence, _MIN_NAME_CONFIDENCE, card.name is not None),
    ):
        if not is_there or confidence < least:
            raise Unprocessable(
                f"The {part} of this card could not be read for certain. "
                "Take another picture, straight and in good light.",
                param="image",
                code="card_unreadable",
            )


def record_card(
    session: Session, principal: Principal, signer: Signer, supplier_id: int, card: SeenCard
) -> SupplierVerification:
    """A card without any doubt gives the badge; any other waits for an admin, and takes a badge away meanwhile."""
    supplier = lock_supplier_for_update(session, principal, supplier_id)
    digest = signer.digest(b"identity card:" + (card.nik or "").encode())
    matches = names_match(card.name or "", supplier.name)
    before = session.get(SupplierVerification, supplier_id)
    _require_same_while_suspended(supplier, before, digest)
    found = {
        "name_differs": not matches,
        "shown_before": bool(_others_with(session, digest, supplier_id)),
        "contradicts_itself": card.contradicts_itself,
        "photocopy": card.is_photocopy,
        "refused_before": before is not None and was_refused(before),
    }
    doubts = [name for name, is_so in found.items() if is_so]
    verification = before or SupplierVerification(supplier_id=supplier_id)
    verification.status = "doubtful" if doubts else "verified"
    verification.method, verification.name_matches, verification.doubts = "ktp-ocr", matches, doubts
    verification.card_digest, verification.first_digest = digest, None if doubts else digest
    verification.checked_at = verification.consent_at = now()
    verification.shown_by = principal.account
    verification.decided_at = verification.decided_by = verification.decided_reason = None
    session.add(verification)
    try:
        session.flush()
    except IntegrityError:
        raise Conflict("Another supplier shows this card at this moment. Try again.", code="card_shown") from None
    _set_badge(session, supplier, verification)
    audit.note(
        session, principal, "supplier.verify", "supplier", supplier_id, status=verification.status, doubts=doubts
    )
    return verification


def find_verification(session: Session, principal: Principal, supplier_id: int) -> SupplierVerification:
    if session.get(Supplier, supplier_id) is None:
        raise NotFound("Supplier not found")
    require_owner(principal, supplier_id)
    return _find(session, supplier_id)


def withdraw(session: Session, principal: Principal, supplier_id: int) -> bool:
    """The consent: the badge goes, and what is kept. Returns whether the digest stays, as the shop is suspended."""
    supplier = lock_supplier_for_update(session, principal, supplier_id)
    shown = session.get(SupplierVerification, supplier_id)
    if supplier.verified_at is not None or shown is not None:
        forget_card(session, supplier)
        supplier.version += 1
        session.flush()
        audit.note(session, principal, "supplier.unverify", "supplier", supplier_id)
    return shown is not None and WITHDRAWN_CARD in shown.doubts


def list_verifications(
    session: Session, principal: Principal, status: VerificationStatus, before: int | None, limit: int
) -> list[DoubtfulSupplier]:
    """The youngest supplier first."""
    require_admin(principal)
    rows = (
        select(SupplierVerification, Supplier)
        .join(Supplier, Supplier.id == SupplierVerification.supplier_id)
        .where(SupplierVerification.status == status)
        .order_by(SupplierVerification.supplier_id.desc())
        .limit(limit)
    )
    if before is not None:
        rows = rows.where(SupplierVerification.supplier_id < before)
    return [_for_admins(session, one, supplier) for one, supplier in session.execute(rows)]


def decide(
    session: Session, principal: Principal, supplier_id: int, decision: VerificationDecision
) -> DoubtfulSupplier:
    """What a later decision may change again."""
    require_admin(principal)
    supplier = lock_supplier_for_update(session, principal, supplier_id)
    verification = _find(session, supplier_id)
    is_withdrawn = verification.card_digest.startswith(NO_CARD) or WITHDRAWN_CARD in verification.doubts
    if is_withdrawn and decision.status == "verified":
        raise Conflict("The card was withdrawn: the shop has to show one again.", code="card_withdrawn")
    before, verification.status = verification.status, decision.status
    verification.first_digest = None
    verification.decided_at, verification.decided_by = now(), principal.account
    verification.decided_reason = decision.reason
    session.flush()
    _set_badge(session, supplier, verification)
    audit.note(
        session,
        principal,
        "supplier.verification",
        "supplier",
        supplier_id,
        status=[before, decision.status],
        reason=decision.reason,
    )
    return _for_admins(session, verification, supplier)


def _require_same_while_suspended(supplier: Supplier, before: SupplierVerification | None, digest: str) -> None:
    """Another card would take the place of the digest that has to stay."""
    has_card = before is not None and not before.card_digest.startswith(NO_CARD)
    if supplier.status == "suspended" and before is not None and has_card and before.card_digest != digest:
        raise Conflict("While it is suspended, this supplier shows no other card than before.", code="card_kept")


def verification_view(verification: SupplierVerification) -> VerificationView:
    return VerificationView(**{name: getattr(verification, name) for name in VerificationView.model_fields})


def _for_admins(session: Session, verification: SupplierVerification, supplier: Supplier) -> DoubtfulSupplier:
    return DoubtfulSupplier(
        **dict(verification_view(verification)),
        business_name=supplier.business_name,
        name=supplier.name,
        decided_by=verification.decided_by,
        shown_before_by=list(_others_with(session, verification.card_digest, supplier.id)),
    )


def _others_with(session: Session, digest: str, supplier_id: int) -> Sequence[int]:
    others = select(SupplierVerification.supplier_id).where(
        SupplierVerification.card_digest == digest, SupplierVerification.supplier_id != supplier_id
    )
    return session.scalars(others.order_by(SupplierVerification.supplier_id).limit(_MAX_NAMED)).all()


def _find(session: Session, supplier_id: int) -> SupplierVerification:
    verification = session.get(SupplierVerification, supplier_id)
    if verification is None:
        raise NotFound(NOT_SHOWN)
    return verification


def _set_badge(session: Session, supplier: Supplier, verification: SupplierVerification) -> None:
    supplier.verified_at = verification.checked_at if verification.status == "verified" else None
    supplier.version += 1
    session.flush()
