"""The routes of Ollama's API, HTTP only. `router` has all of them, `WRITERS` the writers of their runs by dialect."""

from collections.abc import Mapping

from fastapi import APIRouter, Response

from tis.chat.parts import NewWriter
from tis.http.error_handlers import OLLAMA_PREFIX
from tis.ollama_api.routes import catalogue, embed, generation, pull
from tis.ollama_api.wire.ollama_writer import DIALECT, OllamaWriter

WRITERS: Mapping[str, NewWriter] = {DIALECT: OllamaWriter}

router = APIRouter(prefix=OLLAMA_PREFIX, tags=["Ollama"])
for part in (generation, catalogue, embed, pull):
    router.include_router(part.router, prefix="/api")


@router.api_route("", methods=["GET", "HEAD"], include_in_schema=False)
@router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
async def running() -> Response:
    """What clients ask for to see whether Ollama is there."""
    return Response("Ollama is running", media_type="text/plain")
