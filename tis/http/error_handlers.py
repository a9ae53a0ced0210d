"""Exception handlers: every exception becomes an HTTP response here, in the format of the API that was called."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette._utils import get_route_path
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tis.errors import BadRequest, NotFound, ServiceError, TooLarge, Unprocessable
from tis.http.anthropic_errors import anthropic_response, speaks_anthropic
from tis.observability.logs import log_exception
from tis.observability.request_facts import current_facts
from tis.observability.request_log import current_request_id
from tis.streaming.stores.store import StoreRefused

# A message may quote a long value of the request several times; the response must not grow with it.
_MAX_MESSAGE_CHARS = 1000
_MAX_VALIDATION_ERRORS = 20
KTP_PREFIX = "/ktp-ocr"
# Beginnings of the paths that speak as OpenAI does: `/v1`, and what other servers have beside it.
OPENAI_PATHS = (
    *("/v1/", "/embedding", "/rerank", "/score", "/load_model"),
    *("/tokenize", "/detokenize", "/props", "/slots"),
)
MCP_PATH = "/mcp"
OLLAMA_PREFIX = "/ollama"


def install_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(ServiceError, _on_service_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_exception)


def error_body(error: ServiceError) -> dict[str, dict[str, str | None]]:
    """OpenAI's error object: all four keys, always."""
    return {
        "error": {
            "message": error.message[:_MAX_MESSAGE_CHARS],
            "type": error.type,
            "param": error.param,
            "code": error.code,
        }
    }


def error_response(scope: Scope, error: ServiceError) -> JSONResponse:
    current_facts().error_code = error.code or error.type
    path = get_route_path(scope)
    if _is_below(path, MCP_PATH):
        return json_rpc_error(error)
    if speaks_anthropic(scope):
        return anthropic_response(scope, error)
    body: Mapping[str, Any] = {"detail": error.message[:_MAX_MESSAGE_CHARS]}
    if error.details:  # a page says it in its own language, with these numbers
        body = {**body, "code": error.code, **error.details}
    headers = error.headers
    if path == "/v1" or path.startswith(OPENAI_PATHS):
        body = error_body(error)
    elif _is_below(path, OLLAMA_PREFIX):
        body = {"error": error.message[:_MAX_MESSAGE_CHARS]}
    elif _is_below(path, KTP_PREFIX):
        body, headers = detail_body(error), {**headers, "Cache-Control": "no-store"}
    return JSONResponse(body, status_code=error.status, headers=headers)


def detail_body(error: ServiceError) -> dict[str, dict[str, Any]]:
    """The errors of `/ktp-ocr`."""
    code = "too_large" if isinstance(error, TooLarge) or error.code == TooLarge.code else error.code
    message = error.message[:_MAX_MESSAGE_CHARS]
    return {"detail": {"code": code, "message": message, "field": error.param, **error.details}}


def json_rpc_error(error: ServiceError, request_id: str | int | None = None) -> JSONResponse:
    """The errors of `/mcp`; without an id if the request was refused before it was read."""
    code = (
        _PARSE_ERROR if error.code == "invalid_json" else _INTERNAL_ERROR if error.status >= 500 else _INVALID_REQUEST
    )
    body = {"code": code, "message": error.message[:_MAX_MESSAGE_CHARS]}
    return JSONResponse(
        {"jsonrpc": "2.0", "id": request_id, "error": body}, status_code=error.status, headers=error.headers
    )


# Of JSON-RPC.
_PARSE_ERROR, _INVALID_REQUEST, _INTERNAL_ERROR = -32700, -32600, -32603


def _is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")


class BodyRejected(HTTPException):
    """Raised while a body is received: FastAPI reports any other exception there as unreadable JSON."""

    def __init__(self, error: ServiceError) -> None:
        super().__init__(error.status, error.message)
        self.error = error


