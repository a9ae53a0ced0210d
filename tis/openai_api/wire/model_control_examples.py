"""Examples of loading and unloading models, for /docs."""

import json
from typing import Any

from tis.openai_api.wire.examples import Responses, error_example, ok_example

_MODEL = "demo@main"
_EVENTS: list[dict[str, Any]] = [
    {"status": "loading", "model": _MODEL, "stage": "processor"},
    {"status": "loading", "model": _MODEL, "stage": "weights", "progress": {"current": 12, "total": 40}},
    {"status": "ready", "model": _MODEL, "cached": False},
]
_NOT_ADMIN = error_example(
    "Only clients on the computer of the server may do that, as it has no ADMIN_KEY.",
    "invalid_request_error",
    None,
    "forbidden",
)
_UNKNOWN = error_example(
    "The model `gpt-9` does not exist or you do not have access to it.",
    "invalid_request_error",
    "model",
    "model_not_found",
)
LOAD_RESPONSES: Responses = {
    200: {
        "description": "Events until the model is ready, or `status` is `error`",
        "content": {"text/event-stream": {"example": "".join(f"data: {json.dumps(one)}\n\n" for one in _EVENTS)}},
    },
    403: _NOT_ADMIN,
    404: _UNKNOWN,
}
UNLOAD_RESPONSES: Responses = {
    200: ok_example({"id": "demo", "object": "model", "status": "unloaded"}),
    403: _NOT_ADMIN,
    404: _UNKNOWN,
    409: error_example(
        "The model `demo` is in use or being loaded. Try again later.",
        "invalid_request_error",
        "model",
        "model_in_use",
    ),
}
