"""What the OpenAPI description says about errors: those that any operation may answer, each in the shape of its API."""

from collections.abc import Mapping
from typing import Any

from tis.http.anthropic_errors import MESSAGES_PATH
from tis.http.error_handlers import KTP_PREFIX, MCP_PATH, OLLAMA_PREFIX, OPENAI_PATHS

_TEXT, _TEXT_OR_NULL = {"type": "string"}, {"type": ["string", "null"]}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


_SCHEMAS: Mapping[str, dict[str, Any]] = {
    "OpenAIError": _object(
        error=_object(message=_TEXT, type=_TEXT, param=_TEXT_OR_NULL, code=_TEXT_OR_NULL),
    ),
    "AnthropicError": _object(
        type={"const": "error"},
        error=_object(type=_TEXT, message=_TEXT, details={"type": "object"}),
        request_id=_TEXT_OR_NULL,
    ),
    "OllamaError": _object(error=_TEXT),
    "CardError": _object(detail=_object(code=_TEXT_OR_NULL, message=_TEXT, field=_TEXT_OR_NULL)),
    "JsonRpcError": _object(
        jsonrpc={"const": "2.0"},
        id={"type": ["string", "integer", "null"]},
        error=_object(code={"type": "integer"}, message=_TEXT),
    ),
    "DetailError": {
        "type": "object",
        "properties": {
            "detail": {
                "anyOf": [
                    {"type": "string", "description": "what is wrong"},
                    {"type": "array", "items": _object(type=_TEXT, loc={"type": "array", "items": _TEXT}, msg=_TEXT)},
                ]
            },
            "code": {
                "type": "string",
                "description": "of some conflicts, to say them in another language; their numbers stand beside it",
            },
        },
        "required": ["detail"],
    },
}
_NO_ERRORS = ("/live", "/ready", "/health")
_VALIDATION = "HTTPValidationError"  # FastAPI's own: no API here answers in exactly this shape


def describe_errors(description: dict[str, Any]) -> dict[str, Any]:
    """Adds `4XX` and `503` to each operation, and the shape to each error that it names; changes its argument."""
    schemas = description.setdefault("components", {}).setdefault("schemas", {})
    for path, methods in description["paths"].items():
        if path in _NO_ERRORS:
            continue
        name = _shape_of(path)
        schemas[name] = _SCHEMAS[name]
        content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
        for operation in methods.values():
            responses = operation["responses"]
            if _is_of_fastapi(responses.get("422")):
                del responses["422"]
            for status, response in responses.items():
                if status[0] in "45" and not _json_of(response).get("schema"):
                    response["content"] = {"application/json": {**_json_of(response), **content["application/json"]}}
            responses["4XX"] = {"description": _ANY_REFUSAL, "content": content}
            responses.setdefault("503", {"description": _BUSY, "content": content})
    for name in (_VALIDATION, "ValidationError"):
        schemas.pop(name, None)
    return description


_ANY_REFUSAL = (
    "Refused: the request is wrong (400, 422), has no valid key (401), may not (403), is too large (413), "
    "or is one too many (429, with `Retry-After`)."
)
_BUSY = "The server starts, ends, or cannot reach what it needs. Retry later."


def _shape_of(path: str) -> str:
    if path.startswith(MESSAGES_PATH):
        return "AnthropicError"
    if path.startswith(OPENAI_PATHS):
        return "OpenAIError"
    for prefix, name in ((OLLAMA_PREFIX, "OllamaError"), (KTP_PREFIX, "CardError"), (MCP_PATH, "JsonRpcError")):
        if path.startswith(prefix):
            return name
    return "DetailError"


def _is_of_fastapi(response: Mapping[str, Any] | None) -> bool:
    schema = _json_of(response or {}).get("schema", {})
    return str(schema.get("$ref", "")).endswith(f"/{_VALIDATION}")


def _json_of(response: Mapping[str, Any]) -> dict[str, Any]:
    return dict(response.get("content", {}).get("application/json", {}))
