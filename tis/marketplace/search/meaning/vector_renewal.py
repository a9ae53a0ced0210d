"""Makes vectors of products whose words or whose model have changed: in a thread, a few at a time."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from sqlalchemy.orm import Session

from tis.database.errors import DatabaseUnavailable
from tis.errors import ServiceError
from tis.marketplace.search.meaning.text_models import TextModels, product_text
from tis.marketplace.search.meaning.vector_matrix import VectorMatrix
from tis.marketplace.search.product_rows import load_products
from tis.marketplace.search.sql import id_list, run, run_many
from tis.observability.logs import log_exception

_log = logging.getLogger("tis.marketplace")
OpenSession = Callable[[], AbstractContextManager[Session]]
_INTERVAL_SECONDS = 2.0
_PAUSE_SECONDS = 0.05  # between two batches: writers that wait take no turns
_MAX_BACKOFF_SECONDS = 60.0
_MODEL_SECONDS = 120.0  # for a batch, or for a model that is still loaded
_BATCH = 32
_MAX_READ = 20_000  # products that a step looks at
_END = 2**63 - 1
_LAST_OF_STEP = (
    "SELECT product_id FROM product_search WHERE product_id > :after ORDER BY product_id LIMIT 1 OFFSET :others"
)
_OUTDATED = (
    "SELECT p.product_id, p.words_digest FROM product_search p"
    " LEFT JOIN product_vectors v ON v.product_id = p.product_id"
    " WHERE p.product_id > :after AND p.product_id <= :last"
    " AND (v.product_id IS NULL OR v.words_digest <> p.words_digest OR v.model <> :model)"
    " ORDER BY p.product_id LIMIT :batch"
)
# From `product_search`: a product that was deleted meanwhile gets no vector.
_INSERT = (
    "INSERT INTO product_vectors (product_id, model, words_digest, renewed_us, numbers)"
    " SELECT product_id, :model, :words_digest, :renewed_us, :numbers FROM product_search"
    " WHERE product_id = :product_id"
)


class VectorRenewal:
    """Every server may have one: a vector that two make is the same."""

    def __init__(
        self,
        reading: OpenSession,
        writing: OpenSession,
        models: TextModels,
        matrix: VectorMatrix,
        interval_seconds: float = _INTERVAL_SECONDS,
    ) -> None:
        self._reading = reading
        self._writing = writing
        self._models = models
        self._matrix = matrix
        self._interval_seconds = interval_seconds
        self._model: str | None = None
        self._after = 0
        self._has_failed = False
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="vector-renewal", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        if self._thread:
            self._thread.join()

    def renew_some(self) -> int:
        """How many vectors are new. No transaction is open while the model computes."""
        if self._model is None:
            self._model, _ = self._models.vectors(["-"], "document", _MODEL_SECONDS)
        with self._reading() as session:
            ends = run(session, _LAST_OF_STEP, {"after": self._after, "others": _MAX_READ - 1})
            last = next((product_id for [product_id] in ends), _END)
            values = {"after": self._after, "last": last, "model": self._model, "batch": _BATCH}
            outdated = dict(run(session, _OUTDATED, values))
            texts = {product.id: product_text(product) for product in load_products(session, list(outdated))}
        if texts:
            self._model, vectors = self._models.vectors(list(texts.values()), "document", _MODEL_SECONDS)
            with self._writing() as session:
                self._write(session, {one: outdated[one] for one in texts}, vectors)
        self._after = 0 if last == _END and len(outdated) < _BATCH else (max(outdated) if outdated else last)
        with self._reading() as session:
            self._matrix.refresh(session, self._model)
        return len(texts)

    def _write(self, session: Session, digests: dict[int, int], vectors: Sequence[object]) -> None:
        import numpy

        renewed_us = time.time_ns() // 1000
        run(session, f"DELETE FROM product_vectors WHERE product_id IN {id_list(list(digests))}")
        rows = []
        for (product_id, digest), vector in zip(digests.items(), vectors, strict=True):
            numbers = numpy.asarray(vector, numpy.float32)
            short = (numbers / (float(numpy.linalg.norm(numbers)) or 1.0)).astype(numpy.float16)
            rows.append(
                {
                    "product_id": product_id,
                    "model": self._model,
                    "words_digest": digest,
                    "renewed_us": renewed_us,
                    "numbers": short.tobytes(),
                }
            )
        run_many(session, _INSERT, rows)

    def _run(self) -> None:
        pause = 0.0
        while not self._end.wait(pause):
            try:
                num_renewed = self.renew_some()
                pause = _PAUSE_SECONDS if num_renewed == _BATCH else self._interval_seconds
                if self._has_failed:
                    _log.info("the embedding model answers again: products get vectors")
                self._has_failed = False
            except DatabaseUnavailable:
                pause = self._interval_seconds  # `tis.database` has logged it
            except ServiceError as error:
                pause = self._back_off(pause)
                if not self._has_failed:
                    _log.warning("products get no vectors for now, search goes on by words: %s", error.message)
                self._has_failed = True
            except Exception as fault:
                pause = self._back_off(pause)
                log_exception("vectors of products could not be renewed", fault, "-")

    def _back_off(self, pause: float) -> float:
        return min(_MAX_BACKOFF_SECONDS, max(self._interval_seconds, 2 * pause))
