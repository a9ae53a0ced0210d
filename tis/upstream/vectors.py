"""Embeddings and scores of an upstream, checked: as many as there are texts, and all of them numbers."""

import asyncio
import base64
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tis.engine.pooling.loaded_pooling import EmbeddingOptions, Embeddings, PairScores
from tis.engine.pooling.token_row import Text
from tis.engine.prompt import ChatPrompt
from tis.errors import BadRequest
from tis.upstream.chat_body import lacking
from tis.upstream.errors import failed
from tis.upstream.http_client import UpstreamHttp
from tis.upstream.kinds import UpstreamAbilities

_MAX_NUMBERS = 2**16  # of a vector


def embedding_body(
    model: str, texts: Sequence[Text], options: EmbeddingOptions, abilities: UpstreamAbilities, *, is_ours: bool
) -> dict[str, Any]:
    if any(isinstance(text, ChatPrompt) for text in texts):
        raise BadRequest("Pictures and messages are not passed on to the upstream of this model.", param="input")
    body: dict[str, Any] = {
        "model": model,
        "input": [text if isinstance(text, str) else list(text) for text in texts],  # type: ignore[arg-type]
        "encoding_format": "base64",
    }
    if options.dimensions is not None:
        body["dimensions"] = options.dimensions
    if options.prompt_name is not None:
        if not is_ours:
            raise lacking("prompt_name")
        body["prompt_name"] = options.prompt_name
    return {**body, **abilities.cuts_texts} if options.truncate else body


async def ask_for_vectors(http: UpstreamHttp, body: Mapping[str, Any], num_tokens: int, seconds: float) -> Embeddings:
    said = await http.post("/embeddings", body, seconds)
    return await asyncio.to_thread(_embeddings, said, len(body["input"]), num_tokens, str(body["model"]))


def rerank_body(
    model: str,
    query: str,
    texts: Sequence[str],
    instruction: str | None,
    abilities: UpstreamAbilities,
    *,
    truncate: bool,
    is_ours: bool,
) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "query": query, "documents": list(texts), "top_n": len(texts)}
    if instruction is not None:
        if not is_ours:
            raise lacking("instruction")
        body["instruction"] = instruction
    if not truncate and is_ours:
        body["truncate"] = False  # where it is not said, ours cuts
    return {**body, **abilities.cuts_texts} if truncate else body


async def ask_for_scores(http: UpstreamHttp, body: Mapping[str, Any], num_tokens: int, seconds: float) -> PairScores:
    said = await http.post("/rerank", body, seconds)
    results = said.get("results") if isinstance(said, dict) else said  # SGLang has the list alone
    values: list[float | None] = [None] * len(body["documents"])
    for one in results if isinstance(results, list) else ():
        place = one.get("index") if isinstance(one, dict) else None
        if type(place) is not int or not 0 <= place < len(values):
            raise failed("scored a text that nobody asked for")
        values[place] = _number(one.get("relevance_score", one.get("score")))
    known = [value for value in values if value is not None]
    if len(known) != len(values):
        raise failed("did not score every text")
    return PairScores(known, _num_tokens(said, num_tokens))


def _embeddings(said: Any, num_texts: int, num_tokens: int, revision: str) -> Embeddings:
    data = said.get("data") if isinstance(said, dict) else None
    if not isinstance(data, list) or len(data) != num_texts:
        raise failed("did not make a vector of every text")
    vectors: list[Any] = [None] * num_texts
    for number, one in enumerate(data):
        place = one.get("index", number) if isinstance(one, dict) else None
        if type(place) is not int or not 0 <= place < num_texts:
            raise failed("made a vector that nobody asked for")
        vectors[place] = _vector(one.get("embedding"))
    if any(vector is None for vector in vectors) or len({len(vector) for vector in vectors}) != 1:
        raise failed("made vectors of several sizes")
    return Embeddings(vectors, _num_tokens(said, num_tokens), revision)


def _vector(given: Any) -> Any:
    """Base64 of little-endian float32, or a list of numbers: engines differ, whatever they are asked for."""
    import numpy

    try:
        if isinstance(given, str):
            vector = numpy.frombuffer(base64.b64decode(given, validate=True), dtype="<f4")
        else:
            with numpy.errstate(over="ignore"):  # what is too large is found below
                vector = numpy.array(given, dtype="float32")
    except (ValueError, TypeError, OverflowError):
        raise failed("made a vector that is none") from None
    if vector.ndim != 1 or not 0 < len(vector) <= _MAX_NUMBERS or not numpy.isfinite(vector).all():
        raise failed("made a vector that is none")
    return vector.astype("float32")


def _number(given: Any) -> float:
    if type(given) not in (int, float) or not abs(given) <= sys.float_info.max:  # whole numbers may be larger
        raise failed("gave a score that is no number")
    return float(given)


def _num_tokens(said: Any, estimate: int) -> int:
    usage = said.get("usage") if isinstance(said, dict) else None
    counted = usage.get("total_tokens") if isinstance(usage, dict) else None
    return counted if type(counted) is int and 0 <= counted < 2**40 else estimate
