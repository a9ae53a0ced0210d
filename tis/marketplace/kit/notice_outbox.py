"""The outbox of notices: what a transaction tells accounts is written in that transaction, as its last statements.

Each account has its own numbers, 1, 2, 3 without holes: a reader that has seen one misses none before it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, insert, select, text
from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.kit.news import News, Role
from tis.marketplace.kit.notice_deliveries import forget_deliveries, store_deliveries
from tis.marketplace.tables import Notice, NoticeCounter, SupplierMember

OPEN = "open"  # the account of requests without a token, where MARKETPLACE_AUTH=open
MAX_KEPT = 1000  # of an account; older ones are deleted
_MAX_MEMBERS = 50  # of a supplier who are told
_PENDING, _FORGOTTEN = "notices", "accounts without notices"  # in `info` of the session


@dataclass(frozen=True)
class StoredNotices:
    accounts: Sequence[str] = ()
    go_out: bool = False  # by mail or to a webhook


def notify(session: Session, news: Iterable[News]) -> None:
    """Stored by `store_notices`, at the end of the transaction: a counter that is locked earlier could deadlock."""
    session.info.setdefault(_PENDING, []).extend(news)


def forget_notices(session: Session, accounts: Collection[str]) -> None:
    """Of accounts that are being deleted. They go at the end of the transaction, and it tells them nothing."""
    session.info.setdefault(_FORGOTTEN, set()).update(accounts)


def store_notices(session: Session, *, is_open: bool, by_mail: bool = False) -> StoredNotices:
    """Returns who has new ones. Locks the counters of accounts first, in one order."""
    pending: list[News] = session.info.pop(_PENDING, [])
    forgotten: set[str] = session.info.pop(_FORGOTTEN, set())
    if not pending and not forgotten:
        return StoredNotices()
    session.flush()
    if forgotten:
        forget_deliveries(session, forgotten)  # before the counters: whoever sends locks them in this order, too
    news, moment = _by_account(session, pending, is_open=is_open), now()
    stored: list[dict[str, Any]] = []
    for account in sorted(news.keys() | forgotten):
        if account in forgotten:
            session.execute(delete(NoticeCounter).where(NoticeCounter.account == account))
        else:
            first = _count(session, account, len(news[account])) - len(news[account]) + 1
            own = {"account": account, "created_at": moment}
            stored += [{**own, "number": first + at, **row} for at, row in enumerate(news[account])]
    if forgotten:
        session.execute(delete(Notice).where(Notice.account.in_(forgotten)))
    if not stored:
        return StoredNotices()
    session.execute(insert(Notice), stored)
    latest = {row["account"]: row["number"] for row in stored}
    for account, number in latest.items():
        session.execute(delete(Notice).where(Notice.account == account, Notice.number <= number - MAX_KEPT))
    return StoredNotices(list(latest), store_deliveries(session, stored, by_mail=by_mail))


def latest_numbers(session: Session, accounts: Collection[str]) -> dict[str, int]:
    counters = select(NoticeCounter.account, NoticeCounter.latest).where(NoticeCounter.account.in_(accounts))
    return {row.account: row.latest for row in session.execute(counters)}


def _by_account(session: Session, pending: Sequence[News], *, is_open: bool) -> dict[str, list[dict[str, Any]]]:
    """What each account is told, in the order in which it happened."""
    members = _members(session, {one.supplier_id for one in pending if one.supplier_id is not None})
    news: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in pending:
        for role in one.told:
            for account in _told(one, role, members, is_open=is_open):
                news[account].append({"type": one.type, "data": {**one.data, "role": role}})
    return news


def _told(one: News, role: Role, members: Mapping[int, list[str]], *, is_open: bool) -> list[str]:
    if role == "buyer":
        return [one.buyer or OPEN]
    shop = [] if one.supplier_id is None else members[one.supplier_id]
    return [*shop, *([OPEN] if is_open else [])]


def _count(session: Session, account: str, num: int) -> int:
    """Locks the counter until the end of the transaction, and returns what it says then."""
    tail = (
        "ON DUPLICATE KEY UPDATE latest = latest + VALUES(latest)"
        if session.get_bind().dialect.name == "mysql"
        else "ON CONFLICT (account) DO UPDATE SET latest = notice_counters.latest + excluded.latest"
    )
    counted = text(f"INSERT INTO notice_counters (account, latest) VALUES (:account, :num) {tail}")
    session.execute(counted, {"account": account, "num": num})
    return latest_numbers(session, [account])[account]


def _members(session: Session, supplier_ids: Collection[int]) -> dict[int, list[str]]:
    """The accounts of each supplier: its own, and its members'."""
    accounts = {number: [f"supplier:{number}"] for number in supplier_ids}
    employed = select(SupplierMember.supplier_id, SupplierMember.user_id)
    for supplier_id, user_id in session.execute(employed.where(SupplierMember.supplier_id.in_(supplier_ids))):
        if len(accounts[supplier_id]) <= _MAX_MEMBERS:
            accounts[supplier_id].append(f"user:{user_id}")
    return accounts
