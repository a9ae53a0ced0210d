"""The background job that looks at changed products for alerts and saved searches.

Every server may run it. Whoever has locked the changes tells of them, and deletes them in the same transaction. What
is compared is the product as it is then: a price that fell and rose again before the look is not told.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Select, delete, exists, func, insert, or_, select, update
from sqlalchemy.orm import Session

from tis.marketplace.alerts.product_alerts import CAN_BE_BOUGHT, tell_alerts
from tis.marketplace.alerts.saved_searches import query_of
from tis.marketplace.auth.accounts import user_account
from tis.marketplace.columns import now
from tis.marketplace.kit.fields import MAX_ID
from tis.marketplace.kit.news import News
from tis.marketplace.kit.notice_outbox import notify
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.tables import PriceChange, ProductFacts, Promotion, SavedSearch, SearchFind, UnwatchedChange

_MAX_NAMED = 20  # products in a notice of a search; the rest is counted
_MAX_FINDS = 1000  # of a search: the oldest are forgotten
OpenTransaction = Callable[[], AbstractContextManager[Session]]


@dataclass(frozen=True)
class WatchLimits:
    """How much is looked at in a transaction."""

    changes: int = 100
    alerts: int = 200
    searches: int = 50
    search_news_minutes: float = 60.0  # between two notices of a saved search


@dataclass(frozen=True)
class _Batch:
    """Changes that have been looked at equally far."""

    ids: list[int]
    product_ids: list[int]
    after_alert: int
    after_search: int


class Watch:
    def __init__(
        self,
        reading: OpenTransaction,
        writing: OpenTransaction,
        search: ProductSearch,
        limits: WatchLimits | None = None,
    ) -> None:
        self._reading, self._writing, self._search = reading, writing, search
        self._limits = limits or WatchLimits()

    def step(self) -> bool:
        """Whether there may be more to do."""
        has_looked = self._look()
        return self._tell_finds() or has_looked

    def _look(self) -> bool:
        with self._reading() as session:
            batch = self._next_batch(session)
            if batch is None:
                return False
            searches = self._next_searches(session, batch)
            finds = self._finds(session, searches, batch.product_ids)
        with self._writing() as session:
            if not _is_still_there(session, batch):
                return True  # another server has it
            last_alert = tell_alerts(session, batch.product_ids, batch.after_alert, self._limits.alerts)
            _keep(session, finds)
            last_search = searches[-1].id if len(searches) == self._limits.searches else None
            _move_on(session, batch, last_alert, last_search)
        return True

    def _next_batch(self, session: Session) -> _Batch | None:
        rows = session.scalars(select(UnwatchedChange).order_by(UnwatchedChange.id).limit(self._limits.changes)).all()
        if not rows:
            return None
        progress = rows[0].after_alert, rows[0].after_search
        same = [row for row in rows if (row.after_alert, row.after_search) == progress]
        return _Batch([row.id for row in same], sorted({row.product_id for row in same}), *progress)

    def _next_searches(self, session: Session, batch: _Batch) -> Sequence[SavedSearch]:
        rows = select(SavedSearch).where(SavedSearch.tells, SavedSearch.id > batch.after_search)
        return session.scalars(rows.order_by(SavedSearch.id).limit(self._limits.searches)).all()

    def _finds(
        self, session: Session, searches: Sequence[SavedSearch], product_ids: Sequence[int]
    ) -> dict[int, set[int]]:
        """By search, the products that are news for it."""
        if not searches:
            return {}
        bought = ProductFacts.product_id.in_(product_ids), ProductFacts.sellable == CAN_BE_BOUGHT
        created = dict(session.execute(select(ProductFacts.product_id, ProductFacts.created_us).where(*bought)).all())
        found = {one.id: self._news_for(session, one, created) for one in searches} if created else {}
        return {number: products for number, products in found.items() if products}

    def _news_for(self, session: Session, saved: SavedSearch, created: Mapping[int, int]) -> set[int]:
        query = self._search.read(session, query_of(saved)).query
        matching = self._search.matching(session, query, sorted(created))
        since_us = saved.tells_since.timestamp() * 1_000_000
        return {
            number
            for number in matching
            if created[number] > since_us
            or _was_dearer(session, number, saved, query.max_price)
            or (query.on_promotion and _promotion_began(session, number, saved))
        }

    def _tell_finds(self) -> bool:
        with self._reading() as session:
            due = session.scalars(self._due().limit(self._limits.searches)).all()
            matching = {saved.id: self._still_matching(session, saved) for saved in due}
        for number, (looked_at, kept) in matching.items():
            with self._writing() as session:
                self._tell(session, number, looked_at, kept)
        return len(due) == self._limits.searches

    def _due(self) -> Select[SavedSearch]:
        untold = select(SearchFind.saved_search_id).where(SearchFind.told_at.is_(None))
        earlier = now() - timedelta(minutes=self._limits.search_news_minutes)
        is_due = or_(SavedSearch.told_at.is_(None), SavedSearch.told_at <= earlier)
        return select(SavedSearch).where(SavedSearch.tells, is_due, SavedSearch.id.in_(untold)).order_by(SavedSearch.id)

    def _still_matching(self, session: Session, saved: SavedSearch) -> tuple[list[int], set[int]]:
        """The finds that are not told, some of them, and those of these that it finds now."""
        untold = SearchFind.saved_search_id == saved.id, SearchFind.told_at.is_(None)
        rows = select(SearchFind.product_id).where(*untold).order_by(SearchFind.found_at, SearchFind.product_id)
        found = list(session.scalars(rows.limit(self._limits.changes)))
        query = self._search.read(session, query_of(saved)).query
        return found, self._search.matching(session, query, found)

    def _tell(self, session: Session, number: int, looked_at: Collection[int], kept: Collection[int]) -> None:
        """Under the lock of the search: of two servers one finds nothing that is not told."""
        locked = self._due().where(SavedSearch.id == number).with_for_update()
        saved = session.scalar(locked.execution_options(populate_existing=True))
        if saved is None:
            return
        untold = SearchFind.saved_search_id == number, SearchFind.told_at.is_(None)
        rows = select(SearchFind.product_id).where(*untold, SearchFind.product_id.in_(looked_at))
        found = sorted(session.scalars(rows), reverse=True)
        told = [one for one in found if one in kept]
        if told:
            saved.told_at = now()
            session.flush()
        # What it does not find any more is forgotten, so it may be found again.
        session.execute(delete(SearchFind).where(*untold, SearchFind.product_id.in_(set(found) - set(told))))
        if not told:
            return
        session.execute(
            update(SearchFind).where(*untold, SearchFind.product_id.in_(told)).values(told_at=saved.told_at)
        )
        _forget_oldest(session, number)
        named = ",".join(map(str, told[:_MAX_NAMED]))
        data: dict[str, str | int] = {"saved_search_id": number, "product_ids": named, "count": len(told)}
        notify(session, [News("search.match", data, buyer=user_account(saved.user_id))])


def _is_still_there(session: Session, batch: _Batch) -> bool:
    same = UnwatchedChange.after_alert == batch.after_alert, UnwatchedChange.after_search == batch.after_search
    rows = select(UnwatchedChange.id).where(UnwatchedChange.id.in_(batch.ids), *same).order_by(UnwatchedChange.id)
    return len(session.scalars(rows.with_for_update(skip_locked=True)).all()) == len(batch.ids)


def _keep(session: Session, finds: Mapping[int, Collection[int]]) -> None:
    """Under the locks of the searches, each product once. A search that was deleted or switched off keeps none."""
    locked = select(SavedSearch.id).where(SavedSearch.id.in_(finds), SavedSearch.tells).order_by(SavedSearch.id)
    rows = []
    for number in session.scalars(locked.with_for_update()).all() if finds else ():
        known = select(SearchFind.product_id).where(SearchFind.saved_search_id == number)
        new = set(finds[number]).difference(session.scalars(known.where(SearchFind.product_id.in_(finds[number]))))
        rows += [{"saved_search_id": number, "product_id": one} for one in sorted(new)]
    if rows:
        session.execute(insert(SearchFind), rows)


def _move_on(session: Session, batch: _Batch, last_alert: int | None, last_search: int | None) -> None:
    of_batch = UnwatchedChange.id.in_(batch.ids)
    if last_alert is None and last_search is None:
        session.execute(delete(UnwatchedChange).where(of_batch))
        return
    progress = {"after_alert": last_alert or MAX_ID, "after_search": last_search or MAX_ID}
    session.execute(update(UnwatchedChange).where(of_batch).values(**progress))


def _was_dearer(session: Session, product_id: int, saved: SavedSearch, max_price: int | None) -> bool:
    """Whether its price was above the limit at some time since the search tells."""
    if max_price is None:
        return False
    since, of_product = saved.tells_since, PriceChange.product_id == product_id
    later = select(func.max(PriceChange.price)).where(of_product, PriceChange.valid_from > since)
    at_begin = select(PriceChange.price).where(of_product, PriceChange.valid_from <= since)
    prices = session.scalar(later), session.scalar(at_begin.order_by(PriceChange.id.desc()).limit(1))
    return any(price is not None and price > max_price for price in prices)


def _promotion_began(session: Session, product_id: int, saved: SavedSearch) -> bool:
    """The one in force, since the search tells."""
    running = Promotion.product_id == product_id, Promotion.state == "running"
    return bool(session.scalar(select(exists().where(*running, Promotion.begins_at > saved.tells_since))))


def _forget_oldest(session: Session, number: int) -> None:
    of_search = SearchFind.saved_search_id == number
    oldest = select(SearchFind.found_at).where(of_search).order_by(SearchFind.found_at.desc())
    at = session.scalar(oldest.offset(_MAX_FINDS).limit(1))
    if at is not None:
        session.execute(delete(SearchFind).where(of_search, SearchFind.found_at <= at, SearchFind.told_at.is_not(None)))
