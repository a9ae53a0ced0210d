"""Sessions as rows of the archive: what one transaction reads or writes. Nothing here waits for anything else."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session as Transaction

from tis.streaming.archive.packed_events import unpack
from tis.streaming.archive.records import RECORD_VERSION, ArchivedSession, SessionRow
from tis.streaming.archive.tables import ATTACHMENTS, EVENTS, SESSIONS
from tis.streaming.errors import ReplayGap, StoreUnavailable
from tis.streaming.stores.store import Event, SessionKey, SessionRecord, TurnRecord

_DELETED_SECONDS = 86_400.0  # how long the row of a deleted session stays
_NOT_READ = {"document", "request", "summary"}
_READ = [column for column in SESSIONS.c if column.name not in _NOT_READ]


def put(transaction: Transaction, row: SessionRow, now: float, ttl_seconds: float) -> bool:
    """Writes it, or writes it anew; False if there is one already, of a later holder, or that was deleted."""
    values = row.values(now, ttl_seconds)
    number = _insert_missing(transaction, values)
    if number is None:
        columns = (SESSIONS.c.number, SESSIONS.c.epoch, SESSIONS.c.is_deleted)
        found = transaction.execute(select(*columns).where(is_key(row.session.key)).with_for_update()).one()
        if found.is_deleted or found.epoch > row.session.epoch:
            return False
        number = int(found.number)
        transaction.execute(update(SESSIONS).where(SESSIONS.c.number == number).values(values))
        delete_contents(transaction, [number])
    for first_index, data in row.packs:
        transaction.execute(insert(EVENTS).values(session=number, first_index=first_index, data=data))
    _attach(transaction, number, row.attachments, row.session.document_version)
    return True


def create(transaction: Transaction, row: SessionRow, now: float, ttl_seconds: float) -> bool:
    """False if there is one already: another server was faster."""
    number = _insert_missing(transaction, row.values(now, ttl_seconds))
    if number is None:
        return False
    _attach(transaction, number, row.attachments, row.session.document_version)
    return True


def find(transaction: Transaction, key: SessionKey, now: float, store_now: float) -> ArchivedSession | None:
    """`store_now`: the same moment on the clock of the sessions' store, which their times are of."""
    found = transaction.execute(select(*_READ).where(is_key(key))).one_or_none()
    if found is None:
        return None
    if found.is_deleted or found.expires_at <= now:
        return ArchivedSession(None)
    if found.record_version > RECORD_VERSION:
        raise StoreUnavailable("A later version of the server has stored this object. Retry later.", retry_after=5)
    return ArchivedSession(record_of(key, found, now, store_now))


def find_events(transaction: Transaction, key: SessionKey, after: int, limit: int) -> Sequence[Event]:
    number = _number_of(transaction, key)
    pack = select(EVENTS.c.first_index, EVENTS.c.data).where(EVENTS.c.session == number).limit(1)
    holding = pack.where(EVENTS.c.first_index <= after + 1).order_by(EVENTS.c.first_index.desc())
    found = transaction.execute(holding).one_or_none() if number is not None else None
    gap = ReplayGap(f"Event {after + 1} is no longer kept.", param="last_event_id")
    if found is None:
        raise gap
    events = [event for event in unpack(found.first_index, found.data) if event.index > after]
    if not events and (last := transaction.scalar(_of(SESSIONS.c.last_index, key))) is not None and after < last:
        raise gap
    return events[:limit]


def find_document(transaction: Transaction, key: SessionKey) -> bytes | None:
    return transaction.scalar(_of(SESSIONS.c.document, key).where(~SESSIONS.c.is_deleted)) or None


def find_attachments(transaction: Transaction, key: SessionKey, names: Collection[str]) -> dict[str, bytes]:
    own = select(ATTACHMENTS.c.name, ATTACHMENTS.c.data).join(SESSIONS, SESSIONS.c.number == ATTACHMENTS.c.session)
    found = transaction.execute(own.where(is_key(key), ATTACHMENTS.c.name.in_(names)))
    return {str(name): bytes(data) for name, data in found}


def replace_document(
    transaction: Transaction,
    key: SessionKey,
    turn: TurnRecord,
    replaced_version: int,
    *,
    max_attached_bytes: int,
    now: float,
    ttl_seconds: float,
) -> bool:
    """False, and nothing has changed, if the document has another version or is gone."""
    is_same = and_(is_key(key), SESSIONS.c.document_version == replaced_version, ~SESSIONS.c.is_deleted)
    values = {"document": turn.document, "document_version": replaced_version + 1}
    times = {"used_at": now, "expires_at": now + ttl_seconds}
    changed = update(SESSIONS).where(is_same, SESSIONS.c.expires_at > now).values({**values, **times})
    number = transaction.scalar(changed.returning(SESSIONS.c.number))
    if number is None:
        return False
    _attach(transaction, number, turn.attachments, replaced_version + 1)
    _bound_attachments(transaction, number, turn.attachment_names, max_attached_bytes)
    return True


