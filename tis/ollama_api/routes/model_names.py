"""The names of models, as Ollama writes them, and what it says of one that is not there."""

from tis.engine.engine import Engine
from tis.engine.errors import ModelNotFound
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.entry_fields import Task
from tis.errors import BadRequest, NotFound, ServiceError
from tis.http.errors import ModelNotAllowed
from tis.openai_api.routes.models import ApiOptions, allowed_models, served_model

_LATEST = ":latest"


def with_tag(model_id: str) -> str:
    """Ollama's clients show and send every name with a tag."""
    return model_id if ":" in model_id else f"{model_id}{_LATEST}"


def served(engine: Engine, name: str | None, options: ApiOptions, task: Task | None) -> str:
    """The id of the model that a request names; as for `/v1`, a server of one model may answer for any name.

    Without a task a model of any may be named.
    """
    if not name:
        raise BadRequest("model is required", param="model", code="missing_required_parameter")
    entry = _entry(engine, name)
    try:
        wanted = task or (entry.task if entry else "chat")
        return served_model(engine, entry.id if entry else name, options.strict_model, wanted)
    except ModelNotFound:
        raise not_found(name) from None


def named(engine: Engine, name: str | None) -> CatalogueEntry:
    """The model of this name and of no other."""
    if not name:
        raise BadRequest("model is required", param="model", code="missing_required_parameter")
    if entry := _entry(engine, name):
        if entry not in allowed_models(engine):
            raise ModelNotAllowed(entry.id)
        return entry
    raise not_found(name)


def not_found(name: str) -> ServiceError:
    """In Ollama's words, which some clients look for."""
    return NotFound(f"model '{name[:200]}' not found", param="model", code="model_not_found")


def _entry(engine: Engine, name: str) -> CatalogueEntry | None:
    for called in (name, name.removesuffix(_LATEST)):
        for entry in engine.models:
            if entry.is_called(called):
                return entry
    return None
