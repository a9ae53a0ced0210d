"""The log of changes: where a reader of the feed stopped, and what changed since."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select, text, update
from sqlalchemy.orm import Session

from tis.errors import ServiceError
from tis.marketplace.columns import now
from tis.marketplace.context import MarketServices
from tis.marketplace.kit.cursor_key import CursorKey
from tis.marketplace.search.sql import run
from tis.marketplace.tables import FeedChange, FeedState

_FORM = "1"  # of the fields: a change of them makes all feeds new
_BATCH_SIZE = 5000  # changes that get one number, in one short transaction
_MAX_BATCHES = 400  # of a request; the next one goes on
_LIST = b"changes of the feed"
_SETTLED = timedelta(seconds=2)
_PENDING = "SELECT product_id FROM feed_changes WHERE is_pending{is_true} ORDER BY product_id LIMIT :batch"
_UNLOCKED = " FOR UPDATE SKIP LOCKED"


class FeedCursorExpired(ServiceError):
    """The reader has to take the whole feed."""

    status = 410
    type = "invalid_request_error"
    code = "feed_cursor_expired"


@dataclass(frozen=True)
class FeedMoment:
    """All changes up to `latest` are in what is read after this."""

    latest: int
    changed_at: datetime
    context: str  # what all entries depend on: their form, the address of the server, the names of categories

    def tag(self, kind: str) -> str:
        """Weak: compressed and plain bodies have the same."""
        digest = hashlib.sha256(f"{self.latest} {self.context} {kind}".encode()).hexdigest()
        return f'W/"{digest[:32]}"'

    @property
    def last_modified(self) -> datetime | None:
        """None while another change could come within the same second."""
        return self.changed_at if now() - self.changed_at > _SETTLED else None


def read_moment(market: MarketServices) -> FeedMoment:
    """Numbers the changes that are committed, first."""
    _number_changes(market)
    with market.reading() as session:
        state = session.execute(select(FeedState.latest, FeedState.changed_at).where(FeedState.id == 1)).one()
        taxonomy = next((version for [version] in run(session, "SELECT version FROM taxonomy_version")), "")
    context = hashlib.sha256(f"{_FORM}\n{market.rules.public_url}\n{taxonomy}".encode()).hexdigest()[:16]
    return FeedMoment(state.latest, state.changed_at, context)


def encode_cursor(key: CursorKey, moment: FeedMoment) -> str:
    return key.encode(f"{moment.latest} {moment.context}".encode(), _LIST)


def decode_cursor(key: CursorKey, cursor: str, moment: FeedMoment) -> int:
    """The number after which the changes are new to its reader."""
    number, _, context = key.decode(cursor, _LIST).decode().partition(" ")
    if context != moment.context or int(number) > moment.latest:
        raise FeedCursorExpired(
            "All entries of the feed changed since this cursor: take the whole feed, without `since`."
        )
    return int(number)


def changed_batches(market: MarketServices, after: int, up_to: int, size: int) -> Iterator[list[int]]:
    """The products with numbers in between, a short transaction for each batch. What changes meanwhile gets a later
    number, so the next answer has it."""
    number, product_id = after + 1, 0
    while True:
        rows = (
            select(FeedChange.number, FeedChange.product_id)
            .where(FeedChange.number >= number, FeedChange.number <= up_to)
            .where((FeedChange.number > number) | (FeedChange.product_id > product_id))
            .order_by(FeedChange.number, FeedChange.product_id)
            .limit(size)
        )
        with market.reading() as session:
            found = session.execute(rows).all()
        if not found:
            return
        number, product_id = found[-1].number, found[-1].product_id
        yield [row.product_id for row in found]


def _number_changes(market: MarketServices) -> None:
    """A writer that has not committed yet keeps its mark: it is invisible, or locked and skipped."""
    for _ in range(_MAX_BATCHES):
        with market.reading() as session:
            if not _has_pending(session):
                return
        with market.writing() as session:
            num_changed = _number_some(session)
        if num_changed < _BATCH_SIZE:
            return


def _has_pending(session: Session) -> bool:
    condition = "is_pending" + _is_true(session)
    return session.execute(text(f"SELECT 1 FROM feed_changes WHERE {condition} LIMIT 1")).first() is not None


def _number_some(session: Session) -> int:
    state = session.scalars(select(FeedState).where(FeedState.id == 1).with_for_update()).one()
    sql = _PENDING.format(is_true=_is_true(session))
    if session.get_bind().dialect.name != "sqlite":
        sql += _UNLOCKED
    ids = session.scalars(text(sql), {"batch": _BATCH_SIZE}).all()
    if ids:
        state.latest += 1
        # Never back, whatever the clocks of several servers say.
        state.changed_at = max(state.changed_at, now())
        for start in range(0, len(ids), 500):
            some = FeedChange.product_id.in_(ids[start : start + 500])
            numbered = update(FeedChange).where(some).values(number=state.latest, is_pending=False)
            session.execute(numbered, execution_options={"synchronize_session": False})
    return len(ids)


def _is_true(session: Session) -> str:
    """MariaDB uses the index for a comparison alone; the others have one on `is_pending` as it is."""
    return " = 1" if session.get_bind().dialect.name == "mysql" else ""
