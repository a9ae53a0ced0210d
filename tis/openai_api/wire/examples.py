"""Example answers for /docs."""

from typing import Any

_USAGE = {
    "prompt_tokens": 14,
    "completion_tokens": 9,
    "total_tokens": 23,
    "prompt_tokens_details": {"cached_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0},
}
_FILE = "class User:\n    name: str\n    mail: str\n"
CHAT_REQUESTS: list[Any] = [
    {
        "model": "qwen-local",
        "messages": [{"role": "user", "content": "Halo! Siapa kamu?"}],
        "max_tokens": 256,
        "stream": False,
    },
    {
        "model": "qwen-local",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What colour is this picture?"},
                    {"type": "image_url", "image_url": {"url": "https://example.com/red.png"}},
                ],
            }
        ],
    },
    {
        "model": "qwen-local",
        "messages": [{"role": "user", "content": f"Rename mail to email. Answer with the file only.\n{_FILE}"}],
        "prediction": {"type": "content", "content": _FILE},
    },
    {
        "model": "qwen-local",
        "messages": [{"role": "user", "content": "What is the weather in Jakarta?"}],
        "tools": [
            {
                "type": "mcp",
                "server_label": "weather",
                "server_url": "https://mcp.example.com/mcp",
                "allowed_tools": ["get_weather"],
                "require_approval": "never",
            }
        ],
    },
]
_COMPLETION = {
    "id": "chatcmpl-3f0e9f6ed4d24cbb9f1c1f0a7a9c7f9e",
    "object": "chat.completion",
    "created": 1790000000,
    "model": "demo",
    "system_fingerprint": None,
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Halo! Ada yang bisa saya bantu?", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": _USAGE,
}
_STREAM = (
    'id: sess-1:0\nretry: 1500\ndata: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,'
    '"model":"demo","system_fingerprint":null,"choices":[{"index":0,"delta":{"role":"assistant","content":""},'
    '"logprobs":null,"finish_reason":null}]}\n\n'
    'id: sess-1:1\ndata: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,'
    '"model":"demo","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":"Halo!"},'
    '"logprobs":null,"finish_reason":null}]}\n\n'
    'id: sess-1:2\ndata: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,'
    '"model":"demo","system_fingerprint":null,"choices":[{"index":0,"delta":{},"logprobs":null,'
    '"finish_reason":"stop"}]}\n\n'
    "id: sess-1:3\ndata: [DONE]\n\n"
)
_MODEL = {
    "id": "demo",
    "object": "model",
    "created": 1790000000,
    "owned_by": "local",
    "max_model_len": 32768,
    "modalities": {"input": ["text", "image", "video"], "output": ["text"]},
    "aliases": ["gpt-4o-mini"],
    "parent": None,
    "status": "loaded",
    "capabilities": ["chat", "vision", "tools", "reasoning", "structured_outputs"],
}

Responses = dict[int | str, dict[str, Any]]


def error_example(message: str, kind: str, param: str | None, code: str) -> dict[str, Any]:
    example = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return {"description": message, "content": {"application/json": {"example": example}}}


def ok_example(example: Any) -> dict[str, Any]:
    return {"description": "OK", "content": {"application/json": {"example": example}}}


_BAD_REQUEST = error_example(
    "temperature must be at least 0 and at most 2, got 9.", "invalid_request_error", "temperature", "invalid_value"
)
_NOT_FOUND = error_example(
    "The model `gpt-9` does not exist or you do not have access to it.",
    "invalid_request_error",
    "model",
    "model_not_found",
)
_QUEUE_FULL = error_example(
    "The queue for model `demo` is full (64 waiting). Retry later.", "rate_limit_error", None, "rate_limit_exceeded"
)
_LOADING = error_example(
    "demo is still loading (reading the weights). Try again soon.", "server_error", None, "model_loading"
)

