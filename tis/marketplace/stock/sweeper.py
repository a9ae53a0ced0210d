"""Expires reservations that are due. Every server sweeps; the UPDATE decides which server ends which reservation."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

from sqlalchemy import true
from sqlalchemy.orm import Session

from tis.database.errors import DatabaseUnavailable
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.stock.ending import MAX_EXPIRED_AT_ONCE, expire_due, has_due
from tis.marketplace.stock.reminders import MAX_REMINDED_AT_ONCE, ends_soon, tell_ends_soon
from tis.observability.logs import log_exception

_log = logging.getLogger("tis.marketplace")
_HOUR_SECONDS = 3600.0
OpenTransaction = Callable[[], AbstractContextManager[Session]]


class Sweeper:
    """One thread. It queries the database every few seconds, so it is also the first to notice that it is back."""

    def __init__(
        self,
        reading: OpenTransaction,
        writing: OpenTransaction,
        search: ProductSearch,
        hourly: Callable[[], None] | None = None,
        often: Callable[[], object] | None = None,
        interval_seconds: float = 3.0,
        clock: Callable[[], float] = time.monotonic,
        reminder_minutes: int = 0,
    ) -> None:
        """Calls `hourly` in the first sweep and then once an hour, and `often` in every sweep."""
        self._reading = reading
        self._writing = writing
        self._search = search
        self._hourly = hourly
        self._often = often
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._before_end = timedelta(minutes=reminder_minutes)
        self._last_hourly: float | None = None
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="reservation-sweeper", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        if self._thread:
            self._thread.join()

    def sweep(self) -> int:
        """Returns how many reservations expired."""
        with self._reading() as session:
            if not has_due(session):
                return 0
        total = 0
        while not self._end.is_set():
            with self._writing() as session:
                num_expired = expire_due(session, self._search, true(), skip_locked=True)
            total += num_expired
            if num_expired < MAX_EXPIRED_AT_ONCE:
                break
        return total

    def remind(self) -> None:
        """Tells buyers of reservations that end soon; 0 minutes: tells nobody."""
        while self._before_end and not self._end.is_set():
            with self._reading() as session:
                if not ends_soon(session, self._before_end):
                    return
            with self._writing() as session:
                if tell_ends_soon(session, self._before_end) < MAX_REMINDED_AT_ONCE:
                    return

    def _do_hourly(self) -> None:
        if self._hourly is None:
            return
        if self._last_hourly is not None and self._clock() - self._last_hourly < _HOUR_SECONDS:
            return
        self._last_hourly = self._clock()
        self._hourly()

    def _run(self) -> None:
        while not self._end.wait(self._interval_seconds):
            try:
                if num_expired := self.sweep():
                    _log.info("%d reservations expired", num_expired)
                self.remind()
                self._do_hourly()
                if self._often:
                    self._often()
            except DatabaseUnavailable:
                continue  # `tis.database` has logged it
            except Exception as fault:
                log_exception("the reservation sweeper failed; it tries again at the next sweep", fault, "-")
