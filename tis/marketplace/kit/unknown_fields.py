"""Unknown fields of bodies and unknown query parameters: refused, or ignored with a warning.

The routes of the documented contract (`DOCUMENTED`) ignore them and say so: in `warnings` of an object, in the header
`X-Warnings` of every response. All other routes answer 422, also to a parameter that is sent twice. Bodies of
those forbid unknown fields themselves, by `StrictBody`.
"""

import json
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, get_args, get_origin
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

DOCUMENTED = frozenset(
    {
        "POST /suppliers/register",
        "GET /suppliers",
        "GET /suppliers/{supplier_id}",
        "POST /suppliers/{supplier_id}/products",
        "PUT /products/{product_id}",
        "GET /products",
        "GET /products/search",
        "POST /users/register",
        "GET /users/{user_id}",
        "POST /chat/search",
    }
)
ATTRIBUTE_PREFIX = "attr."
# These read all parameters with this prefix, and several of one name.
_WITH_ATTRIBUTES = frozenset({"GET /products", "GET /products/search", "GET /products/facets", "POST /saved-searches"})
_MAX_FIELDS = 100  # of a body
_MAX_PARAMETERS = 100
_MAX_WARNINGS = 20
_MAX_NAME_CHARS = 100
# A character takes up to twelve bytes in a header, and many proxies refuse headers of more than 8 KB.
_MAX_IN_HEADER = 5
_MAX_HEADER_CHARS = 80


class StrictBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _require_few_fields(cls, data: Any) -> Any:
        """Pydantic writes an error for each unknown field: 50 ms of the event loop for 9,000."""
        if isinstance(data, dict) and len(data) > _MAX_FIELDS:
            raise PydanticCustomError("too_long", "at most {limit} fields", {"limit": _MAX_FIELDS})
        return data


class CheckedRoute(APIRoute):
    """For `APIRouter(route_class=CheckedRoute)`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        parameters, lists = _query_names(self.dependant), _list_names(self.dependant)
        [method] = self.methods or {""}
        own_prefix = ATTRIBUTE_PREFIX if f"{method} {self.path}" in _WITH_ATTRIBUTES else None
        if f"{method} {self.path}" not in DOCUMENTED:

            async def refuse_unknown(request: Request) -> Response:
                _require_few_parameters(request)
                names = _names(request, own_prefix)
                problems = [_problem(name) for name in _unknown_parameters(names, parameters)]
                if problems := problems or [_repetition(name) for name in _repeated_parameters(names, lists)]:
                    raise RequestValidationError(problems)
                return _kept_by_nobody(request, await handle(request))

            return refuse_unknown
        fields = _body_names(self)

        async def warn_of_unknown(request: Request) -> Response:
            _require_few_parameters(request)
            response = _kept_by_nobody(request, await handle(request))
            unknown = [
                f"query parameter {name!r}" for name in _unknown_parameters(_names(request, own_prefix), parameters)
            ]
            if fields:
                unknown += [f"field {name!r}" for name in await _body_keys(request) if name not in fields]
            return _with_warnings(response, unknown[:_MAX_WARNINGS]) if unknown else response

        return warn_of_unknown


def _kept_by_nobody(request: Request, response: Response) -> Response:
    """Where `no_store` is a dependency of the route."""
    if getattr(request.state, "is_private", False):
        response.headers["Cache-Control"] = "no-store"
    return response


def _require_few_parameters(request: Request) -> None:
    if request.scope["query_string"].count(b"&") >= _MAX_PARAMETERS:
        message = f"At most {_MAX_PARAMETERS} parameters"
        raise RequestValidationError([{"type": "too_long", "loc": ("query",), "msg": message, "input": None}])


def _names(request: Request, own_prefix: str | None) -> Counter[str]:
    """How often each parameter was sent; without those that the route reads by itself."""
    names = Counter(name for name, _ in request.query_params.multi_items())
    return Counter({name: count for name, count in names.items() if not (own_prefix and name.startswith(own_prefix))})


def _unknown_parameters(names: Iterable[str], known: frozenset[str]) -> list[str]:
    return [name[:_MAX_NAME_CHARS] for name in names if name not in known]


def _repeated_parameters(sent: Counter[str], lists: frozenset[str]) -> list[str]:
    """FastAPI takes the last: `dry_run=1&dry_run=0` would import. Of `brand=asus&brand=hp` it takes both."""
    names = Counter({name: count for name, count in sent.items() if name not in lists})
    return [name for name, count in names.items() if count > 1]


def _repetition(name: str) -> dict[str, Any]:
    return {"type": "repeated", "loc": ("query", name), "msg": "Send this parameter once", "input": None}


def _problem(name: str) -> dict[str, Any]:
    """As FastAPI reports an unknown field of a body."""
    return {"type": "extra_forbidden", "loc": ("query", name), "msg": "Extra inputs are not permitted", "input": None}


async def _body_keys(request: Request) -> list[str]:
    # The route has read it, so it is an object. Starlette keeps the bytes.
    return [name[:_MAX_NAME_CHARS] for name in json.loads(await request.body())]


def _with_warnings(response: Response, unknown: list[str]) -> Response:
    warnings = [f"Unknown {one} was ignored." for one in unknown]
    short = "; ".join(warning[:_MAX_HEADER_CHARS] for warning in warnings[:_MAX_IN_HEADER])
    response.headers["X-Warnings"] = quote(short, safe=" ;'")
    if not getattr(response, "body", b""):  # a stream says it in the header alone
        return response
    body = json.loads(bytes(response.body))
    if not isinstance(body, dict):
        return response
    headers = {name: value for name, value in response.headers.items() if name != "content-length"}
    return JSONResponse({**body, "warnings": warnings}, response.status_code, headers, background=response.background)


def _query_names(dependant: Dependant) -> frozenset[str]:
    own = {parameter.alias for parameter in dependant.query_params}
    return frozenset(own.union(*(_query_names(inner) for inner in dependant.dependencies)))


def _list_names(dependant: Dependant) -> frozenset[str]:
    own = {parameter.alias for parameter in dependant.query_params if _is_list(parameter.field_info.annotation)}
    return frozenset(own.union(*(_list_names(inner) for inner in dependant.dependencies)))


def _is_list(annotation: Any) -> bool:
    """`list[str] | None` is one, too."""
    return any(get_origin(one) is list for one in (annotation, *get_args(annotation)))


def _body_names(route: APIRoute) -> frozenset[str]:
    """The fields of the one model that the body is, or nothing for a route without a body."""
    model = route.body_field.field_info.annotation if route.body_field else None
    return frozenset(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else frozenset()