def mark_used(transaction: Transaction, key: SessionKey, now: float, ttl_seconds: float) -> None:
    times = {"used_at": now, "expires_at": now + ttl_seconds}
    transaction.execute(update(SESSIONS).where(is_key(key), ~SESSIONS.c.is_deleted).values(times))


def mark_deleted(transaction: Transaction, session: SessionRecord, now: float) -> None:
    """Also what is not here yet: a server that was away may still want to write it."""
    gone = TurnRecord(0, "", b"", 0, -1, "cancelled")
    values = SessionRow(session, gone).values(now, _DELETED_SECONDS) | {"is_deleted": True}
    if _insert_missing(transaction, values) is not None:
        return
    changed = update(SESSIONS).where(is_key(session.key)).values(values)
    delete_contents(transaction, transaction.scalars(changed.returning(SESSIONS.c.number)).all())


def delete_expired(transaction: Transaction, now: float, limit: int) -> int:
    """Deletes some of those whose time is over, and says how many. Servers that do so at once do not wait."""
    due = select(SESSIONS.c.number).where(SESSIONS.c.expires_at <= now).order_by(SESSIONS.c.expires_at).limit(limit)
    numbers = transaction.scalars(due.with_for_update(skip_locked=True)).all()
    if numbers:
        delete_contents(transaction, numbers)
        transaction.execute(delete(SESSIONS).where(SESSIONS.c.number.in_(numbers)))
    return len(numbers)


def record_of(key: SessionKey, found: Any, now: float, store_now: float) -> SessionRecord:
    turn = TurnRecord(0, found.fingerprint, b"", 0, found.last_index, found.status)
    if turn.status == "running":
        turn.last_index = None
    else:
        turn.ended_at = store_now - max(0.0, now - found.ended_at)
    session = SessionRecord(key, found.is_named, store_now - max(0.0, now - found.used_at), turns=[turn])
    session.next_index, session.kind, session.born = found.last_index + 1, found.kind, found.born
    session.ttl_seconds, session.document_version = found.expires_at - found.used_at, found.document_version
    session.epoch = found.epoch
    return session


def is_key(key: SessionKey) -> ColumnElement[bool]:
    return and_(SESSIONS.c.owner == key.owner, SESSIONS.c.id == key.id)


def _of(column: Any, key: SessionKey) -> Any:
    return select(column).where(is_key(key))


def _number_of(transaction: Transaction, key: SessionKey) -> int | None:
    found: int | None = transaction.scalar(_of(SESSIONS.c.number, key))
    return found


def _insert_missing(transaction: Transaction, values: Mapping[str, Any]) -> int | None:
    """The number of the new row; None if there is one already."""
    is_postgresql = transaction.get_bind().dialect.name == "postgresql"
    new = (postgresql.insert if is_postgresql else sqlite.insert)(SESSIONS).values(values)
    new = new.on_conflict_do_nothing(index_elements=["owner", "id"])
    number: int | None = transaction.scalar(new.returning(SESSIONS.c.number))
    return number


def _attach(transaction: Transaction, number: int, attachments: Mapping[str, bytes], document_version: int) -> None:
    if not attachments:
        return
    again = delete(ATTACHMENTS).where(ATTACHMENTS.c.session == number, ATTACHMENTS.c.name == bindparam("its_name"))
    for name, data in attachments.items():
        transaction.execute(again, {"its_name": name})
        values = {"num_bytes": len(data), "document_version": document_version, "data": data}
        transaction.execute(insert(ATTACHMENTS).values(session=number, name=name, **values))


def _bound_attachments(
    transaction: Transaction, number: int, names: Collection[str] | None, max_attached_bytes: int
) -> None:
    """Deletes those that the document does not name, and the oldest where there are too many bytes."""
    own = ATTACHMENTS.c.session == number
    order = (ATTACHMENTS.c.document_version.desc(), ATTACHMENTS.c.name)
    total, surplus = 0, []
    for name, num_bytes in transaction.execute(
        select(ATTACHMENTS.c.name, ATTACHMENTS.c.num_bytes).where(own).order_by(*order)
    ):
        is_named = names is None or name in names
        total += num_bytes if is_named else 0
        if not is_named or total > max_attached_bytes:
            surplus.append(name)
    if surplus:
        transaction.execute(delete(ATTACHMENTS).where(own, ATTACHMENTS.c.name.in_(surplus)))


def delete_contents(transaction: Transaction, numbers: Sequence[int]) -> None:
    for table in (EVENTS, ATTACHMENTS):
        transaction.execute(delete(table).where(table.c.session.in_(numbers)))
