"""The routes of `/v1`, HTTP only: they check the cursor, begin or find an answer, and let the client follow it.

`router` has all of them, `DIALECTS` the writers of their runs. `create_app` adds the prefix, which saves
FastAPI a search through all routes at startup. `aliases` are the paths that other servers have for some of them.
"""

from fastapi import APIRouter

from tis.chat.resume import Dialects
from tis.http.dependencies import DOCUMENTED_KEY
from tis.openai_api.routes import (
    chat,
    completions,
    conversations,
    decisions,
    embeddings,
    machine,
    model_control,
    models,
    recent_requests,
    rerank,
    responses,
    server_info,
    streams,
    tokens,
    usage,
)
from tis.openai_api.wire import chat_writer, completion_writer, response_writer

router = APIRouter(tags=["OpenAI"])
router.include_router(chat.router)
router.include_router(completions.router)
router.include_router(tokens.router)
router.include_router(decisions.router)
router.include_router(models.router, dependencies=[DOCUMENTED_KEY])
router.include_router(model_control.router)
router.include_router(streams.router)
router.include_router(responses.router)
router.include_router(conversations.router)
router.include_router(embeddings.router)
router.include_router(rerank.router)
router.include_router(server_info.router)
router.include_router(usage.router)
router.include_router(recent_requests.router)
router.include_router(machine.router)

aliases = APIRouter(tags=["OpenAI"])
aliases.include_router(embeddings.aliases)
aliases.include_router(rerank.aliases)
aliases.include_router(model_control.aliases)
aliases.include_router(tokens.aliases)
aliases.include_router(server_info.aliases)

DIALECTS = Dialects(
    {
        chat_writer.DIALECT: chat_writer.ChatWriter,
        completion_writer.DIALECT: completion_writer.CompletionWriter,
        response_writer.DIALECT: response_writer.ResponseWriter,
    },
    chat_writer.error_event,
)
