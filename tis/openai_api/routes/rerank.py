"""POST /v1/rerank (Jina, Cohere, llama.cpp) and /v1/score (vLLM): how well documents answer a query."""

import json
import uuid
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from tis.engine.pooling.loaded_pooling import PairScores
from tis.errors import BadRequest
from tis.http.admission import ticket_of
from tis.http.dependencies import DOCUMENTED_KEY, EngineDep
from tis.http.scanned_route import ScannedBodyRoute
from tis.openai_api.routes.embeddings import pooled
from tis.openai_api.routes.models import OptionsDep, served_model
from tis.openai_api.wire.embedding_examples import RERANK_RESPONSES, SCORE_RESPONSES
from tis.openai_api.wire.embedding_request import MAX_INPUTS, RerankRequest, ScoreRequest, usage
from tis.openai_api.wire.ignored import name_ignored

router = APIRouter(route_class=ScannedBodyRoute, dependencies=[DOCUMENTED_KEY])
aliases = APIRouter(route_class=ScannedBodyRoute, dependencies=[DOCUMENTED_KEY])


@router.post("/rerank", response_model=None, responses=RERANK_RESPONSES)
@aliases.post("/rerank", response_model=None, responses=RERANK_RESPONSES)
@aliases.post("/reranking", response_model=None, responses=RERANK_RESPONSES)
async def rerank(body: RerankRequest, request: Request, engine: EngineDep, options: OptionsDep) -> Response:
    """Sort documents by how well they answer a query, the best first."""
    model_id = served_model(engine, body.model, options.strict_model, "rerank")
    texts = body.texts
    pairs = [(body.query, text) for text in texts]
    scoring = engine.score(
        model_id, pairs, body.instruction, truncate=body.truncate is not False, ticket=ticket_of(request)
    )

    def encode(scores: PairScores) -> bytes:
        order = sorted(range(len(texts)), key=lambda number: -scores.values[number])
        results: list[dict[str, Any]] = [
            {"index": number, "relevance_score": scores.values[number]} for number in order[: body.top_n]
        ]
        if body.return_documents:
            results = [{**one, "document": {"text": texts[one["index"]]}} for one in results]
        answer = {
            "id": f"rerank-{uuid.uuid4().hex}",
            "object": "list",
            "model": model_id,
            "results": results,
            "usage": usage(scores.num_tokens),
            "meta": {"billed_units": {"search_units": 1}, "tokens": {"input_tokens": scores.num_tokens}},
        }
        return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")

    answer = await pooled(
        request, engine, scoring, encode, lambda scores: len(texts) > 100 or bool(body.return_documents)
    )
    return await name_ignored(answer, request, body, engine, model_id)


@router.post("/score", response_model=None, responses=SCORE_RESPONSES)
@aliases.post("/score", response_model=None, responses=SCORE_RESPONSES)
async def score(body: ScoreRequest, request: Request, engine: EngineDep, options: OptionsDep) -> Response:
    """Score pairs of texts: one against many, or two lists of the same length."""
    model_id = served_model(engine, body.model, options.strict_model, "rerank")
    pairs = _pairs(body)
    scoring = engine.score(
        model_id, pairs, body.instruction, truncate=body.truncate is not False, ticket=ticket_of(request)
    )

    def encode(scores: PairScores) -> bytes:
        data = [{"index": number, "object": "score", "score": value} for number, value in enumerate(scores.values)]
        answer = {"object": "list", "model": model_id, "data": data, "usage": usage(scores.num_tokens)}
        return json.dumps(answer, separators=(",", ":")).encode()

    answer = await pooled(request, engine, scoring, encode, lambda scores: len(pairs) > 100)
    return await name_ignored(answer, request, body, engine, model_id)


def _pairs(body: ScoreRequest) -> Sequence[tuple[str, str]]:
    first, second = (
        [given] if isinstance(given, str) else given or []
        for given in (
            body.text_1 if body.text_1 is not None else body.queries,
            body.text_2 if body.text_2 is not None else body.documents,
        )
    )
    for name, texts in (("text_1", first), ("text_2", second)):
        if not texts:
            raise BadRequest(f"{name}: there is no text in it.", param=name, code="missing_required_parameter")
    if len(first) == 1:
        first = first * len(second)
    if len(first) != len(second):
        raise BadRequest(
            f"text_1 has {len(first)} texts and text_2 {len(second)}: send one against many, or as many of both.",
            param="text_1",
        )
    if len(first) > MAX_INPUTS:
        raise BadRequest(f"text_1: at most {MAX_INPUTS} pairs.", param="text_1")
    return list(zip(first, second, strict=True))
