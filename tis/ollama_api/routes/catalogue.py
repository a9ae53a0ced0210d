"""GET /api/tags, /api/ps and /api/version, POST /api/show: the models of this server in Ollama's shapes."""

import asyncio
import time
from typing import Any

from fastapi import APIRouter, Request

from tis.engine.engine import Engine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.model_status import ModelStatus
from tis.http.dependencies import DOCUMENTED_KEY, EngineDep
from tis.ollama_api.routes.model_names import named, with_tag
from tis.ollama_api.wire.model_card import (
    ModelFiles,
    capabilities,
    details,
    digest,
    model_info,
    parameters,
    read_model_files,
)
from tis.ollama_api.wire.model_fields import ShowRequest
from tis.ollama_api.wire.ollama_examples import PS_RESPONSES, SHOW_RESPONSES, TAGS_RESPONSES, VERSION_RESPONSES
from tis.ollama_api.wire.ollama_writer import rfc3339
from tis.openai_api.routes.models import allowed_models

router = APIRouter(dependencies=[DOCUMENTED_KEY])

# The version of Ollama whose API this is; clients ask for features by it.
_API_VERSION = "0.13.0"
_NEVER = "2318-01-01T00:00:00Z"  # what Ollama says of a model that stays loaded


@router.head("/tags", include_in_schema=False)
@router.get("/tags", responses=TAGS_RESPONSES)
async def list_models(engine: EngineDep) -> dict[str, Any]:
    """List the models of this server. Also at `/api/tags`."""
    return {"models": [await _listed(engine, entry) for entry in allowed_models(engine)]}


@router.post("/show", responses=SHOW_RESPONSES)
async def show_model(body: ShowRequest, engine: EngineDep) -> dict[str, Any]:
    """Say what a model can do, its sizes, its chat template and its defaults. Also at `/api/show`."""
    entry = named(engine, body.model or body.name)
    known = await engine.describe(entry.id)
    files = await _files_of(engine, entry)
    return {
        "license": "",
        "modelfile": f"FROM {with_tag(entry.id)}",
        "parameters": parameters(entry),
        "template": files.template,
        "details": details(files, entry),
        "model_info": model_info(files, known),
        "capabilities": capabilities(entry, known),
        "modified_at": rfc3339(known.weights_time or engine.opened_at),
    }


@router.get("/ps", responses=PS_RESPONSES)
async def list_loaded(request: Request, engine: EngineDep) -> dict[str, Any]:
    """List the loaded models with their memory, and when they go if nobody uses them. Also at `/api/ps`."""
    idle_limit: float = request.app.state.model_idle_seconds
    loaded = {status.id: status for status in engine.statuses if status.state == "ready"}
    return {
        "models": [
            await _loaded(engine, entry, loaded[entry.id], idle_limit)
            for entry in allowed_models(engine)
            if entry.id in loaded and not entry.base
        ]
    }


@router.head("/version", include_in_schema=False)
@router.get("/version", responses=VERSION_RESPONSES)
async def version() -> dict[str, str]:
    """The version of Ollama whose API this is; the server's own is in `/openapi.json`. Also at `/api/version`."""
    return {"version": _API_VERSION}


async def _listed(engine: Engine, entry: CatalogueEntry) -> dict[str, Any]:
    known = await engine.describe(entry.id)
    name = with_tag(entry.id)
    return {
        "name": name,
        "model": name,
        "modified_at": rfc3339(known.weights_time or engine.opened_at),
        "size": known.weights_bytes or 0,
        "digest": digest(entry, known),
        "details": details(await _files_of(engine, entry), entry),
    }


async def _loaded(engine: Engine, entry: CatalogueEntry, status: ModelStatus, idle_limit: float) -> dict[str, Any]:
    known = await engine.describe(entry.id)
    footprint, name = status.footprint, with_tag(entry.id)
    on_device = footprint.num_bytes if footprint and not footprint.device.startswith("cpu") else 0
    expires_at = rfc3339(time.time() + idle_limit - (status.idle_seconds or 0)) if idle_limit else _NEVER
    return {
        "name": name,
        "model": name,
        "size": footprint.num_bytes if footprint else status.held_bytes,
        "digest": digest(entry, known),
        "details": details(await _files_of(engine, entry), entry),
        "expires_at": expires_at,
        "size_vram": on_device,
        "context_length": known.context_length or 0,
    }


async def _files_of(engine: Engine, entry: CatalogueEntry) -> ModelFiles:
    """Of an adapter: those of the model that it changes."""
    of = next((one for one in engine.models if one.id == entry.base), entry)
    return await asyncio.to_thread(read_model_files, of, await engine.describe(of.id))
