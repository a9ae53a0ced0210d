"""POST /v1/decisions: typed questions about an input, answered with probabilities and without any text."""

from fastapi import APIRouter, Request, Response

from tis.http.admission import ticket_of
from tis.http.dependencies import OwnerDep
from tis.http.json_bodies import encode_sliced
from tis.http.scanned_route import ScannedBodyRoute, is_large_body
from tis.openai_api.routes.embeddings import pooled
from tis.openai_api.routes.models import OptionsDep, ServicesDep, served_model
from tis.openai_api.wire.begin import cache_salt_of
from tis.openai_api.wire.decide import DecisionMaking
from tis.openai_api.wire.decision_examples import DECISION_RESPONSES
from tis.openai_api.wire.decision_request import DecisionRequest
from tis.openai_api.wire.ignored import name_ignored

router = APIRouter(route_class=ScannedBodyRoute)

_NO_EFFECT = ("prompt_cache_key", "prompt_cache_options", "safety_identifier")


@router.post("/decisions", response_model=None, responses=DECISION_RESPONSES)
async def create_decision(
    body: DecisionRequest, request: Request, services: ServicesDep, owner: OwnerDep, options: OptionsDep
) -> Response:
    """Decide predicates, choices and scores about an input: one pass of the model for each, and no text.

    The answer to a question does not depend on the other questions. `confidence` is 0 if all options are equally
    likely, and 1 if one of them is certain; `score` is the mean of the levels, which count from 0.
    """
    body.check()
    model_id = served_model(services.engine, body.model, options.strict_model)
    making = DecisionMaking(
        body,
        services,
        model_id,
        ticket_of(request),
        cache_salt=cache_salt_of(body, owner),
        is_large=is_large_body(request),
    )
    answer = await pooled(
        request, services.engine, making.decide(), encode_sliced, lambda made: len(made["answers"]) > 16
    )
    return await name_ignored(answer, request, body, services.engine, model_id, _NO_EFFECT)
