"""Indexes products again that an older version indexed: a few at a time, in the background, and findable meanwhile."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from sqlalchemy.orm import Session

from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.sql import run

OpenSession = Callable[[], AbstractContextManager[Session]]
_LAST_OF_STEP = (
    "SELECT product_id FROM product_search WHERE product_id > :after ORDER BY product_id LIMIT 1 OFFSET :others"
)
# A digest that no words have, in practice. The migration of a version with other words sets it.
_OUTDATED = (
    "SELECT product_id FROM product_search WHERE product_id > :after AND product_id <= :last AND words_digest = 0"
    " ORDER BY product_id LIMIT :batch"
)
_END = 2**63 - 1


class IndexRenewal:
    """Any number of servers may do it at once: indexing what is indexed changes nothing.

    Goes through the products by their ids, and once more if it found any: behind its position, a transaction that was
    open before the migration, or another server's migration, may have left some.
    """

    def __init__(
        self,
        reading: OpenSession,
        writing: OpenSession,
        search: ProductSearch,
        *,
        batch_size: int = 300,
        max_read: int = 20_000,
    ) -> None:
        """A step reads `max_read` rows at most, and indexes `batch_size` products."""
        self._reading = reading
        self._writing = writing
        self._search = search
        self._batch_size = batch_size
        self._max_read = max_read
        self._after = 0
        self._has_found_any = False
        self._is_over = False  # until the next start: a server that runs writes no outdated words

    def renew_some(self) -> int:
        if self._is_over:
            return 0
        with self._reading() as session:
            ends = run(session, _LAST_OF_STEP, {"after": self._after, "others": self._max_read - 1})
            last = next((product_id for [product_id] in ends), _END)
            values = {"after": self._after, "last": last, "batch": self._batch_size}
            ids = [product_id for [product_id] in run(session, _OUTDATED, values)]
        if ids:
            with self._writing() as session:
                self._search.refresh(session, ids)
        # Only now: a step that failed is done again.
        self._has_found_any |= bool(ids)
        self._after = ids[-1] if len(ids) == self._batch_size else last
        if self._after == _END:
            self._is_over = not self._has_found_any
            self._after, self._has_found_any = 0, False
        return len(ids)
