"""POST /api/embed and /api/embeddings: vectors of the engine behind `/v1/embeddings`, in Ollama's shapes."""

import json
import time
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from tis.engine.engine import Engine
from tis.engine.pooling.loaded_pooling import EmbeddingOptions, Embeddings
from tis.http.admission import ticket_of
from tis.http.dependencies import EngineDep, OwnerDep
from tis.http.scanned_route import ScannedBodyRoute
from tis.ollama_api.routes.model_names import served
from tis.ollama_api.wire.model_fields import OllamaEmbeddingRequest, OllamaEmbedRequest
from tis.ollama_api.wire.ollama_examples import EMBED_RESPONSES, EMBEDDING_RESPONSES
from tis.openai_api.routes.embeddings import is_long, pooled
from tis.openai_api.routes.models import OptionsDep
from tis.openai_api.wire.ignored import name_ignored

router = APIRouter(route_class=ScannedBodyRoute)

_NO_EFFECT = ("keep_alive", "options")
_NONE = Embeddings((), 0)


@router.post("/embed", response_model=None, responses=EMBED_RESPONSES)
async def embed(
    body: OllamaEmbedRequest, request: Request, engine: EngineDep, owner: OwnerDep, options: OptionsDep
) -> Response:
    """Make a vector of each text, of length 1. Also at `/api/embed`.

    A text that is too long is cut, unless `truncate` is false. Without a text the model is loaded.
    """
    received = time.perf_counter_ns()
    model_id = served(engine, body.model, options, "embedding")
    wanted = EmbeddingOptions(None, body.dimensions or None, body.truncate is not False, f"owner:{owner}")
    loaded = received

    async def work() -> Embeddings:
        nonlocal loaded
        await engine.media_kinds(model_id)
        loaded = time.perf_counter_ns()
        return await _embedded(engine, model_id, body.texts, wanted, request)

    def encode(made: Embeddings) -> bytes:
        numbers = b",".join(json.dumps(_normalised(vector).tolist()).encode() for vector in made.vectors)
        last = {
            "total_duration": time.perf_counter_ns() - received,
            "load_duration": loaded - received,
            "prompt_eval_count": made.num_tokens,
        }
        head = json.dumps({"model": body.model}).encode()
        return b'%b,"embeddings":[%b],%b' % (head[:-1], numbers, json.dumps(last).encode()[1:])

    answer = await pooled(request, engine, work(), encode, is_long)
    return await name_ignored(answer, request, body, engine, model_id, _NO_EFFECT)


@router.post("/embeddings", response_model=None, responses=EMBEDDING_RESPONSES)
async def embed_prompt(
    body: OllamaEmbeddingRequest, request: Request, engine: EngineDep, owner: OwnerDep, options: OptionsDep
) -> Response:
    """Make a vector of one text, as the model makes it; `/api/embed` has replaced this. Also at `/api/embeddings`."""
    model_id = served(engine, body.model, options, "embedding")
    wanted = EmbeddingOptions(truncate=True, salt=f"owner:{owner}")
    texts = [body.prompt] if body.prompt else []

    async def work() -> Embeddings:
        await engine.media_kinds(model_id)
        return await _embedded(engine, model_id, texts, wanted, request)

    def encode(made: Embeddings) -> bytes:
        return b'{"embedding":%b}' % json.dumps(made.vectors[0].tolist() if made.vectors else []).encode()

    answer = await pooled(request, engine, work(), encode, is_long)
    return await name_ignored(answer, request, body, engine, model_id, _NO_EFFECT)


async def _embedded(
    engine: Engine, model_id: str, texts: Sequence[str], wanted: EmbeddingOptions, request: Request
) -> Embeddings:
    return await engine.embed(model_id, texts, wanted, ticket_of(request)) if texts else _NONE


def _normalised(vector: Any) -> Any:
    """Ollama's are, whatever the model says."""
    length = float((vector.astype("float64") ** 2).sum()) ** 0.5
    return vector if not length else (vector / length).astype("float32")