CHAT_RESPONSES: Responses = {
    200: {
        "description": "The answer: JSON, or a stream of events if `stream` is true",
        "content": {"application/json": {"example": _COMPLETION}, "text/event-stream": {"example": _STREAM}},
    },
    400: _BAD_REQUEST,
    404: _NOT_FOUND,
    429: _QUEUE_FULL,
    503: _LOADING,
}
_SESSION_UNKNOWN = error_example(
    "There is no session 'mysession123'.", "invalid_request_error", "session_id", "session_not_found"
)
_GAP = error_example("Event 7 is no longer kept.", "invalid_request_error", "last_event_id", "replay_gap")
_READ_TOKEN = "5183.0.q0Yy0W5m3rG0b1lqk2mYw4n8xkqv5m4c3o7Zt1a9B2s"
STREAM_RESPONSES: Responses = {
    200: {"description": "The events after the cursor", "content": {"text/event-stream": {"example": _STREAM}}},
    204: {"description": "The answer is over and the cursor names its last event: there are no more events"},
    404: _SESSION_UNKNOWN,
    410: _GAP,
}
READ_TOKEN_RESPONSES: Responses = {
    200: ok_example(
        {
            "session_id": "mysession123",
            "read_token": _READ_TOKEN,
            "url": f"/v1/stream/mysession123?read_token={_READ_TOKEN}",
            "expires_in": 600,
        }
    ),
    404: _SESSION_UNKNOWN,
}
MODELS_RESPONSES: Responses = {200: ok_example({"object": "list", "data": [_MODEL]})}
MODEL_RESPONSES: Responses = {200: ok_example(_MODEL), 404: _NOT_FOUND}
CANCEL_RESPONSES: Responses = {200: ok_example({"ok": True, "session_id": "mysession123", "status": "cancelled"})}

_RESPONSE_ID = "resp_3f0e9f6ed4d24cbb9f1c1f0a7a9c7f9e"
_CONVERSATION_ID = "conv_3f0e9f6ed4d24cbb9f1c1f0a7a9c7f9e"
_ANSWER_ITEM = {
    "id": "msg_3f0e9f6ed4d24cbb9f1c1f0a7a9c7f9e_0",
    "type": "message",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Halo!", "annotations": [], "logprobs": []}],
}
_INPUT_ITEM = {
    "id": "msg_3f0e9f6ed4d24cbb9f1c1f0a7a9c7f9e_in_0",
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "Halo! Siapa kamu?"}],
    "status": "completed",
}
_RESPONSE: dict[str, Any] = {
    "id": _RESPONSE_ID,
    "object": "response",
    "created_at": 1790000000,
    "completed_at": 1790000002,
    "status": "completed",
    "background": False,
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "conversation": None,
    "previous_response_id": None,
    "model": "demo",
    "output": [_ANSWER_ITEM],
    "parallel_tool_calls": True,
    "tools": [],
    "tool_choice": "auto",
    "max_tool_calls": None,
    "text": {"format": {"type": "text"}},
    "reasoning": {"effort": None, "summary": None},
    "temperature": 0.7,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "max_output_tokens": None,
    "truncation": "disabled",
    "usage": {
        "input_tokens": 14,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 23,
    },
    "user": None,
    "safety_identifier": None,
    "prompt_cache_key": None,
    "service_tier": "default",
    "store": True,
    "metadata": {},
}
_RESPONSE_STREAM = (
    f"id: {_RESPONSE_ID}:0\nretry: 1500\nevent: response.created\n"
    f'data: {{"type":"response.created","response":{{"id":"{_RESPONSE_ID}",'
    '"object":"response","status":"in_progress","output":[]},"sequence_number":0}\n\n'
    f"id: {_RESPONSE_ID}:4\nevent: response.output_text.delta\n"
    'data: {"type":"response.output_text.delta","item_id":"msg_3f0e9f6ed4d24cbb9f1c1f0a7a9c7f9e_0","output_index":0,'
    '"content_index":0,"delta":"Halo!","logprobs":[],"sequence_number":4}\n\n'
)
_LIST = {"object": "list", "first_id": _INPUT_ITEM["id"], "last_id": _INPUT_ITEM["id"], "has_more": False}
_CONVERSATION = {
    "id": _CONVERSATION_ID,
    "object": "conversation",
    "created_at": 1790000000,
    "metadata": {"topic": "demo"},
}
_NO_RESPONSE = error_example(
    f"Response with id '{_RESPONSE_ID}' not found.", "invalid_request_error", "response_id", "not_found"
)
_NO_CONVERSATION = error_example(
    f"Conversation with id '{_CONVERSATION_ID}' not found.", "invalid_request_error", "conversation_id", "not_found"
)
_ANSWERS: dict[str, Any] = {
    "content": {"application/json": {"example": _RESPONSE}, "text/event-stream": {"example": _RESPONSE_STREAM}},
}

