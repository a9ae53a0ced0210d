"""Indexes products again that an older version indexed: a few at a time, in the background, and findable meanwhile."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from sqlalchemy.orm import Session

from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.sql import run

OpenSession = Callable[[], AbstractContextManager[Session]]
_BATCH_SIZE = 300
# A digest that no words have, in practice. The migration of a version with other words sets it.
_OUTDATED = "SELECT product_id FROM product_search WHERE words_digest = 0 ORDER BY product_id LIMIT :batch"


class IndexRenewal:
    """Any number of servers may do it at once: indexing what is indexed changes nothing."""

    def __init__(self, reading: OpenSession, writing: OpenSession, search: ProductSearch) -> None:
        self._reading = reading
        self._writing = writing
        self._search = search
        self._is_over = False  # until the next start: a server that runs writes no outdated words

    def renew_some(self) -> int:
        if self._is_over:
            return 0
        with self._reading() as session:
            ids = [product_id for [product_id] in run(session, _OUTDATED, {"batch": _BATCH_SIZE})]
        if ids:
            with self._writing() as session:
                self._search.refresh(session, ids)
        self._is_over = not ids
        return len(ids)
