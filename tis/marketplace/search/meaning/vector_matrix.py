"""The vectors of all products in memory, as one matrix: comparing a query with 20,000 of 384 numbers takes 2 ms."""

import logging
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from tis.marketplace.search.sql import run

_log = logging.getLogger("tis.marketplace")
_ROWS_AT_ONCE = 5000
_OVERLAP_US = 60_000_000  # another server's transaction, or clock, may be so late
_RELOAD_SECONDS = 3600.0  # forgets products that were deleted
_MAX_ID = 2**63 - 1
_NEWER = (
    "SELECT product_id, words_digest, renewed_us, numbers FROM product_vectors"
    " WHERE (renewed_us, product_id) > (:since, :after) AND model = :model ORDER BY renewed_us, product_id LIMIT :count"
)


class Neighbour(NamedTuple):
    product_id: int
    words_digest: int  # of the words that the vector was made of


class VectorMatrix:
    """One thread refreshes it, any thread asks it."""

    def __init__(self, max_vectors: int = 100_000) -> None:
        self._max_vectors = max_vectors
        self._lock = threading.Lock()
        self._model = ""
        self._places: dict[int, int] = {}
        self._ids: list[Neighbour] = []
        self._matrix: Any = None  # rows in use are the first ones
        self._renewed_us = 0
        self._loaded_at = 0.0
        self._has_warned = False

    @property
    def num_vectors(self) -> int:
        return len(self._ids)

    def refresh(self, session: Session, model: str) -> None:
        """Reads what was written since the last time; everything for another model, and once an hour."""
        if model != self._model or time.monotonic() - self._loaded_at > _RELOAD_SECONDS:
            fresh = VectorMatrix(self._max_vectors)
            fresh._model, fresh._loaded_at = model, time.monotonic()
            fresh._read(session)
            with self._lock:
                self._model, self._loaded_at, self._renewed_us = model, fresh._loaded_at, fresh._renewed_us
                self._places, self._ids, self._matrix = fresh._places, fresh._ids, fresh._matrix
        else:
            self._read(session)

    def nearest(self, model: str, vector: Any, min_similarity: float, count: int) -> list[Neighbour]:
        """Best first. None of another model's vectors: they mean nothing to this one."""
        import numpy

        with self._lock:
            if model != self._model or not self._ids:
                return []
            similarities = self._matrix[: len(self._ids)] @ vector
            ids = self._ids
            places = numpy.flatnonzero(similarities >= min_similarity)
            if len(places) > count:
                places = places[numpy.argpartition(-similarities[places], count)[:count]]
            order = places[numpy.argsort(-similarities[places], kind="stable")]
            return [ids[place] for place in order]

    def _read(self, session: Session) -> None:
        import numpy

        is_new = time.time_ns() // 1000 - self._renewed_us < 2 * _OVERLAP_US
        since, after = self._renewed_us - (_OVERLAP_US if is_new else 0), _MAX_ID
        while True:
            values = {"model": self._model, "since": since, "after": after, "count": _ROWS_AT_ONCE}
            rows = run(session, _NEWER, values)
            if rows:
                vectors = numpy.stack([numpy.frombuffer(row[3], numpy.float16) for row in rows]).astype(numpy.float32)
                with self._lock:
                    self._put([Neighbour(row[0], row[1]) for row in rows], vectors)
                    self._renewed_us = max(self._renewed_us, *(row[2] for row in rows))
                since, after = rows[-1][2], rows[-1][0]
            if len(rows) < _ROWS_AT_ONCE:
                return

    def _put(self, entries: Sequence[Neighbour], vectors: Any) -> None:
        """Called with the lock."""
        for entry, vector in zip(entries, vectors, strict=True):
            place = self._places.get(entry.product_id)
            if place is None:
                if len(self._ids) == self._max_vectors:
                    self._warn()
                    continue
                place = self._places[entry.product_id] = len(self._ids)
                self._ids.append(entry)
                self._make_room(len(vector))
            self._ids[place] = entry
            self._matrix[place] = vector

    def _make_room(self, size: int) -> None:
        import numpy

        if self._matrix is None:
            self._matrix = numpy.empty((256, size), numpy.float32)
        elif len(self._ids) > len(self._matrix):
            grown = numpy.empty((min(2 * len(self._matrix), self._max_vectors), size), numpy.float32)
            grown[: len(self._matrix)] = self._matrix
            self._matrix = grown

    def _warn(self) -> None:
        if not self._has_warned:
            _log.warning("search by meaning knows %d products; further ones are found by words only", self._max_vectors)
            self._has_warned = True
