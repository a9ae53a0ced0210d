"""What every route of the marketplace stands on, made once per app."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqlalchemy.orm import Session

from server.database import Database
from server.errors import DatabaseUnavailable
from server.marketplace.people.signing import Signer, signing_secret
from server.marketplace.search.choosing import search_for
from server.marketplace.search.search import Search

_log = logging.getLogger("tis.marketplace")
MIGRATIONS = Path(__file__).parent / "migrations"


@dataclass(frozen=True)
class MarketRules:
    auth: Literal["auto", "open", "required"] = "auto"
    auto_migrate: bool = True
    jwt_secret: str | None = None
    access_token_minutes: float = 30
    refresh_token_days: float = 7
    reservation_seconds: float = 900


class Market:
    """Its tables are brought up to date before the first transaction, once the database answers."""

    def __init__(self, database: Database, rules: MarketRules) -> None:
        self.database = database
        self.rules = rules
        self.search: Search = search_for(database)
        self.signer: Signer  # from the first transaction on: its key may lie beside the database
        self._is_ready = False
        self._getting_ready = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[Session]:
        self._get_ready()
        with self.database.reading() as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        self._get_ready()
        with self.database.writing() as session:
            yield session

    def open(self) -> None:
        """At start, in a thread. A database that is away is no reason not to serve models."""
        _say_who_may_write(self.rules.auth)
        try:
            self._get_ready()
        except DatabaseUnavailable:
            _log.warning("the marketplace waits for its database")

    def close(self) -> None:
        self.database.close()

    def _get_ready(self) -> None:
        if self._is_ready:
            return
        with self._getting_ready:
            if self._is_ready:
                return
            if self.rules.auto_migrate:
                self.database.migrate(MIGRATIONS)
            elif not self.database.is_migrated(MIGRATIONS):
                raise DatabaseUnavailable("The tables are not up to date: run `python seed_data.py --migrate`.")
            self.signer = Signer(signing_secret(self.database, self.rules.jwt_secret))
            self._is_ready = True


def _say_who_may_write(auth: str) -> None:
    if auth == "open":
        _log.warning("MARKETPLACE_AUTH=open: WHOEVER REACHES THIS SERVER SEES AND CHANGES EVERYTHING UNDER /api")
    elif auth == "auto":
        _log.info("MARKETPLACE_AUTH=auto: direct calls from this machine need no token under /api, all others do")
