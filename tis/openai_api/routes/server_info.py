"""What clients of other servers ask about this one: /version (vLLM), /props and /slots (llama.cpp), /v1/moderations."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query

from tis import __version__
from tis.engine.engine import Engine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.model_status import ModelStatus
from tis.engine.sampling.params import SamplingParams
from tis.errors import NotImplementedHere
from tis.http.dependencies import DOCUMENTED_KEY, EngineDep
from tis.openai_api.routes.models import ApiOptions, OptionsDep, served_model
from tis.openai_api.wire.completion_examples import MODERATION_RESPONSES
from tis.openai_api.wire.server_info_examples import PROPS_RESPONSES, SLOTS_RESPONSES, VERSION_RESPONSES

router = APIRouter(dependencies=[DOCUMENTED_KEY])
aliases = APIRouter()

ModelQuery = Annotated[str | None, Query(max_length=512, description="one of several models")]


@aliases.get("/version", responses=VERSION_RESPONSES, dependencies=[DOCUMENTED_KEY])
async def version() -> dict[str, str]:
    """The version of this server, in the shape of vLLM."""
    return {"version": __version__}


@aliases.get("/props", responses=PROPS_RESPONSES, dependencies=[DOCUMENTED_KEY])
async def props(engine: EngineDep, options: OptionsDep, model: ModelQuery = None) -> dict[str, Any]:
    """What clients of llama.cpp's server read of a model: its context, template, modalities and default sampling."""
    entry = _entry(engine, options, model)
    known = await engine.describe(entry.id)
    return {
        "default_generation_settings": {
            "n_ctx": known.context_length or 0,
            "params": _sampling(engine.default_sampling(entry.id)),
        },
        "total_slots": _num_slots(entry, options),
        "model_alias": entry.id,
        "model_path": entry.id,  # no path of this machine
        "chat_template": known.chat_template,
        "modalities": {
            "vision": "image" in known.media,
            "video": "video" in known.media,
            "audio": "audio" in known.media,
        },
        "build_info": f"transformers-inference-server {__version__}",
    }


@aliases.get("/slots", responses=SLOTS_RESPONSES, dependencies=[DOCUMENTED_KEY])
async def slots(engine: EngineDep, options: OptionsDep, model: ModelQuery = None) -> list[dict[str, Any]]:
    """The places for answers that a model makes at once, in the shape of llama.cpp. None shows what is in it."""
    entry = _entry(engine, options, model)
    known = await engine.describe(entry.id)
    [status] = [one for one in engine.statuses if one.id == (entry.base or entry.id)]
    return [
        {"id": number, "n_ctx": known.context_length or 0, "speculative": False, "is_processing": is_busy}
        for number, is_busy in enumerate(_busy(status, _num_slots(entry, options)))
    ]


@router.post("/moderations", status_code=501, responses=MODERATION_RESPONSES)
async def moderations() -> None:
    """Not implemented: there is no moderation model here. Always 501, so that no client takes silence for consent."""
    raise NotImplementedHere("This server has no moderation model: /v1/moderations is not implemented.")


def _entry(engine: Engine, options: ApiOptions, model: str | None) -> CatalogueEntry:
    model_id = served_model(engine, model, options.strict_model)
    return next(entry for entry in engine.models if entry.id == model_id)


def _num_slots(entry: CatalogueEntry, options: ApiOptions) -> int:
    return entry.limits.max_batch_size or options.max_answers


def _busy(status: ModelStatus, num_slots: int) -> list[bool]:
    """Answers have no numbers here: as many slots are busy as there are requests."""
    return [number < status.num_running for number in range(num_slots)]


def _sampling(params: SamplingParams) -> Mapping[str, Any]:
    """By llama.cpp's names."""
    return {
        "temperature": params.temperature,
        "top_k": params.top_k,
        "top_p": params.top_p,
        "min_p": params.min_p,
        "repeat_penalty": params.repetition_penalty,
        "presence_penalty": params.presence_penalty,
        "frequency_penalty": params.frequency_penalty,
        "n_predict": params.max_tokens,
    }
