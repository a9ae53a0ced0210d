"""Tokens of a shop for its programs (a till, a script): named, with scopes and an expiry, shown once.

A token is refused wherever `policy.SCOPE_OF_ROUTE` does not name the route, whatever the shop itself may do there.
Whoever may read the list of tokens learns no token from it: the database has digests alone.
"""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Select, delete, func, or_, select, update
from sqlalchemy.orm import Session

from tis.errors import Conflict, Forbidden, NotFound, Unauthenticated
from tis.marketplace.auth.accounts import note_of_account, supplier_account
from tis.marketplace.columns import now
from tis.marketplace.kit.notice_deliveries import turn_off_webhooks_of
from tis.marketplace.kit.notice_outbox import notify
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import TokenScope
from tis.marketplace.tables import ShopToken, Supplier

_PREFIX = "tisshop_"  # so that a scanner of secrets can find one
_SECRET_BYTES = 32
_MAX_TOKENS = 20  # of a shop
_EXPIRED_RETENTION = timedelta(days=30)  # in the list, so that people see why a till was refused
_USE_INTERVAL = timedelta(minutes=1)  # `last_used_at` is no more exact: a write for each read would be dear


def is_shop_token(token: str) -> bool:
    return token.startswith(_PREFIX)


def new_shop_token(
    session: Session, principal: Principal, supplier_id: int, name: str, scopes: Sequence[TokenScope], days: int
) -> tuple[ShopToken, str]:
    """The row, and the token itself, which nobody can read again. The caller has locked the row of the supplier."""
    assert principal.account is not None
    of_shop = ShopToken.supplier_id == supplier_id
    if (session.scalar(select(func.count()).where(of_shop, ShopToken.expires_at > now())) or 0) >= _MAX_TOKENS:
        raise Conflict(f"A shop has at most {_MAX_TOKENS} tokens: revoke one first.", code="too_many_tokens")
    token, moment = _PREFIX + secrets.token_urlsafe(_SECRET_BYTES), now()
    row = ShopToken(
        supplier_id=supplier_id,
        digest=_digest(token),
        name=name,
        scopes=" ".join(sorted(set(scopes))),
        created_by=principal.account,
        created_at=moment,
        expires_at=moment + timedelta(days=days),
    )
    session.add(row)
    session.flush()
    _note(session, supplier_id, "token.create", principal, row)
    return row, token


def list_shop_tokens(session: Session, supplier_id: int) -> Sequence[ShopToken]:
    """Newest first, with those that expired lately."""
    own = select(ShopToken).where(ShopToken.supplier_id == supplier_id, ShopToken.expires_at > _forgotten_before())
    return session.scalars(own.order_by(ShopToken.id.desc()).limit(100)).all()


def revoke_shop_token(session: Session, principal: Principal, supplier_id: int, token_id: int) -> None:
    row = session.get(ShopToken, token_id)
    if row is None or row.supplier_id != supplier_id:
        raise NotFound("Token not found")
    _note(session, supplier_id, "token.revoke", principal, row)
    session.delete(row)


def revoke_tokens_of(session: Session, supplier_id: int, account: str) -> None:
    """Of one who may no longer make any, and could have kept a copy. Their webhooks are off."""
    own = ShopToken.supplier_id == supplier_id, ShopToken.created_by == account
    session.execute(delete(ShopToken).where(*own))
    notify(session, turn_off_webhooks_of(session, account, supplier_id))


def program_principal(session: Session, token: str, scope: TokenScope | None, request_id: str) -> Principal:
    """`scope`: what the route asks of a token; None where no token may call. In open mode, too, it does no more."""
    row = session.scalar(_valid().where(ShopToken.digest == _digest(token)))
    if row is None:
        raise Unauthenticated("This token of a shop is not valid: it expired or was revoked, or the shop is closed.")
    scopes = row.scopes.split()
    if scope is None:
        raise Forbidden("Tokens of shops may not do this: sign in as a member of the shop.", code="no_token_here")
    if scope not in scopes:
        raise Forbidden(f"This token has the scopes {', '.join(scopes)}: this needs {scope}.", code="scope_missing")
    return _principal_of(row, request_id)


def program_still_there(session: Session, account: str, scope: TokenScope, request_id: str) -> Principal | None:
    """For work that goes on after its request; `account` is the one of `program_principal`."""
    row = session.scalar(_valid().where(ShopToken.id == int(account.partition(":")[2])))
    return _principal_of(row, request_id) if row is not None and scope in row.scopes.split() else None


def note_use(session: Session, token: str) -> None:
    moment = now()
    is_stale = or_(ShopToken.last_used_at.is_(None), ShopToken.last_used_at < moment - _USE_INTERVAL)
    used = update(ShopToken).where(ShopToken.digest == _digest(token), is_stale)
    session.execute(used.values(last_used_at=moment))


def use_is_noted(session: Session, token: str) -> bool:
    """Also of a token that does not exist."""
    row = session.scalar(select(ShopToken).where(ShopToken.digest == _digest(token)))
    return row is None or (row.last_used_at is not None and row.last_used_at >= now() - _USE_INTERVAL)


def delete_expired_tokens(session: Session) -> None:
    session.execute(delete(ShopToken).where(ShopToken.expires_at <= _forgotten_before()))


def _valid() -> Select[ShopToken]:
    return (
        select(ShopToken)
        .join(Supplier, Supplier.id == ShopToken.supplier_id)
        .where(ShopToken.expires_at > now(), Supplier.status == "active", Supplier.deleted_at.is_(None))
    )


def _principal_of(row: ShopToken, request_id: str) -> Principal:
    return Principal(
        f"token:{row.id}",
        supplier_ids=frozenset({row.supplier_id}),
        request_id=request_id,
        is_program=True,
        scopes=frozenset(row.scopes.split()),
        token_of=row.created_by,
    )


def _note(session: Session, supplier_id: int, what: str, principal: Principal, row: ShopToken) -> None:
    note_of_account(session, supplier_account(supplier_id), what, principal, token=row.id, name=row.name)


def _forgotten_before() -> datetime:
    return now() - _EXPIRED_RETENTION


def _digest(token: str) -> str:
    """Of 32 random bytes: nobody can try them out, so it needs neither salt nor time."""
    return hashlib.sha256(token.encode()).hexdigest()
