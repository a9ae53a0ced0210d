"""What an upstream answers at once, asked in turn with everything else: vectors, scores, windows, sentences."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from tis.admission.ticket import Ticket
from tis.engine.pooling.loaded_pooling import EmbeddingOptions, Embeddings, PairScores
from tis.engine.pooling.token_row import Text
from tis.engine.speech.heard import HeardWindow, SpeechWindow
from tis.engine.upstream_call import beyond_estimate
from tis.engine.voice.spoken import SentenceToSay
from tis.upstream.hearing import count_heard, hear
from tis.upstream.http_client import UpstreamHttp
from tis.upstream.speaking import ask_to_say, count_spoken, speech_body
from tis.upstream.token_counts import estimated_tokens
from tis.upstream.upstream_model import UpstreamModel
from tis.upstream.vectors import ask_for_scores, ask_for_vectors, embedding_body, rerank_body
from tis.upstream.whole_request import CountMade, WholeRequest


async def embed_at(
    model: UpstreamModel, texts: Sequence[Text], options: EmbeddingOptions, ticket: Ticket | None
) -> Embeddings:
    body = embedding_body(model.model, texts, options, model.abilities, is_ours=model.is_ours)
    num_tokens, seconds = await estimated_tokens(body), model.entry.upstream_seconds.first_token
    made = await _asked(
        model, lambda http: ask_for_vectors(http, body, num_tokens, seconds), ticket, num_tokens=num_tokens
    )
    return cast(Embeddings, made)


async def score_at(
    model: UpstreamModel,
    pairs: Sequence[tuple[str, str]],
    instruction: str | None,
    ticket: Ticket | None,
    *,
    truncate: bool,
) -> PairScores:
    """A request for each query: most have one."""
    seconds = model.entry.upstream_seconds.first_token
    by_query: dict[str, list[int]] = {}
    for number, (query, _) in enumerate(pairs):
        by_query.setdefault(query, []).append(number)
    values, num_scored = [0.0] * len(pairs), 0
    for query, numbers in by_query.items():
        texts = [pairs[number][1] for number in numbers]
        body = rerank_body(
            *(model.model, query, texts, instruction, model.abilities), truncate=truncate, is_ours=model.is_ours
        )
        made = cast(PairScores, await _scores(model, body, await estimated_tokens(body), seconds, ticket))
        num_scored += made.num_tokens
        for number, value in zip(numbers, made.values, strict=True):
            values[number] = value
    return PairScores(values, num_scored)


async def _scores(
    model: UpstreamModel, body: dict[str, Any], num_tokens: int, seconds: float, ticket: Ticket | None
) -> Any:
    return await _asked(
        model, lambda http: ask_for_scores(http, body, num_tokens, seconds), ticket, num_tokens=num_tokens
    )


async def hear_at(model: UpstreamModel, window: SpeechWindow, ticket: Ticket | None, *, is_begun: bool) -> HeardWindow:
    seconds = model.entry.upstream_seconds.first_token
    made = await _asked(
        model,
        lambda http: hear(http, model.model, window.samples, window.options, seconds),
        ticket,
        is_begun=is_begun,
        count_made=count_heard,
    )
    return cast(HeardWindow, made)


async def say_at(model: UpstreamModel, sentence: SentenceToSay, ticket: Ticket | None, *, is_begun: bool) -> Any:
    """Its samples, at the rate that `describe_voice` says."""
    body, seconds = speech_body(model, sentence), model.entry.upstream_seconds.first_token
    if ticket and not ticket.has_answered:
        ticket.queue(len(sentence.text), is_resumed=is_begun)
    return await _asked(
        *(model, lambda http: ask_to_say(http, body, seconds), ticket), is_begun=is_begun, count_made=count_spoken
    )


async def _asked(
    model: UpstreamModel,
    ask: Callable[[UpstreamHttp], Awaitable[Any]],
    ticket: Ticket | None,
    *,
    num_tokens: int = 0,
    is_begun: bool = False,
    count_made: CountMade | None = None,
) -> Any:
    request = WholeRequest(ask, model.cancel, ticket, num_tokens=num_tokens, is_begun=is_begun, count_made=count_made)
    if ticket and num_tokens:
        ticket.queue(num_tokens)
    model.submit(request)
    try:
        made = await request.answer
    except asyncio.CancelledError:
        request.cancel()
        raise
    if num_tokens:
        request.timing.more_of_prompt(beyond_estimate(num_tokens, made.num_tokens))
    return made
