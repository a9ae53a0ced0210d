"""`GET /v1/models` in Anthropic's shape, for clients that send `anthropic-version`."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import Scope

from tis.engine.engine import Engine
from tis.engine.errors import ModelNotFound
from tis.engine.models.catalogue import CatalogueEntry
from tis.errors import BadRequest
from tis.http.anthropic_errors import REQUEST_ID_HEADER, VERSION_HEADER
from tis.http.dependencies import EngineDep
from tis.observability.request_log import current_request_id
from tis.openai_api.routes.models import allowed_models


class AnthropicRoute(APIRoute):
    """Leaves clients of OpenAI's API to the routes behind it."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or VERSION_HEADER not in Headers(scope=scope):
            return Match.NONE, {}
        return super().matches(scope)


router = APIRouter(route_class=AnthropicRoute, include_in_schema=False)

ModelId = Annotated[str | None, Query(max_length=512)]


@router.get("/models")
async def list_anthropic_models(
    engine: EngineDep,
    after_id: ModelId = None,
    before_id: ModelId = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> Response:
    """List the models that answer messages."""
    entries = [entry for entry in allowed_models(engine) if entry.task == "chat"]
    if after_id is not None:
        entries = entries[_place(entries, after_id, "after_id") + 1 :]
    if before_id is not None:
        entries = entries[: _place(entries, before_id, "before_id")]
    page = entries[-limit:] if before_id is not None and after_id is None else entries[:limit]
    return _answer(
        {
            "data": [await _described(engine, entry) for entry in page],
            "has_more": len(page) < len(entries),
            "first_id": page[0].id if page else None,
            "last_id": page[-1].id if page else None,
        }
    )


@router.get("/models/{model_id:path}")
async def get_anthropic_model(engine: EngineDep, model_id: Annotated[str, Path(max_length=512)]) -> Response:
    """Retrieve a model by its id."""
    for entry in allowed_models(engine):
        if entry.is_called(model_id):
            return _answer(await _described(engine, entry))
    raise ModelNotFound(model_id[:200])


def _answer(body: dict[str, Any]) -> Response:
    return JSONResponse(body, headers={REQUEST_ID_HEADER: current_request_id()})


def _place(entries: list[CatalogueEntry], model_id: str, param: str) -> int:
    for number, entry in enumerate(entries):
        if entry.is_called(model_id):
            return number
    raise BadRequest(f"{param}: there is no model {model_id[:200]!r}.", param=param)


async def _described(engine: Engine, entry: CatalogueEntry) -> dict[str, Any]:
    known = await engine.describe(entry.id)
    created_at = datetime.fromtimestamp(int(known.weights_time or engine.opened_at), UTC)
    return {
        "type": "model",
        "id": entry.id,
        "display_name": entry.id,
        "created_at": created_at.isoformat().replace("+00:00", "Z"),
        "lifecycle": "active",
        "max_input_tokens": known.context_length,
        "max_tokens": known.context_length,
    }
