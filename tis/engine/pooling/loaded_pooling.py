"""An embedding model or a reranker that is ready, and what it makes of texts."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tis.admission.ticket import Ticket
from tis.engine.models.loaded_model import LoadedWeights
from tis.engine.models.model_slot import ModelSlot
from tis.engine.pooling.pooling_request import PoolingRequest
from tis.engine.pooling.reranking import YesNoTemplate
from tis.engine.pooling.token_row import RowMaker, Text, TokenRow
from tis.engine.pooling.vector_cache import VectorCache
from tis.engine.prompt import ChatPrompt, media_of
from tis.engine.text.tokenizer import TextCodec
from tis.engine.threads import Bridge
from tis.errors import BadRequest
from tis.observability.model_metrics import EMBEDDING_HITS, EMBEDDING_MISSES

if TYPE_CHECKING:
    import numpy


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPooling(LoadedWeights):
    rows: RowMaker
    size: int  # of a vector; 1 for scores
    template: YesNoTemplate | None = None  # of a reranker that is a causal model
    codec: TextCodec | None = None  # None: it is a Python class, which has no tokens


@dataclass(frozen=True, slots=True)
class Embeddings:
    vectors: "Sequence[numpy.ndarray[Any, Any]]"  # float32, in the order of the texts
    num_tokens: int
    revision: str = ""  # of the model


@dataclass(frozen=True, slots=True)
class PairScores:
    values: Sequence[float]  # in the order of the pairs
    num_tokens: int


@dataclass(frozen=True, slots=True)
class EmbeddingOptions:
    prompt_name: str | None = None
    dimensions: int | None = None  # the first ones of a vector, normalised again
    truncate: bool = False
    salt: str = ""  # vectors are remembered for requests of the same salt


class PooledTexts:
    """Makes vectors and scores with the models of this machine. All methods run on the event loop."""

    def __init__(self, bridge: Bridge, cache_bytes: int) -> None:
        self._bridge = bridge
        self._cache = VectorCache(cache_bytes)

    async def embed(
        self,
        slot: ModelSlot,
        loaded: LoadedPooling,
        texts: Sequence[Text],
        options: EmbeddingOptions,
        ticket: Ticket | None,
    ) -> Embeddings:
        if options.dimensions is not None and options.dimensions > loaded.size:
            message = f"dimensions: the vectors of this model have {loaded.size} numbers, not {options.dimensions}."
            raise BadRequest(message, param="dimensions")
        salt = f"{loaded.revision} {options.salt}"

        def look_up() -> tuple[list[TokenRow], list[bytes], dict[bytes, Any]]:
            prompt = loaded.rows.prompt(options.prompt_name)
            rows = loaded.rows.of_texts(texts, prompt, truncate=options.truncate)
            keys = [self._cache.key(row, salt) for row in rows]
            found = {key: self._cache.find(key) for key in dict.fromkeys(keys)}
            num_missing = sum(vector is None for vector in found.values())
            EMBEDDING_HITS.labels(slot.name).inc(len(found) - num_missing)
            EMBEDDING_MISSES.labels(slot.name).inc(num_missing)
            return rows, keys, found

        def finish(known: dict[bytes, Any], missing: dict[bytes, TokenRow], made: Sequence[Any]) -> list[Any]:
            for key, vector in zip(missing, made, strict=True):
                self._cache.keep(key, vector)
                known[key] = vector
            return [_shortened(known[key], options.dimensions) for key in keys]

        sees = any(isinstance(text, ChatPrompt) and media_of(text.messages) for text in texts)
        in_pool = self._bridge.in_vision_pool if sees else self._bridge.in_text_pool
        rows, keys, known = await in_pool(look_up)
        if ticket and sees:
            ticket.keep("decoded_bytes", sum(row.media.num_bytes for row in rows if row.media))
        missing = {key: row for key, row in zip(keys, rows, strict=True) if known[key] is None}
        made = await self._compute(slot, list(missing.values()), ticket) if missing else ()
        vectors = await self._bridge.in_text_pool(lambda: finish(known, missing, made))
        return Embeddings(vectors, sum(map(len, rows)), loaded.revision)

    async def score(
        self,
        slot: ModelSlot,
        loaded: LoadedPooling,
        pairs: Sequence[tuple[str, str]],
        instruction: str | None,
        truncate: bool,
        ticket: Ticket | None,
    ) -> PairScores:
        template = loaded.template

        def encode() -> list[TokenRow]:
            if template is None:
                return loaded.rows.of_pairs(pairs, truncate=truncate)
            texts = (template.text(instruction, query, document) for query, document in pairs)
            return loaded.rows.in_template(template.before, texts, template.after, truncate=truncate)

        rows = await self._bridge.in_text_pool(encode)
        made = await self._compute(slot, rows, ticket)
        return PairScores([float(one[0]) for one in made], sum(map(len, rows)))

    async def _compute(self, slot: ModelSlot, rows: Sequence[TokenRow], ticket: Ticket | None) -> Sequence[Any]:
        request = PoolingRequest(rows, slot.drop_if_queued, ticket)
        if ticket:
            ticket.queue(request.num_tokens)
        slot.submit(request)
        try:
            return await request.answer
        except asyncio.CancelledError:
            request.cancel()
            raise


def _shortened(vector: Any, dimensions: int | None) -> Any:
    if dimensions is None or dimensions == len(vector):
        return vector
    short = vector[:dimensions]
    length = float((short.astype("float64") ** 2).sum()) ** 0.5
    return (short / length).astype("float32") if length else short
