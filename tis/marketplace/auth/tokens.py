"""Chains of refresh tokens: each login begins a chain, and only the newest refresh token of a chain is valid.

A refresh token that is used twice was stolen: it ends its chain. People see a chain as a session: where their account
is signed in.
"""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any, cast

from pydantic import BaseModel
from sqlalchemy import CursorResult, Select, and_, delete, exists, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from tis.errors import NotFound
from tis.marketplace.auth.accounts import account_holder, note_of_account, split_account
from tis.marketplace.auth.schemas import SessionView
from tis.marketplace.columns import now
from tis.marketplace.context import MarketServices
from tis.marketplace.kit import audit
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.signing import Claims
from tis.marketplace.tables import RefreshToken
from tis.observability.request_log import current_request_id

# Expired tokens stay for this long. No access token lives longer, so a chain is known while its tokens may come.
_EXPIRED_RETENTION = timedelta(days=1)
_MAX_LISTED = 100


class TokenPair(BaseModel):
    access_token: str
    refresh_token: str
    token_type: str = "bearer"


def begin_chain(session: Session, market: MarketServices, account: str, agent: str | None = None) -> TokenPair:
    """`agent` is the program that signs in, for the list of sessions."""
    return _add_link(session, market, account, secrets.token_hex(16), now(), agent)


def extend_chain(
    session: Session, market: MarketServices, account: str, chain: str, agent: str | None = None
) -> TokenPair | None:
    """Further tokens of a session, for a client that lost those it got. None if the session or the account ended."""
    if not (is_chain_active(session, chain, account) and account_holder(session, account)):
        return None
    begun = select(func.min(RefreshToken.signed_in_at))
    signed_in_at = session.scalar(begun.where(RefreshToken.chain == chain)) or now()
    return _add_link(session, market, account, chain, signed_in_at, agent)


def rotate(session: Session, market: MarketServices, refresh_token: str, agent: str | None = None) -> TokenPair | None:
    """None if the token is not the newest of its chain. The chain is ended then, so the caller must commit."""
    claims = market.signer.read(refresh_token, "refresh")
    # Locked first: a deletion that goes on at this moment would not see the new token.
    holder = account_holder(session, claims.account, locked=True)
    # Of several requests with the same token, the database lets one find it unused.
    moment = now()
    use = (
        update(RefreshToken)
        .where(
            RefreshToken.digest == _digest(claims.token_id),
            RefreshToken.account == claims.account,
            RefreshToken.used_at.is_(None),
            RefreshToken.expires_at > moment,
        )
        .values(used_at=moment)
    )
    is_newest = cast(CursorResult[Any], session.execute(use)).rowcount == 1
    if is_newest and is_chain_active(session, claims.chain, claims.account) and holder is not None:
        begun = select(RefreshToken.signed_in_at).where(RefreshToken.digest == _digest(claims.token_id))
        signed_in_at = session.scalars(begun).one()
        _delete_expired_links(session, claims.chain)
        return _add_link(session, market, claims.account, claims.chain, signed_in_at, agent)
    if end_chain(session, claims.chain):
        kind, number = split_account(claims.account)
        audit.note(session, Principal(claims.account, request_id=current_request_id()), "token.reuse", kind, number)
    return None


def is_chain_active(session: Session, chain: str, account: str) -> bool:
    """Whether this database began the chain for this account: with a shared signing key, `user:1` may be another's.

    One revoked link ends the chain: a concurrent rotation may have added another link at the same moment.
    """
    in_chain = RefreshToken.chain == chain
    begun = exists().where(in_chain, RefreshToken.account == account)
    ended = exists().where(in_chain, RefreshToken.revoked_at.is_not(None))
    return bool(session.scalar(select(begun & ~ended)))


def has_session(session: Session, account: str) -> bool:
    """Whether the account is signed in, or would still be if others had not ended its session.

    Used links count, too: the client of an ended session may have tried to refresh it, which uses up its newest link.
    """
    link = aliased(RefreshToken)
    signed_out = exists().where(RefreshToken.chain == link.chain, RefreshToken.signed_out)
    valid = exists().where(link.account == account, link.expires_at > now(), ~signed_out)
    return bool(session.scalar(select(valid)))


def end_chain(session: Session, chain: str, *, signed_out: bool = False) -> bool:
    """`signed_out`: the account itself ends it. Returns whether the chain was active until now."""
    links = RefreshToken.chain == chain, RefreshToken.revoked_at.is_(None)
    ended = session.execute(update(RefreshToken).where(*links).values(revoked_at=now(), signed_out=signed_out))
    return cast(CursorResult[Any], ended).rowcount > 0


