"""GET /v1/models, the model that the name in a request selects, and what the operator chose for the routes of `/v1`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Depends, Path, Request

from tis.chat.run_spec import Services
from tis.engine.engine import Engine
from tis.engine.errors import ModelNotFound, WrongTask
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.description import ModelDescription
from tis.engine.models.entry_fields import Task
from tis.http.api_keys import current_key
from tis.http.dependencies import EngineDep
from tis.http.errors import ModelNotAllowed
from tis.openai_api.wire.examples import MODEL_RESPONSES, MODELS_RESPONSES

router = APIRouter()

_OUTPUTS: Mapping[Task, str] = {
    "chat": "text",
    "embedding": "embedding",
    "rerank": "score",
    "transcription": "text",
    "speech": "audio",
}


@dataclass(frozen=True)
class ApiOptions:
    strict_model: Literal["auto", "0", "1"] = "auto"
    responses_ttl_seconds: int = 2_592_000
    max_answers: int = 32  # of a model at once, unless its catalogue entry says otherwise
    hosted_tools: Mapping[str, str] = field(default_factory=dict)  # the URL of the MCP server behind each


async def _options(request: Request) -> ApiOptions:
    return cast(ApiOptions, request.app.state.api_options)


async def _services(request: Request) -> Services:
    return cast(Services, request.app.state.services)


OptionsDep = Annotated[ApiOptions, Depends(_options)]
ServicesDep = Annotated[Services, Depends(_services)]


@router.get("/models", responses=MODELS_RESPONSES)
async def list_models(engine: EngineDep) -> dict[str, Any]:
    """List the models of this server."""
    return {"object": "list", "data": [await _described(engine, entry) for entry in allowed_models(engine)]}


@router.get("/models/{model_id:path}", responses=MODEL_RESPONSES)
async def get_model(
    engine: EngineDep, model_id: Annotated[str, Path(max_length=512, examples=["demo"])]
) -> dict[str, Any]:
    """Retrieve a model by its id."""
    for entry in allowed_models(engine):
        if entry.is_called(model_id):
            return await _described(engine, entry)
    raise ModelNotFound(model_id[:200])


def allowed_models(engine: Engine) -> list[CatalogueEntry]:
    """The models that the key of the request may use: all of them, unless API_KEYS_FILE names some."""
    key = current_key()
    names = key.models if key else None
    return [entry for entry in engine.models if names is None or any(map(entry.is_called, names))]


def served_model(
    engine: Engine, name: str | None, strict: Literal["auto", "0", "1"], task: Task | None = "chat"
) -> str:
    """The id of the model for a task that the name selects. Raises WrongTask if the name is of another one, and
    ModelNotAllowed if the key of the request may not use it.

    Without a task, any model does; one that writes text if the name selects none.
    """
    allowed = allowed_models(engine)
    for entry in engine.models:
        if entry.is_called(name):
            if entry not in allowed:
                raise ModelNotAllowed(entry.id)
            if task and entry.task != task:
                raise WrongTask(entry.id, entry.task)
            return entry.id
    able: Sequence[CatalogueEntry]
    able = [entry for entry in engine.models if entry.task == (task or "chat") and not entry.base]
    if not (able or task):
        able = engine.models
    if able and (not name or strict == "0" or (strict == "auto" and len(able) == 1)):
        chosen = next((entry for entry in able if entry in allowed), None)
        if chosen is None:
            raise ModelNotAllowed(able[0].id)
        return chosen.id
    raise ModelNotFound((name or "")[:200], task or "chat")


async def _described(engine: Engine, entry: CatalogueEntry) -> dict[str, Any]:
    known = await engine.describe(entry.id)
    [state] = [status.state for status in engine.statuses if status.id == (entry.base or entry.id)]
    return {
        "id": entry.id,
        "object": "model",
        "created": int(known.weights_time or engine.opened_at),
        "owned_by": "local",
        "max_model_len": known.context_length,
        "modalities": {"input": ["text", *sorted(known.media)], "output": [_OUTPUTS[entry.task]]},
        "aliases": list(entry.aliases),
        "parent": entry.base,
        "status": "loaded" if state == "ready" else state,
        "capabilities": [entry.task, *_capabilities(known)],
        **({"voices": list(known.voices or entry.voices)} if entry.task == "speech" else {}),
    }


def _capabilities(known: ModelDescription) -> list[str]:
    given = {
        "vision": bool({"image", "video"} & set(known.media)),
        "audio": "audio" in known.media,
        "tools": known.calls_tools,
        "reasoning": known.reasons,
        "structured_outputs": known.has_grammars,
    }
    return [name for name, is_there in given.items() if is_there]
