"""`MeaningSearch`: which products to put beside those that the words of a query find. It opens its own transactions."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from tis.errors import NotImplementedHere, ServiceError, Unavailable
from tis.marketplace.search.meaning.text_models import TextModels, product_text
from tis.marketplace.search.meaning.vector_matrix import Neighbour, VectorMatrix
from tis.marketplace.search.product_rows import load_products
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.query import ProductQuery, SearchResults
from tis.observability.metrics import MEANING_SEARCHES

_log = logging.getLogger("tis.marketplace")
_NEAREST = (200, 2000)  # products whose filters are looked at; more only where none of the first passes
_MAX_QUERY_CHARS = 500
_MAX_WAITING = 8  # searches that wait for a model; further ones go on by words
_PICTURE_SECONDS = 30.0  # for a model to look at a picture
NO_SIGHT = "This needs MARKETPLACE_EMBEDDING_MODEL to name a served model that also makes vectors of pictures."
_PAUSE_SECONDS = 5.0  # after a failure, in which no model is asked


@dataclass(frozen=True)
class MeaningLimits:
    timeout_seconds: float = 1.0  # of a search for both models together
    min_similarity: float = 0.5


class MeaningSearch:
    def __init__(
        self,
        reading: Callable[[], AbstractContextManager[Session]],
        search: ProductSearch,
        models: TextModels,
        limits: MeaningLimits = MeaningLimits(),
    ) -> None:
        self.matrix = VectorMatrix()
        self._reading = reading
        self._search = search
        self._models = models
        self._limits = limits
        self._places = threading.Semaphore(_MAX_WAITING)
        self._failed_at: float | None = None

    def beside(self, query: ProductQuery, found: SearchResults, search: ProductSearch | None = None) -> Sequence[int]:
        """The ids for `ProductSearch.find` of what matches the words in part and what is near to them in meaning.

        Empty if enough products match all words, or the models give no answer. `search`: one by other synonyms.
        """
        if not found.has_few_matches or not query.text or not self.matrix.num_vectors or self._pauses:
            return ()
        if not self._places.acquire(blocking=False):
            MEANING_SEARCHES.labels("busy").inc()
            return ()
        try:
            ids = self._fused(query, query.text[:_MAX_QUERY_CHARS], search or self._search)
        except ServiceError as error:
            self._note_failure(error)
            return ()
        finally:
            self._places.release()
        if self._failed_at is not None:
            self._failed_at = None
            _log.info("search by meaning works again")
        MEANING_SEARCHES.labels("found" if ids else "nothing").inc()
        return ids

    def require_sight(self) -> None:
        """Raises NotImplementedHere if the embedding model takes texts alone."""
        if not self._models.sees(_PICTURE_SECONDS):
            raise NotImplementedHere(NO_SIGHT)

    def near_picture(self, pixels: Any, data: bytes, count: int) -> Sequence[int]:
        """Products whose words say what the picture shows, nearest first. Nobody may have seen these ids yet."""
        if not self._places.acquire(blocking=False):
            raise Unavailable("Too many searches wait for the model. Retry shortly.", retry_after=2)
        try:
            model, vector = self._models.picture_vector(pixels, data, _PICTURE_SECONDS)
        finally:
            self._places.release()
        return [one.product_id for one in self._nearest(model, vector, count, min_similarity=-1.0)]

    def _fused(self, query: ProductQuery, text: str, search: ProductSearch) -> Sequence[int]:
        ends = time.monotonic() + self._limits.timeout_seconds
        model, [vector] = self._models.vectors([text], "query", self._limits.timeout_seconds)
        ids: list[int] = []
        for count in _NEAREST:
            near = self._nearest(model, vector, count)
            if not near:
                return ()
            with self._reading() as session:
                ids = search.fused(session, query, near)
                products = load_products(session, ids) if self._models.has_reranker else ()
            if ids or len(near) < count:
                break
        if not products or len(ids) < 2:
            return ids
        scores = self._models.scores(text, [product_text(one) for one in products], max(0.0, ends - time.monotonic()))
        order = sorted(zip(scores, products, strict=True), key=lambda one: -one[0])
        return [product.id for _, product in order]

    def _nearest(
        self, model: str, vector: object, count: int, min_similarity: float | None = None
    ) -> Sequence[Neighbour]:
        import numpy

        numbers = numpy.asarray(vector, numpy.float32)
        length = float(numpy.linalg.norm(numbers))
        if not length:
            return ()
        least = self._limits.min_similarity if min_similarity is None else min_similarity
        return self.matrix.nearest(model, numbers / length, least, count)

    @property
    def _pauses(self) -> bool:
        return self._failed_at is not None and time.monotonic() - self._failed_at < _PAUSE_SECONDS

    def _note_failure(self, error: ServiceError) -> None:
        if self._failed_at is None:
            _log.warning("search by meaning fails, search goes on by words: %s", error.message)
        self._failed_at = time.monotonic()
        MEANING_SEARCHES.labels("failed").inc()
