"""POST /v1/embeddings: a vector for each text, in OpenAI's shape; /embedding and /embeddings in that of llama.cpp."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response

from tis.admission.ticket import Ticket
from tis.cancellation import race_draining
from tis.chat.media import with_media_of_all
from tis.chat.run_spec import Services
from tis.engine.engine import Engine
from tis.engine.pooling.loaded_pooling import EmbeddingOptions, Embeddings
from tis.engine.pooling.token_row import Text
from tis.engine.prompt import ChatPrompt
from tis.errors import BadRequest
from tis.http.admission import ticket_of
from tis.http.dependencies import EngineDep, OwnerDep
from tis.http.event_stream import CLIENT_CLOSED_REQUEST, ClientGone, while_connected
from tis.http.scanned_route import ScannedBodyRoute, in_thread_if, is_large_body
from tis.openai_api.routes.models import OptionsDep, ServicesDep, served_model
from tis.openai_api.wire.embedding_examples import EMBEDDING_RESPONSES, PLAIN_EMBEDDING_RESPONSES
from tis.openai_api.wire.embedding_request import (
    EmbeddingRequest,
    PlainEmbeddingRequest,
    embeddings_json,
    plain_embeddings_json,
)
from tis.openai_api.wire.ignored import name_ignored

router = APIRouter(route_class=ScannedBodyRoute)
aliases = APIRouter(route_class=ScannedBodyRoute)

_MANY_NUMBERS = 4096  # to write more of them would hold up the event loop for milliseconds
T = TypeVar("T")


@router.post("/embeddings", response_model=None, responses=EMBEDDING_RESPONSES)
async def create_embeddings(
    body: EmbeddingRequest, request: Request, services: ServicesDep, owner: OwnerDep, options: OptionsDep
) -> Response:
    """Make a vector of each text, or of pictures for models that see.

    Texts of many requests are computed together, and none changes another's vector.

    `encoding_format` is `float`, or `base64` of little-endian float32, which the clients of OpenAI ask for.
    """
    engine = services.engine
    model_id = served_model(engine, body.model, options.strict_model, "embedding")
    wanted = EmbeddingOptions(body.prompt_name, body.dimensions, bool(body.truncate), _salt(body.cache_salt, owner))

    async def embed() -> Embeddings:
        texts = await in_thread_if(is_large_body(request), body.texts)
        ticket = ticket_of(request)
        return await engine.embed(model_id, await _with_media(texts, model_id, services, ticket), wanted, ticket)

    answer = await pooled(
        request,
        engine,
        embed(),
        lambda made: embeddings_json(made, model_id, body.encoding_format),
        is_long,
    )
    return await name_ignored(answer, request, body, engine, model_id, ["user"])


@aliases.post("/embedding", response_model=None, responses=PLAIN_EMBEDDING_RESPONSES)
@aliases.post("/embeddings", response_model=None, responses=PLAIN_EMBEDDING_RESPONSES)
async def create_plain_embeddings(
    body: PlainEmbeddingRequest, request: Request, engine: EngineDep, owner: OwnerDep, options: OptionsDep
) -> Response:
    """Make a vector of each text, in the shape of llama.cpp's server."""
    texts = body.content if body.content is not None else body.input
    if texts is None:
        raise BadRequest("content: Field required", param="content", code="missing_required_parameter")
    model_id = served_model(engine, body.model, options.strict_model, "embedding")
    embedding = engine.embed(model_id, texts, EmbeddingOptions(salt=_salt(None, owner)), ticket_of(request))
    return await pooled(request, engine, embedding, plain_embeddings_json, is_long)


async def _with_media(texts: list[Text], model_id: str, services: Services, ticket: Ticket) -> list[Text]:
    places = [number for number, text in enumerate(texts) if isinstance(text, ChatPrompt)]
    prompts = [text for text in texts if isinstance(text, ChatPrompt)]
    whole, _ = await with_media_of_all(prompts, model_id, services.engine, services.media, ticket)
    ticket.keep("media_bytes", 0)  # the files are not needed any more
    for number, prompt in zip(places, whole, strict=True):
        texts[number] = prompt
    return texts


async def pooled(
    request: Request,
    engine: Engine,
    work: Coroutine[Any, Any, T],
    encode: Callable[[T], bytes],
    is_large: Callable[[T], bool],
) -> Response:
    """Waits for what the model makes, unless the client leaves or the server drains, and encodes it."""
    try:
        made = await while_connected(request, race_draining(engine.until_draining(), work))
    except ClientGone:
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    ticket_of(request).answer()
    content = await in_thread_if(is_large(made), lambda: encode(made))
    return Response(content, media_type="application/json")


def is_long(made: Embeddings) -> bool:
    return sum(map(len, made.vectors)) > _MANY_NUMBERS


def _salt(given: str | None, owner: str) -> str:
    """Without a salt of its own, a request shares vectors with those of its owner."""
    return f"salt:{given}" if given else f"owner:{owner}"
