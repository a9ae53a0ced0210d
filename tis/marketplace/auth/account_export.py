"""The rows about an account, for its export: of users and of suppliers."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, or_, select
from sqlalchemy.orm import Session

from tis.marketplace.auth.accounts import split_account
from tis.marketplace.tables import (
    AuditEntry,
    Consent,
    IdempotentRequest,
    OneTimeLink,
    PriceChange,
    RefreshToken,
    Reservation,
    StockMovement,
    Table,
)

# Hashes and the normalized e-mail add nothing to the rest; digests and chains are parts of credentials.
_EXCLUDED = {"password_hash", "email_key", "digest", "chain", "request_digest"}
_MAX_ROWS = 50_000


def account_export(session: Session, account: str, incomplete: Sequence[str] = ()) -> dict[str, Any]:
    """What an account did, and what is kept about it. `incomplete` names the lists that were cut, here or before."""
    kind, number = split_account(account)
    about = (AuditEntry.entity == kind) & (AuditEntry.entity_id == str(number))
    lists = {
        "reservations": rows_of(session, select(Reservation).where(Reservation.actor == account)),
        "stock_movements": rows_of(session, select(StockMovement).where(StockMovement.actor == account)),
        "price_changes": rows_of(session, select(PriceChange).where(PriceChange.actor == account)),
        "sessions": rows_of(session, select(RefreshToken).where(RefreshToken.account == account)),
        "one_time_links": rows_of(session, select(OneTimeLink).where(OneTimeLink.account == account)),
        "consents": rows_of(session, select(Consent).where(Consent.account == account)),
        "remembered_answers": rows_of(session, select(IdempotentRequest).where(IdempotentRequest.actor == account)),
        "audit_log": rows_of(session, select(AuditEntry).where(or_(AuditEntry.actor == account, about))),
    }
    return {**lists, "incomplete": [*incomplete, *(name for name, rows in lists.items() if len(rows) == _MAX_ROWS)]}


def rows_of(session: Session, statement: Select[Any]) -> list[dict[str, Any]]:
    """Oldest first, at most 50,000."""
    found: Sequence[Table] = session.scalars(statement.limit(_MAX_ROWS)).all()
    return sorted((columns_of(row) for row in found), key=_time_of)


def columns_of(row: Table) -> dict[str, Any]:
    return {column.key: getattr(row, column.key) for column in row.__table__.columns if column.key not in _EXCLUDED}


def _time_of(row: dict[str, Any]) -> str:
    return str(row.get("created_at") or row.get("at") or row.get("valid_from"))
