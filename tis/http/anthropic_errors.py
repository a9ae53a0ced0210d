"""The errors of the paths that speak as Anthropic's API does."""

from typing import Any

from fastapi.responses import JSONResponse
from starlette._utils import get_route_path
from starlette.datastructures import Headers
from starlette.types import Scope

from tis.errors import ServiceError, TooLarge
from tis.observability.request_log import current_request_id

MESSAGES_PATH = "/v1/messages"
MODELS_PATH = "/v1/models"
VERSION_HEADER = "anthropic-version"
REQUEST_ID_HEADER = "request-id"  # Anthropic's SDKs read this one
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
_MAX_MESSAGE_CHARS = 1000
_CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
_TOO_LONG = "prompt is too long: "


def speaks_anthropic(scope: Scope) -> bool:
    """Whether the client of this request reads Anthropic's errors. The paths of models are of two APIs."""
    path = get_route_path(scope)
    if _is_at(path, MESSAGES_PATH):
        return True
    # A request that is refused before its headers are read has none.
    return _is_at(path, MODELS_PATH) and VERSION_HEADER in Headers(raw=scope.get("headers", []))


def anthropic_error(error: ServiceError) -> dict[str, Any]:
    """The error object. `details` is where Anthropic's SDKs look for a code that names the cause."""
    details = {"error_code": error.code, "param": error.param, **error.details}
    # By this beginning, clients know that they have to shorten the conversation.
    is_new = error.code == _CONTEXT_LENGTH_EXCEEDED and not error.message.startswith(_TOO_LONG)  # not recorded
    before = _TOO_LONG if is_new else ""
    found = {"type": anthropic_type(error), "message": f"{before}{error.message}"[:_MAX_MESSAGE_CHARS]}
    return {**found, "details": {name: value for name, value in details.items() if value is not None}}


def anthropic_type(error: ServiceError) -> str:
    if error.code == TooLarge.code:  # as FastAPI raises it, it is no TooLarge
        return _TYPES[413]
    return _TYPES.get(error.status, "api_error" if error.type == ServiceError.type else "invalid_request_error")


def anthropic_response(scope: Scope, error: ServiceError) -> JSONResponse:
    request_id = scope.get(REQUEST_ID_HEADER) or current_request_id()
    body = {"type": "error", "error": anthropic_error(error), "request_id": request_id}
    return JSONResponse(body, status_code=error.status, headers={**error.headers, REQUEST_ID_HEADER: request_id})


def _is_at(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")
