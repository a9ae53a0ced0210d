"""Accounts: `user:7` or `supplier:3`. Both sign in with an e-mail and a password, and may have a copy of their data."""

from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import ColumnElement, Select, or_, select
from sqlalchemy.orm import Session

from tis.errors import Unauthenticated
from tis.marketplace.kit import audit
from tis.marketplace.kit.principal import Principal
from tis.marketplace.tables import (
    AuditEntry,
    Consent,
    IdempotentRequest,
    NoticeDelivery,
    NoticePreferences,
    OneTimeLink,
    Order,
    OrderAddress,
    OrderLine,
    OrderMove,
    Payment,
    PaymentRefund,
    PriceChange,
    RefreshToken,
    Reservation,
    ShopMessage,
    ShopTalk,
    StockMovement,
    Supplier,
    Table,
    User,
)
from tis.observability.request_log import current_request_id

SESSION_ENDED = "This token is no longer valid: its session ended, or its account did."
# Of exports. Hashes and the normalized e-mail add nothing to the rest; digests and chains are parts of credentials.
# Who of a shop answered a review is the shop's affair, a flag the admins'. The seeds of webhooks are parts of secrets.
_EXCLUDED = {"password_hash", "email_key", "digest", "chain", "request_digest", "answered_by", "answer_flagged_reason"}
_EXCLUDED |= {"sealed_credentials"}
_EXCLUDED |= {"seed", "former_seed"}
MAX_EXPORTED_ROWS = 50_000


def user_account(user_id: int) -> str:
    return f"user:{user_id}"


def supplier_account(supplier_id: int) -> str:
    return f"supplier:{supplier_id}"


def split_account(account: str) -> tuple[str, int]:
    kind, _, number = account.partition(":")
    return kind, int(number)


def account_holder(session: Session, account: str, *, locked: bool = False) -> User | Supplier | None:
    """None for one that may not sign in: deleted, or a suspended supplier."""
    kind, number = split_account(account)
    table = _TABLES[kind]
    statement = select(table).where(table.id == number, *_may_sign_in(table)).execution_options(populate_existing=True)
    # mypy joins the two tables to their base class.
    return cast(
        "User | Supplier | None", session.scalar(statement.with_for_update(key_share=True) if locked else statement)
    )


def lock_account(session: Session, account: str) -> None:
    """Until the transaction ends nobody deletes the account: what is written for it now would stay behind."""
    if account_holder(session, account, locked=True) is None:
        raise Unauthenticated(SESSION_ENDED)


def note_of_account(
    session: Session, account: str, what: str, principal: Principal | None = None, **changes: Any
) -> None:
    """In the audit log. Without a `principal`, the account itself did it, by a link or a refresh token."""
    kind, number = split_account(account)
    by = principal or Principal(account, request_id=current_request_id())
    audit.note(session, by, f"{kind}.{what}", kind, number, **changes)


def account_by_email(session: Session, kind: str, email_key: str) -> tuple[str, str | None] | None:
    """The account with this e-mail, and its password hash."""
    table = _TABLES[kind]
    row = session.execute(
        select(table.id, table.password_hash).where(table.email_key == email_key, *_may_sign_in(table))
    ).one_or_none()
    return None if row is None else (f"{kind}:{row.id}", row.password_hash)


def _may_sign_in(table: type[User] | type[Supplier]) -> list[ColumnElement[bool]]:
    not_deleted: ColumnElement[bool] = table.deleted_at.is_(None)
    return [not_deleted, Supplier.status == "active"] if table is Supplier else [not_deleted]


_TABLES: dict[str, type[User] | type[Supplier]] = {"user": User, "supplier": Supplier}


def account_export(session: Session, account: str, incomplete: Sequence[str] = ()) -> dict[str, Any]:
    """What an account did, and what is kept about it. `incomplete` names the lists that were cut, here or before."""
    kind, number = split_account(account)
    about = (AuditEntry.entity == kind) & (AuditEntry.entity_id == str(number))
    bought = select(Order.id).where(Order.buyer == account)
    lists = {
        "shop_talks": rows_of(session, select(ShopTalk).where(ShopTalk.buyer == account)),
        "shop_messages": rows_of(session, select(ShopMessage).where(ShopMessage.author == account)),
        "orders": rows_of(session, select(Order).where(Order.buyer == account)),
        "order_lines": rows_of(session, select(OrderLine).where(OrderLine.order_id.in_(bought))),
        "order_addresses": rows_of(session, select(OrderAddress).where(OrderAddress.order_id.in_(bought))),
        "order_moves": rows_of(session, select(OrderMove).where(OrderMove.actor == account)),
        "reservations": rows_of(session, select(Reservation).where(Reservation.actor == account)),
        "stock_movements": rows_of(session, select(StockMovement).where(StockMovement.actor == account)),
        "price_changes": rows_of(session, select(PriceChange).where(PriceChange.actor == account)),
        "payments": rows_of(session, select(Payment).where(Payment.order_id.in_(bought))),
        "refunds": rows_of(session, select(PaymentRefund).where(PaymentRefund.created_by == account)),
        "order_refunds": _without(
            "created_by", rows_of(session, select(PaymentRefund).where(PaymentRefund.order_id.in_(bought)))
        ),  # who of the shop gave it back is the shop's affair
        "sessions": rows_of(session, select(RefreshToken).where(RefreshToken.account == account)),
        "one_time_links": rows_of(session, select(OneTimeLink).where(OneTimeLink.account == account)),
        "consents": rows_of(session, select(Consent).where(Consent.account == account)),
        "remembered_answers": rows_of(session, select(IdempotentRequest).where(IdempotentRequest.actor == account)),
        "notice_preferences": rows_of(session, select(NoticePreferences).where(NoticePreferences.account == account)),
        "notice_deliveries": rows_of(session, select(NoticeDelivery).where(NoticeDelivery.account == account)),
        "audit_log": rows_of(session, select(AuditEntry).where(or_(AuditEntry.actor == account, about))),
    }
    return {
        **lists,
        "incomplete": [*incomplete, *(name for name, rows in lists.items() if len(rows) == MAX_EXPORTED_ROWS)],
    }


def rows_of(session: Session, statement: Select[Any]) -> list[dict[str, Any]]:
    """Oldest first, at most 50,000."""
    found: Sequence[Table] = session.scalars(statement.limit(MAX_EXPORTED_ROWS)).all()
    return sorted((columns_of(row) for row in found), key=_time_of)


def _without(column: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != column} for row in rows]


def columns_of(row: Table) -> dict[str, Any]:
    return {column.key: getattr(row, column.key) for column in row.__table__.columns if column.key not in _EXCLUDED}


def _time_of(row: dict[str, Any]) -> str:
    return str(row.get("created_at") or row.get("at") or row.get("valid_from"))
