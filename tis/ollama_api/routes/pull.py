"""POST /api/pull: downloads and loads a model of the catalogue. What would change the catalogue is refused by name."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from tis.engine.engine import Engine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.hub_files import HubSource, is_complete
from tis.engine.models.load_progress import CountedShare
from tis.engine.models.model_status import ModelStatus
from tis.errors import Forbidden, ServiceError
from tis.http.admin_guard import ADMIN_ONLY
from tis.http.dependencies import DOCUMENTED_KEY, EngineDep
from tis.ollama_api.routes.generation import NDJSON
from tis.ollama_api.routes.model_names import named
from tis.ollama_api.wire.model_card import digest
from tis.ollama_api.wire.model_fields import PullRequest
from tis.ollama_api.wire.ollama_examples import PULL_RESPONSES
from tis.ollama_api.wire.ollama_writer import encoded, error_line

router = APIRouter()

_SUCCESS: Mapping[str, Any] = {"status": "success"}
_REFUSED: Mapping[str, str] = {
    "create": "a model is an entry of the catalogue, which the operator writes",
    "copy": "give the model of the catalogue an alias",
    "delete": "the operator deletes files; POST /v1/models/{id}/unload frees the memory of a model",
    "push": "this server uploads nothing",
    "me": "this server has no account at ollama.com",
    "signout": "this server has no account at ollama.com",
    "blobs": "this server takes no files of models",
}


@router.post("/pull", response_model=None, responses=PULL_RESPONSES, dependencies=[DOCUMENTED_KEY, ADMIN_ONLY])
async def pull_model(body: PullRequest, engine: EngineDep) -> Response:
    """Download a model of the catalogue, load it, and stream how that goes on. Also at `/api/pull`.

    Needs `ADMIN_KEY`, if there is one. A model whose files are here is not loaded.
    """
    entry = named(engine, body.model or body.name)
    if body.stream is not False:
        return StreamingResponse(_lines(engine, entry), media_type=NDJSON)
    async for _ in _progress(engine, entry):
        pass
    return Response(encoded(_SUCCESS), media_type="application/json")


@router.api_route("/blobs/{digest}", methods=["POST", "HEAD"], include_in_schema=False)
@router.api_route("/create", methods=["POST"], include_in_schema=False)
@router.api_route("/copy", methods=["POST"], include_in_schema=False)
@router.api_route("/delete", methods=["DELETE"], include_in_schema=False)
@router.api_route("/me", methods=["POST"], include_in_schema=False)
@router.api_route("/signout", methods=["POST"], include_in_schema=False)
@router.api_route("/push", methods=["POST"], include_in_schema=False)
async def refuse(request: Request) -> Response:
    [name] = (name for name in _REFUSED if name in request.url.path.rpartition("/api/")[2].split("/"))
    raise Forbidden(f"{name} is not supported: {_REFUSED[name]}.", code="unsupported")


async def _lines(engine: Engine, entry: CatalogueEntry) -> AsyncIterator[bytes]:
    try:
        async for status in _progress(engine, entry):
            yield json.dumps(status).encode() + b"\n"
    except ServiceError as error:
        yield error_line(error) + b"\n"
    else:
        yield encoded(_SUCCESS) + b"\n"


async def _progress(engine: Engine, entry: CatalogueEntry) -> AsyncIterator[Mapping[str, Any]]:
    yield {"status": "pulling manifest"}
    if not entry.has_files or await asyncio.to_thread(is_complete, entry.repo, HubSource(revision=entry.revision)):
        return
    shown: Mapping[str, Any] = {}
    name = digest(entry, await engine.describe(entry.id))
    async with aclosing(engine.watch_load(entry.id)) as changes:
        async for status in changes:
            if (line := _line(status, name)) and line != shown:
                shown = line
                yield line


def _line(status: ModelStatus, name: str) -> Mapping[str, Any] | None:
    if status.stage == "downloading" and isinstance(status.progress, CountedShare):
        counted = {"total": status.progress.total, "completed": status.progress.done}
        return {"status": f"pulling {name[:12]}", "digest": f"sha256:{name}", **counted}
    return {"status": status.stage} if status.stage else None