class UnhandledErrorMiddleware:
    """Turns an exception that no handler caught into a 500, and logs where it was raised."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, _without_traceback(send))
            return
        started = False

        async def watching_send(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, watching_send)
        except Exception as error:
            log_exception("unhandled fault", error, current_request_id())
            if started:
                raise ConnectionAbortedError("the response had started and cannot be completed") from None
            await error_response(scope, internal_error())(scope, receive, send)


def _without_traceback(send: Send) -> Send:
    """Shortens the message of a start that the session store refused: the operator needs the reason, no traceback."""

    async def shortening_send(message: Message) -> None:
        if message["type"] == "lifespan.startup.failed":
            name, _, reason = message["message"].strip().rpartition("\n")[2].partition(": ")
            if name.endswith(StoreRefused.__name__):
                message = {**message, "message": f"Cannot start: {reason}"}
        await send(message)

    return shortening_send


def internal_error() -> ServiceError:
    return ServiceError(
        f"The server failed on this request. It is logged under request id {current_request_id()}.",
        code="internal_error",
    )


async def _on_service_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ServiceError)
    return error_response(request.scope, error)


async def _on_validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    if get_route_path(request.scope).startswith("/api/"):
        return JSONResponse({"detail": _fastapi_detail(error.errors())}, status_code=422)
    known: ServiceError = bad_request_from(error.errors())
    if _is_below(get_route_path(request.scope), KTP_PREFIX):
        known = Unprocessable(known.message, param=known.param, code="invalid_parameter")
    return error_response(request.scope, known)


def _fastapi_detail(problems: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """FastAPI's own format, without the `input` values: those may be long or private."""
    return [
        {
            "type": one["type"],
            "loc": [str(part)[:200] for part in one["loc"]],
            "msg": str(one["msg"])[:_MAX_MESSAGE_CHARS],
        }
        for one in problems[:_MAX_VALIDATION_ERRORS]
    ]


async def _on_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    path, method = get_route_path(request.scope), request.method
    known: ServiceError
    if isinstance(error, BodyRejected):
        known = error.error
    elif error.status_code == 404:
        known = NotFound(f"Unknown path: {method} {path[:200]}. GET /docs lists what there is.", code="unknown_url")
    elif error.status_code == 405:
        known = BadRequest(f"{method} is not allowed on {path[:200]}.", code="method_not_allowed")
    elif error.status_code == 413:
        known = BadRequest(
            "The body is larger than this route accepts (MAX_BODY_MB limits all routes).",
            code="body_too_large",
        )
    elif error.status_code == 400:
        is_form = _is_below(path, KTP_PREFIX) and not path.endswith("/check")
        what = "the form of a picture" if is_form else "JSON"
        known = BadRequest(f"The body could not be read as {what}.", code="invalid_json")
    else:
        known = BadRequest(str(error.detail), code="http_error")
    response = error_response(request.scope, known)
    response.status_code = error.status_code
    response.headers.update(error.headers or {})
    return response


def bad_request_from(problems: Sequence[Mapping[str, Any]]) -> BadRequest:
    """Reports the first of pydantic's errors, with the dotted path of the field as `param`."""
    problem = _deepest(problems)
    kind, message = problem["type"], str(problem["msg"])
    if kind == "json_invalid":
        where = problem["loc"][-1]
        return BadRequest(f"The body is not valid JSON (at character {where}).", code="invalid_json")
    path = _dotted(problem["loc"])
    if not path:
        return BadRequest("The body must be a JSON object, sent with Content-Type: application/json.")
    param = ".".join(path)[:200]
    code = "missing_required_parameter" if kind == "missing" else "invalid_type" if "type" in kind else None
    return BadRequest(f"{param}: {message.removeprefix('Value error, ')}", param=param, code=code)


def _deepest(problems: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Of a union's branches, picks the error with the deepest path: the value matched that branch best."""
    first = _dotted(problems[0]["loc"])
    of_same_value = [problem for problem in problems if _dotted(problem["loc"])[: len(first)] == first]
    return max(of_same_value, key=lambda one: (len(_dotted(one["loc"])), not one["type"].endswith("_type")))


def _dotted(location: Sequence[str | int]) -> list[str]:
    """Drops the first part ("body", "query") and the names of union branches, which are no fields."""
    names = [str(part) for part in location[1:]]
    if location[0] == "header":  # whose name begins with a capital letter, too
        return names
    return [name for name in names if name not in _UNION_BRANCHES and "[" not in name and not name[:1].isupper()]


_UNION_BRANCHES = frozenset({"str", "int", "float", "constrained-str", "constrained-int", "constrained-float"})
