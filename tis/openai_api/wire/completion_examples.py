"""Example requests and answers of text completions for /docs."""

from typing import Any

from tis.openai_api.wire.examples import Responses, error_example, ok_example

COMPLETION_REQUESTS: list[Any] = [
    {"model": "qwen-local", "prompt": "Ibu kota Indonesia adalah", "max_tokens": 16, "temperature": 0},
    {"model": "qwen-local", "prompt": ["Satu, dua,", "Un, deux,"], "max_tokens": 8, "n": 2},
    {"model": "qwen-local", "prompt": "Jakarta adalah ibu kota", "echo": True, "logprobs": 1, "max_tokens": 0},
]
_USAGE = {
    "prompt_tokens": 5,
    "completion_tokens": 2,
    "total_tokens": 7,
    "prompt_tokens_details": {"cached_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0},
}
_COMPLETION = {
    "id": "cmpl-3f0e9f6ed4d24cbb9f1c1f0a7a9c7f9e",
    "object": "text_completion",
    "created": 1790000000,
    "model": "demo",
    "system_fingerprint": None,
    "choices": [
        {
            "index": 0,
            "text": " Jakarta.",
            "logprobs": {
                "tokens": [" Jakarta", "."],
                "token_logprobs": [-0.21, -0.4],
                "top_logprobs": [{" Jakarta": -0.21}, {".": -0.4}],
                "text_offset": [0, 8],
            },
            "finish_reason": "stop",
        }
    ],
    "usage": _USAGE,
}
_HEAD = '{"id":"cmpl-1","object":"text_completion","created":1790000000,"model":"demo","system_fingerprint":null,'
_STREAM = (
    f'id: sess-1:0\nretry: 1500\ndata: {_HEAD}"choices":[{{"index":0,"text":" Jakarta.","logprobs":null,'
    '"finish_reason":null}]}\n\n'
    f'id: sess-1:1\ndata: {_HEAD}"choices":[{{"index":0,"text":"","logprobs":null,"finish_reason":"stop"}}]}}\n\n'
    "id: sess-1:2\ndata: [DONE]\n\n"
)
NO_MODEL = error_example(
    "The model `nobody` does not exist or you do not have access to it.",
    "invalid_request_error",
    "model",
    "model_not_found",
)
COMPLETION_RESPONSES: Responses = {
    200: {
        "description": "The answer: JSON, or a stream of events if `stream` is true",
        "content": {"application/json": {"example": _COMPLETION}, "text/event-stream": {"example": _STREAM}},
    },
    400: error_example(
        "best_of must be the same as n: the server answers with all choices that it makes.",
        "invalid_request_error",
        "best_of",
        "unsupported_value",
    ),
    404: NO_MODEL,
}
TOKENIZE_RESPONSES: Responses = {
    200: ok_example(
        {"count": 3, "max_model_len": 32768, "tokens": [1012, 77, 41], "token_strs": ["Halo", "Ġdunia", "!"]}
    ),
    404: NO_MODEL,
}
DETOKENIZE_RESPONSES: Responses = {
    200: ok_example({"prompt": "Halo dunia!", "content": "Halo dunia!"}),
    400: error_example(
        "tokens.0: token 999999 is not in the vocabulary of 32000.", "invalid_request_error", "tokens", "invalid_value"
    ),
    404: NO_MODEL,
}
MODERATION_RESPONSES: Responses = {
    501: error_example(
        "This server has no moderation model: /v1/moderations is not implemented.",
        "invalid_request_error",
        None,
        "not_implemented",
    )
}
