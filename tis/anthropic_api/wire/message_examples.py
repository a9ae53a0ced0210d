"""Example requests and answers of the Messages API for /docs."""

from typing import Any

from tis.openai_api.wire.examples import Responses, ok_example

_USAGE = {
    "input_tokens": 14,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 9,
    "output_tokens_details": {"thinking_tokens": 0},
    "service_tier": "standard",
}
_WEATHER = {
    "name": "get_weather",
    "description": "Get the weather in a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
MESSAGE_REQUESTS: list[Any] = [
    {
        "model": "qwen-local",
        "max_tokens": 256,
        "system": "Answer in one sentence.",
        "messages": [{"role": "user", "content": "Halo! Siapa kamu?"}],
    },
    {
        "model": "qwen-local",
        "max_tokens": 256,
        "tools": [_WEATHER],
        "messages": [{"role": "user", "content": "What is the weather in Jakarta?"}],
    },
    {
        "model": "qwen-local",
        "max_tokens": 256,
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What colour is this picture?"},
                    {"type": "image", "source": {"type": "url", "url": "https://example.com/red.png"}},
                ],
            }
        ],
    },
]
_MESSAGE = {
    "id": "msg_3f0e9f6ed4d24cbb9f1c1f0a",
    "type": "message",
    "role": "assistant",
    "model": "demo",
    "content": [{"type": "text", "text": "Halo! Ada yang bisa saya bantu?"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": _USAGE,
}
_STREAM = (
    'id: sess-1:0\nretry: 1500\nevent: message_start\ndata: {"type":"message_start","message":{"id":"msg_1",'
    '"type":"message","role":"assistant","model":"demo","content":[],"stop_reason":null,"stop_sequence":null,'
    '"usage":{"input_tokens":14,"output_tokens":0}}}\n\n'
    'id: sess-1:1\nevent: content_block_start\ndata: {"type":"content_block_start","index":0,'
    '"content_block":{"type":"text","text":""}}\n\n'
    'id: sess-1:2\nevent: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
    '"delta":{"type":"text_delta","text":"Halo!"}}\n\n'
    'id: sess-1:3\nevent: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
    'id: sess-1:4\nevent: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn",'
    '"stop_sequence":null},"usage":{"input_tokens":14,"output_tokens":9}}\n\n'
    'id: sess-1:5\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'
)


def message_error_example(message: str, kind: str, code: str, param: str | None = None) -> dict[str, Any]:
    details = {"error_code": code, **({"param": param} if param else {})}
    example = {
        "type": "error",
        "error": {"type": kind, "message": message, "details": details},
        "request_id": "req-3f0e9f6ed4d24cbb9f1c1f0a7a9c7f9e",
    }
    return {"description": message, "content": {"application/json": {"example": example}}}


_ERRORS: Responses = {
    400: message_error_example(
        "max_tokens: Field required", "invalid_request_error", "missing_required_parameter", "max_tokens"
    ),
    404: message_error_example(
        "The model `gpt-9` does not exist or you do not have access to it.",
        "not_found_error",
        "model_not_found",
        "model",
    ),
    429: message_error_example(
        "The queue for model `demo` is full (64 waiting). Retry later.", "rate_limit_error", "rate_limit_exceeded"
    ),
    503: message_error_example(
        "demo is still loading (reading the weights). Try again soon.", "overloaded_error", "model_loading"
    ),
}
MESSAGE_RESPONSES: Responses = {
    200: {
        "description": "The message: JSON, or a stream of events if `stream` is true",
        "content": {"application/json": {"example": _MESSAGE}, "text/event-stream": {"example": _STREAM}},
    },
    **_ERRORS,
}
COUNT_RESPONSES: Responses = {200: ok_example({"input_tokens": 14}), **_ERRORS}