CREATE_RESPONSES: Responses = {
    200: {"description": "The response: JSON, or a stream of events if `stream` is true", **_ANSWERS},
    400: error_example(
        f"Previous response with id '{_RESPONSE_ID}' not found.",
        "invalid_request_error",
        "previous_response_id",
        "previous_response_not_found",
    ),
    404: error_example(
        f"Conversation with id '{_CONVERSATION_ID}' not found.", "invalid_request_error", "conversation", "not_found"
    ),
    409: error_example(
        "Another response of this conversation is running. Wait for its end, or cancel it.",
        "invalid_request_error",
        "conversation",
        "conversation_locked",
    ),
    424: error_example(
        "The tools of the MCP server 'weather' could not be listed. It did not answer within 30 s.",
        "server_error",
        None,
        "mcp_failed",
    ),
}
INPUT_TOKENS_RESPONSES: Responses = {
    200: ok_example({"object": "response.input_tokens", "input_tokens": 14}),
    **{status: CREATE_RESPONSES[status] for status in (400, 404, 424)},
}
COMPACT_RESPONSES: Responses = {
    200: ok_example(
        {
            "id": _RESPONSE_ID,
            "object": "response.compaction",
            "created_at": 1790000000,
            "output": [
                _INPUT_ITEM,
                {
                    "id": "cmp_3f0e9f6ed4d24cbb9f1c1f0a7a9c7f9e_1",
                    "type": "compaction",
                    "encrypted_content": "tis1.eyJj",
                },
            ],
            "usage": {
                "input_tokens": 139,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": 46,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 185,
            },
        }
    ),
    **{status: CREATE_RESPONSES[status] for status in (400,)},
}
RETRIEVE_RESPONSES: Responses = {
    200: {"description": "The response as it is now, or its events if `stream` is true", **_ANSWERS},
    204: {"description": "The response is over and `Last-Event-ID` names its last event: there are no more events"},
    404: _NO_RESPONSE,
    410: error_example("Event 7 is no longer kept.", "invalid_request_error", "last_event_id", "replay_gap"),
}
DELETE_RESPONSES: Responses = {
    200: ok_example({"id": _RESPONSE_ID, "object": "response", "deleted": True}),
    404: _NO_RESPONSE,
}
CANCEL_RESPONSE_RESPONSES: Responses = {
    200: ok_example({**_RESPONSE, "status": "cancelled", "completed_at": None, "background": True}),
    404: _NO_RESPONSE,
}
INPUT_ITEMS_RESPONSES: Responses = {200: ok_example({**_LIST, "data": [_INPUT_ITEM]}), 404: _NO_RESPONSE}
CONVERSATION_RESPONSES: Responses = {200: ok_example(_CONVERSATION), 404: _NO_CONVERSATION}
CONVERSATION_DELETED_RESPONSES: Responses = {
    200: ok_example({"id": _CONVERSATION_ID, "object": "conversation.deleted", "deleted": True}),
    404: _NO_CONVERSATION,
}
ITEMS_RESPONSES: Responses = {200: ok_example({**_LIST, "data": [_INPUT_ITEM]}), 404: _NO_CONVERSATION}
ITEM_RESPONSES: Responses = {200: ok_example(_INPUT_ITEM), 404: _NO_CONVERSATION}
