"""/tokenize and /detokenize (vLLM, llama.cpp), and the count of the tokens of a chat."""

from typing import Any

from fastapi import APIRouter, Request, Response

from tis.cancellation import race_draining
from tis.engine.text.text_encoder import TooManyTokens
from tis.engine.text.tokenizer import TextCodec
from tis.errors import BadRequest
from tis.http.admission import ticket_of
from tis.http.dependencies import DOCUMENTED_KEY, EngineDep
from tis.http.json_bodies import json_response
from tis.http.scanned_route import ScannedBodyRoute, is_large_body
from tis.openai_api.routes.models import OptionsDep, ServicesDep, served_model
from tis.openai_api.wire.chat_request import ChatRequest
from tis.openai_api.wire.completion_examples import DETOKENIZE_RESPONSES, TOKENIZE_RESPONSES
from tis.openai_api.wire.count_tokens import prepared_to_count
from tis.openai_api.wire.examples import INPUT_TOKENS_RESPONSES
from tis.openai_api.wire.ignored import name_ignored
from tis.openai_api.wire.token_request import MAX_TOKENS, DetokenizeRequest, TokenizeRequest
from tis.openai_api.wire.tools import with_web_search

router = APIRouter(route_class=ScannedBodyRoute, dependencies=[DOCUMENTED_KEY])
aliases = APIRouter(route_class=ScannedBodyRoute, dependencies=[DOCUMENTED_KEY])

_MANY_TOKENS = 4096
_MANY_CHARS = 256 * 1024


@router.post("/tokenize", response_model=None, responses=TOKENIZE_RESPONSES)
@aliases.post("/tokenize", response_model=None, responses=TOKENIZE_RESPONSES)
async def tokenize(body: TokenizeRequest, request: Request, services: ServicesDep, options: OptionsDep) -> Response:
    """Encode a raw text, or the prompt of a chat, as tokens: in the shape of vLLM, or of llama.cpp with `content`."""
    body.check()
    engine, ticket = services.engine, ticket_of(request)
    model_id = served_model(engine, body.model, options.strict_model, "chat" if body.messages else None)
    max_model_len = (await engine.describe(model_id)).context_length
    of_chat: list[int] | None = None
    if chat := body.chat:
        counting = prepared_to_count(chat, services, model_id, ticket, is_large=is_large_body(request))
        of_chat = (await race_draining(engine.until_draining(), counting)).prompt_ids

    def encode(tokenizer: TextCodec) -> tuple[int, dict[str, Any]]:
        ids = body.encode(tokenizer) if of_chat is None else of_chat
        if len(ids) > MAX_TOKENS:
            raise TooManyTokens(len(ids))
        return len(ids), body.answer(ids, max_model_len, tokenizer)

    try:
        num_tokens, made = await engine.with_codec(model_id, encode)
    except TooManyTokens:
        name = "content" if body.content is not None else "prompt"
        message = f"{name}: a text may have at most {MAX_TOKENS:,} tokens. Send it in parts."
        raise BadRequest(message, param=name, code="too_many_tokens") from None
    ticket.answer()
    answer = await json_response(lambda: made, is_large=num_tokens > _MANY_TOKENS)
    return await name_ignored(answer, request, body, engine, model_id, ["parse_special"])


@router.post("/detokenize", response_model=None, responses=DETOKENIZE_RESPONSES)
@aliases.post("/detokenize", response_model=None, responses=DETOKENIZE_RESPONSES)
async def detokenize(body: DetokenizeRequest, request: Request, engine: EngineDep, options: OptionsDep) -> Response:
    """Decode tokens as a text, with control tokens: `prompt` as for vLLM, and the same as `content` for llama.cpp."""
    model_id = served_model(engine, body.model, options.strict_model, None)
    made = await engine.with_codec(model_id, body.answer)
    ticket_of(request).answer()
    answer = await json_response(lambda: made, is_large=len(made["content"]) > _MANY_CHARS)
    return await name_ignored(answer, request, body, engine, model_id)


@router.post("/chat/completions/input_tokens", response_model=None, responses=INPUT_TOKENS_RESPONSES)
async def count_chat_tokens(
    body: ChatRequest, request: Request, services: ServicesDep, options: OptionsDep
) -> dict[str, Any]:
    """Count the tokens of the prompt that `POST /v1/chat/completions` would make of the same body."""
    body = with_web_search(body, options.hosted_tools)
    body.check()
    if body.messages is None:
        raise BadRequest("messages: Field required", param="messages", code="missing_required_parameter")
    model_id = served_model(services.engine, body.model, options.strict_model)
    counting = prepared_to_count(body, services, model_id, ticket_of(request), is_large=is_large_body(request))
    prepared = await race_draining(services.engine.until_draining(), counting)
    is_estimate = bool(prepared.upstream and prepared.upstream.is_estimate)
    counted = {"object": "response.input_tokens", "input_tokens": prepared.num_prompt_tokens}
    return {**counted, "is_estimate": True} if is_estimate else counted
