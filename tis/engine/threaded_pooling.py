"""Vectors and scores for callers in threads, such as those that ask a database: they wait for the event loop, and no
longer than they say.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

from tis.cancellation import LoopCalls
from tis.engine.engine import Engine
from tis.engine.pooling.loaded_pooling import EmbeddingOptions
from tis.engine.prompt import ChatPrompt, Picture
from tis.errors import BadRequest

TextPurpose = Literal["query", "document"]


class ThreadedPooling:
    """One embedding model, and a reranker if one is named."""

    def __init__(self, engine: Engine, calls: LoopCalls, embedding_id: str, rerank_id: str | None = None) -> None:
        self.has_reranker = rerank_id is not None
        self._engine = engine
        self._embedding_id = embedding_id
        self._rerank_id = rerank_id
        self._calls = calls

    def vectors(self, texts: Sequence[str], purpose: TextPurpose, timeout_seconds: float) -> tuple[str, Any]:
        """The id and revision of the model, and a float32 vector for each text. Long texts are cut.

        Raises a ServiceError if the model gives none in time.
        """
        made = self._calls.wait(self._embed(texts, purpose), timeout_seconds)
        return f"{self._embedding_id}@{made.revision}", made.vectors

    def sees(self, timeout_seconds: float) -> bool:
        """Whether the model makes vectors of pictures, too."""
        return "image" in self._calls.wait(self._engine.media_kinds(self._embedding_id), timeout_seconds)

    def picture_vector(self, pixels: Any, data: bytes, timeout_seconds: float) -> tuple[str, Any]:
        """As `vectors`. `data` is the file of the pixels, for a model that another engine serves."""
        picture = Picture(pixels, hashlib.sha256(data).hexdigest(), data=data)
        prompt = ChatPrompt([{"role": "user", "content": [{"type": "image", "image": picture}]}])
        made = self._calls.wait(self._engine.embed(self._embedding_id, [prompt], EmbeddingOptions()), timeout_seconds)
        return f"{self._embedding_id}@{made.revision}", made.vectors[0]

    def scores(self, query: str, texts: Sequence[str], timeout_seconds: float) -> Sequence[float]:
        assert self._rerank_id
        pairs = [(query, text) for text in texts]
        return self._calls.wait(self._engine.score(self._rerank_id, pairs, truncate=True), timeout_seconds).values

    async def _embed(self, texts: Sequence[str], purpose: TextPurpose) -> Any:
        """With the prompt of the repository for this purpose, if it has one."""
        try:
            return await self._engine.embed(self._embedding_id, texts, EmbeddingOptions(purpose, truncate=True))
        except BadRequest as error:
            if error.param != "prompt_name":
                raise
        return await self._engine.embed(self._embedding_id, texts, EmbeddingOptions(truncate=True))
