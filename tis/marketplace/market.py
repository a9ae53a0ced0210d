"""`Market` wires the marketplace together: database, search, token signer and sweeper. One per app."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqlalchemy.orm import Session

from tis.database.database import Database
from tis.database.errors import DatabaseUnavailable
from tis.http.origins import AllowedOrigins
from tis.marketplace.auth.service import authenticate
from tis.marketplace.auth.tokens import delete_expired_chains, has_expired_chains
from tis.marketplace.kit.cursor_key import CursorKey
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.signing import Signer, signing_secret
from tis.marketplace.search.backends.choose import choose_backend
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.stock.sweeper import Sweeper
from tis.observability.logs import log_exception
from tis.observability.request_log import current_request_id

_log = logging.getLogger("tis.marketplace")
MIGRATIONS = Path(__file__).parent / "migrations"
_MAX_WAIT_SECONDS = 10
_PAUSE_SECONDS = 1.0  # after a failure, requests fail at once for so long, instead of each trying to connect in turn


@dataclass(frozen=True)
class MarketRules:
    auth: Literal["open", "required"] = "required"
    origins: AllowedOrigins = AllowedOrigins(())  # web pages that may call if `auth` is open
    is_local: bool = False  # only this computer can connect
    auto_migrate: bool = True
    jwt_secret: str | None = None
    access_token_minutes: float = 30
    refresh_token_days: float = 7
    reservation_seconds: float = 900
    # No request waits for a sweep: a reservation that finds too little stock sweeps its product itself.
    sweep_seconds: float = 3.0

    @property
    def is_open(self) -> bool:
        return self.auth == "open"


class Market:
    """Migrates the tables before the first transaction, as soon as the database answers."""

    def __init__(self, database: Database, rules: MarketRules) -> None:
        self.database = database
        self.rules = rules
        self.search = ProductSearch(choose_backend(database))
        self.signer: Signer  # set by the first transaction: its key may lie beside the database
        self._is_ready = False
        self._ready_lock = threading.Lock()
        self._failure: tuple[float, DatabaseUnavailable] | None = None
        self._sweeper = Sweeper(
            self.reading, self.writing, self.search, self.delete_expired_logins, interval_seconds=rules.sweep_seconds
        )

    @property
    def state(self) -> Literal["ready", "waiting"]:
        return "ready" if self._is_ready and self.database.is_available else "waiting"

    @contextmanager
    def reading(self) -> Iterator[Session]:
        self._ensure_ready()
        with self.database.reading() as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        self._ensure_ready()
        with self.database.writing() as session:
            yield session

    def authenticate(self, session: Session, token: str | None) -> Principal:
        return authenticate(session, self.signer, token, is_open=self.rules.is_open, request_id=current_request_id())

    def open(self) -> None:
        """At start, in a thread. Without a database the server still serves models, and the sweeper tries again."""
        if self.rules.is_open:
            _log.warning("MARKETPLACE_AUTH=open: this computer needs no token under /api, but for what admins do")
        try:
            self._ensure_ready()
        except DatabaseUnavailable:
            _log.warning("the marketplace waits for its database")
        except Exception as fault:
            log_exception("the marketplace cannot make its tables", fault, "-")
        self._sweeper.start()

    def delete_expired_logins(self) -> None:
        with self.reading() as session:
            if not has_expired_chains(session):
                return
        with self.writing() as session:
            delete_expired_chains(session)

    def close(self) -> None:
        self._sweeper.stop()
        self.database.close()

    def _ensure_ready(self) -> None:
        if self._is_ready:
            return
        if not self._ready_lock.acquire(timeout=_MAX_WAIT_SECONDS):
            raise DatabaseUnavailable("The marketplace is getting ready.", retry_after=5)
        try:
            self._fail_during_pause()
            if not self._is_ready:
                self._migrate()
                secret = signing_secret(self.database, self.rules.jwt_secret)
                self.signer, self.search.cursor_key = Signer(secret), CursorKey(secret)
                self._is_ready = True
        except DatabaseUnavailable as failure:
            self._failure = self._failure or (time.monotonic(), failure)
            raise
        finally:
            self._ready_lock.release()

    def _fail_during_pause(self) -> None:
        if self._failure and time.monotonic() - self._failure[0] < _PAUSE_SECONDS:
            failure = self._failure[1]
            raise DatabaseUnavailable(failure.message, retry_after=failure.retry_after)
        self._failure = None

    def _migrate(self) -> None:
        if self.rules.auto_migrate:
            self.database.migrate(MIGRATIONS)
        elif not self.database.is_migrated(MIGRATIONS):
            raise DatabaseUnavailable("The tables are not up to date: run `python seed_data.py --migrate`.")
