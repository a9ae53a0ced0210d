"""POST /load_model, as `transformers serve` has it, and POST /v1/models/{model_id}/unload."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from tis.engine.engine import Engine
from tis.engine.errors import ModelNotFound
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.load_progress import CountedShare
from tis.engine.models.model_status import ModelStatus
from tis.errors import ServiceError
from tis.http.admin_guard import ADMIN_ONLY
from tis.http.dependencies import DOCUMENTED_KEY, EngineDep
from tis.openai_api.routes.models import OptionsDep, served_model
from tis.openai_api.wire.model_control_examples import LOAD_RESPONSES, UNLOAD_RESPONSES

router = APIRouter(dependencies=[DOCUMENTED_KEY, ADMIN_ONLY])
aliases = APIRouter(dependencies=[DOCUMENTED_KEY, ADMIN_ONLY])

# Stages of `transformers serve`, by the beginnings of ours.
_STAGES = {"asking": "download", "looking": "download", "downloading": "download"} | dict.fromkeys(
    ("reading the weights", "preparing", "warming"), "weights"
)


class LoadRequest(BaseModel):
    model: str = Field(min_length=1, max_length=512, description="id, alias or repository, also with `@revision`")


@aliases.post("/load_model", response_class=StreamingResponse, responses=LOAD_RESPONSES)
async def load_model(request: Request, body: LoadRequest, engine: EngineDep, options: OptionsDep) -> StreamingResponse:
    """Load a model, and stream how it goes on, as `transformers serve` does. Needs `ADMIN_KEY`, if there is one.

    Servers that share a Redis load it, too.
    """
    entry = _named(engine, body.model)
    if entry is None:
        model_id = served_model(engine, body.model, options.strict_model)
        [entry] = (one for one in engine.models if one.id == model_id)
    await _tell_others(request, entry, "load")
    return StreamingResponse(_events(engine, entry), media_type="text/event-stream")


@router.post("/models/{model_id:path}/unload", responses=UNLOAD_RESPONSES)
async def unload_model(
    request: Request, engine: EngineDep, model_id: Annotated[str, Path(max_length=512, examples=["demo"])]
) -> dict[str, Any]:
    """Free the memory of a model; the next request loads it again. 409 while it is in use. Needs `ADMIN_KEY`, too.

    Servers that share a Redis unload it, too, each as soon as it is not in use there.
    """
    entry = _named(engine, model_id)
    if entry is None:
        raise ModelNotFound(model_id[:200])
    status = await engine.unload(entry.id)
    await _tell_others(request, entry, "unload")
    return {"id": entry.id, "object": "model", "status": status.state}


async def _tell_others(request: Request, entry: CatalogueEntry, order: Literal["load", "unload"]) -> None:
    if shared := request.app.state.shared:
        await shared.model_orders.tell_others(entry.base or entry.id, order)


def _named(engine: Engine, name: str) -> CatalogueEntry | None:
    base, _, revision = name.rpartition("@")
    for entry in engine.models:
        if entry.is_called(name) or (entry.is_called(base) and revision == _revision(entry)):
            return entry
    return None


def _revision(entry: CatalogueEntry) -> str:
    return entry.revision or "main"


async def _events(engine: Engine, entry: CatalogueEntry) -> AsyncIterator[bytes]:
    name = f"{entry.id}@{_revision(entry)}"
    was_loaded = True
    shown: Mapping[str, Any] = {}
    try:
        async with aclosing(engine.watch_load(entry.id)) as changes:
            async for status in changes:
                if status.state == "ready":
                    break
                was_loaded = False
                if (event := _loading(name, status)) != shown:
                    shown = event
                    yield _block(event)
    except ServiceError as error:
        yield _block({"status": "error", "model": name, "message": error.message})
    else:
        yield _block({"status": "ready", "model": name, "cached": was_loaded})


def _loading(name: str, status: ModelStatus) -> Mapping[str, Any]:
    stage = next((theirs for ours, theirs in _STAGES.items() if (status.stage or "").startswith(ours)), "processor")
    event = {"status": "loading", "model": name, "stage": stage}
    if isinstance(status.progress, CountedShare):
        return {**event, "progress": {"current": status.progress.done, "total": status.progress.total}}
    return event


def _block(event: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(event)}\n\n".encode()
