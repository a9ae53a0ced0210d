"""Examples of Ollama's API for /docs."""

import json
from typing import Any

from tis.openai_api.wire.examples import Responses, ok_example

_AT = "2026-11-26T04:00:00.000000Z"
_HEAD = {"model": "demo", "created_at": _AT}
_DURATIONS = {
    "done_reason": "stop",
    "total_duration": 412000000,
    "load_duration": 1200000,
    "prompt_eval_count": 14,
    "prompt_eval_duration": 61000000,
    "eval_count": 9,
    "eval_duration": 349800000,
}
_DIGEST = "8c17c2ebb0ea011be9981cc3922db8ca8fa61e828c5d3f44cb6ae342bf80460b"
_DETAILS = {
    "parent_model": "",
    "format": "safetensors",
    "family": "qwen3",
    "families": ["qwen3"],
    "parameter_size": "596.05M",
    "quantization_level": "BF16",
}
_LISTED = {
    "name": "demo:latest",
    "model": "demo:latest",
    "modified_at": _AT,
    "size": 1192135096,
    "digest": _DIGEST,
    "details": _DETAILS,
}
CHAT_BODIES: list[Any] = [
    {"model": "demo", "messages": [{"role": "user", "content": "Halo! Siapa kamu?"}], "stream": False},
    {
        "model": "demo",
        "messages": [{"role": "user", "content": "Name a city, and how many live there. Answer in JSON."}],
        "format": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
            "required": ["city", "people"],
        },
        "options": {"temperature": 0, "num_predict": 128},
    },
    {"model": "demo", "messages": []},
]
GENERATE_BODIES: list[Any] = [
    {"model": "demo", "prompt": "Halo! Siapa kamu?", "stream": False},
    {"model": "demo", "prompt": "Halo!", "system": "Answer in English.", "options": {"num_predict": 64, "seed": 7}},
]


def error_line_example(message: str) -> dict[str, Any]:
    return {"description": message, "content": {"application/json": {"example": {"error": message}}}}


_BAD_OPTION = error_line_example("options.temperature must be at least 0 and at most 2, got 9.")
_NO_MODEL = error_line_example("model 'nobody' not found")
_NOT_ADMIN = error_line_example("Only clients on the computer of the server may do that, as it has no ADMIN_KEY.")


def _answers(lines: list[dict[str, Any]], whole: dict[str, Any]) -> Responses:
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    content = {"application/x-ndjson": {"example": text}, "application/json": {"example": whole}}
    return {
        200: {"description": "The answer: lines of JSON, or one object if `stream` is false", "content": content},
        400: _BAD_OPTION,
        403: _NOT_ADMIN,
        404: _NO_MODEL,
    }


def _message(text: str) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text}}


CHAT_RESPONSES = _answers(
    [
        {**_HEAD, **_message("Halo!"), "done": False},
        {**_HEAD, **_message(""), "done": True, **_DURATIONS},
    ],
    {**_HEAD, **_message("Halo!"), "done": True, **_DURATIONS},
)
_CONTEXT = {"context": [7629171, 5995298, 7499628, 6627898]}  # the first numbers of one
GENERATE_RESPONSES = _answers(
    [{**_HEAD, "response": "Halo!", "done": False}, {**_HEAD, "response": "", "done": True, **_DURATIONS, **_CONTEXT}],
    {**_HEAD, "response": "Halo!", "done": True, **_DURATIONS, **_CONTEXT},
)
TAGS_RESPONSES: Responses = {200: ok_example({"models": [_LISTED]})}
PS_RESPONSES: Responses = {
    200: ok_example(
        {"models": [{**_LISTED, "expires_at": _AT, "size_vram": 1192135096, "context_length": 40960}]},
    )
}
VERSION_RESPONSES: Responses = {200: ok_example({"version": "0.13.0"})}
SHOW_RESPONSES: Responses = {
    200: ok_example(
        {
            "modelfile": "FROM demo:latest",
            "parameters": "temperature                    0.7",
            "template": "{% for message in messages %}...",
            "details": _DETAILS,
            "model_info": {
                "general.architecture": "qwen3",
                "general.parameter_count": 596049920,
                "qwen3.context_length": 40960,
                "qwen3.embedding_length": 1024,
                "qwen3.block_count": 28,
            },
            "capabilities": ["completion", "tools", "thinking"],
            "modified_at": _AT,
        }
    ),
    404: _NO_MODEL,
}
EMBED_RESPONSES: Responses = {
    200: ok_example(
        {
            "model": "demo-embedding",
            "embeddings": [[0.0132, -0.0271, 0.0418]],
            "total_duration": 14143917,
            "load_duration": 1019500,
            "prompt_eval_count": 8,
        }
    ),
    400: error_line_example("dimensions: the vectors of this model have 384 numbers, not 512."),
    404: _NO_MODEL,
}
EMBEDDING_RESPONSES: Responses = {200: ok_example({"embedding": [0.0132, -0.0271, 0.0418]}), 404: _NO_MODEL}
PULL_RESPONSES: Responses = {
    200: {
        "description": "How it goes on, until the status is `success` or there is an `error`",
        "content": {
            "application/x-ndjson": {
                "example": '{"status": "pulling manifest"}\n'
                f'{{"status": "pulling {_DIGEST[:12]}", "digest": "sha256:{_DIGEST}", "total": 1192135096, '
                '"completed": 52428800}\n{"status": "success"}\n'
            },
            "application/json": {"example": {"status": "success"}},
        },
    },
    403: _NOT_ADMIN,
    404: _NO_MODEL,
}