def end_all_chains(
    session: Session, account: str, except_chain: str | None = None, *, signed_out: bool = False
) -> None:
    links = [RefreshToken.account == account, RefreshToken.revoked_at.is_(None)]
    if except_chain is not None:
        links.append(RefreshToken.chain != except_chain)
    session.execute(update(RefreshToken).where(*links).values(revoked_at=now(), signed_out=signed_out))


def active_links(account: str) -> Select[RefreshToken]:
    """The newest link of each session of the account, newest first."""
    other, moment = aliased(RefreshToken), now()
    ended = exists().where(other.chain == RefreshToken.chain, other.revoked_at.is_not(None))
    # A registration that was sent twice has two links that may be used.
    newer = or_(
        other.created_at > RefreshToken.created_at,
        and_(other.created_at == RefreshToken.created_at, other.digest < RefreshToken.digest),
    )
    has_newer = exists().where(other.chain == RefreshToken.chain, other.used_at.is_(None), newer)
    usable = RefreshToken.used_at.is_(None), RefreshToken.expires_at > moment, ~ended, ~has_newer
    newest_first = RefreshToken.created_at.desc(), RefreshToken.digest
    return select(RefreshToken).where(RefreshToken.account == account, *usable).order_by(*newest_first)


def sessions_of(session: Session, principal: Principal, account: str) -> list[SessionView]:
    """Newest first."""
    links = session.scalars(active_links(account).limit(_MAX_LISTED))
    return [_session_view(link, principal) for link in links]


def end_session_of(session: Session, principal: Principal, account: str, session_id: str) -> None:
    own = active_links(account).where(RefreshToken.chain == session_id)
    if session.scalar(own.limit(1)) is None:
        raise NotFound("Session not found")
    end_chain(session, session_id, signed_out=principal.account == account)
    note_of_account(session, account, "sign_out", principal)


def end_other_sessions_of(session: Session, principal: Principal, account: str) -> None:
    """All but the session of the caller."""
    end_all_chains(session, account, except_chain=principal.chain, signed_out=principal.account == account)
    note_of_account(session, account, "sign_out", principal)


def _session_view(link: RefreshToken, principal: Principal) -> SessionView:
    return SessionView(
        id=link.chain,
        is_current=link.chain == principal.chain,
        agent=link.agent,
        signed_in_at=link.signed_in_at,
        refreshed_at=link.created_at,
        expires_at=link.expires_at,
    )


def delete_expired_chains(session: Session) -> None:
    """Whole chains only: one revoked link says that the others are revoked, too."""
    newer, moment = aliased(RefreshToken), now() - _EXPIRED_RETENTION
    has_newer = exists().where(newer.chain == RefreshToken.chain, newer.expires_at > moment)
    digests = select(RefreshToken.digest).where(RefreshToken.expires_at <= moment, ~has_newer)
    # Wrapped, as MySQL refuses to read the table it deletes from.
    session.execute(
        delete(RefreshToken).where(RefreshToken.digest.in_(select(digests.subquery().c.digest))),
        execution_options={"synchronize_session": False},
    )


def _add_link(
    session: Session, market: MarketServices, account: str, chain: str, signed_in_at: datetime, agent: str | None
) -> TokenPair:
    rules, moment = market.rules, now()
    access = Claims(account, chain, secrets.token_hex(16))
    refresh = Claims(account, chain, secrets.token_hex(16))
    days = timedelta(days=rules.refresh_token_days)
    session.add(
        RefreshToken(
            digest=_digest(refresh.token_id),
            chain=chain,
            account=account,
            created_at=moment,
            expires_at=moment + days,
            signed_in_at=signed_in_at,
            agent=agent,
        )
    )
    session.flush()
    return TokenPair(
        access_token=market.signer.sign("access", access, rules.access_token_minutes * 60),
        refresh_token=market.signer.sign("refresh", refresh, days.total_seconds()),
    )


def _delete_expired_links(session: Session, chain: str) -> None:
    """Of an active chain: an expired refresh token is refused without its row, too."""
    expired = RefreshToken.expires_at < now() - _EXPIRED_RETENTION
    session.execute(delete(RefreshToken).where(RefreshToken.chain == chain, expired, RefreshToken.revoked_at.is_(None)))


def _digest(token_id: str) -> str:
    return hashlib.sha256(token_id.encode()).hexdigest()
