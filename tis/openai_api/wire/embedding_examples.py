"""Example answers of embeddings and reranking for /docs."""

from tis.openai_api.wire.examples import Responses, error_example, ok_example

_USAGE = {"prompt_tokens": 6, "total_tokens": 6}
_WRONG_TASK = error_example(
    "The model `demo` cannot do this: it is served for chat.", "invalid_request_error", "model", "model_not_supported"
)
_NO_MODEL = error_example(
    "The model `nobody` does not exist or you do not have access to it.",
    "invalid_request_error",
    "model",
    "model_not_found",
)

EMBEDDING_RESPONSES: Responses = {
    200: ok_example(
        {
            "object": "list",
            "model": "embedding-model",
            "usage": _USAGE,
            "data": [{"object": "embedding", "index": 0, "embedding": [0.0132, -0.0271, 0.0418]}],
        }
    ),
    400: _WRONG_TASK,
    404: _NO_MODEL,
}
PLAIN_EMBEDDING_RESPONSES: Responses = {
    200: ok_example([{"index": 0, "embedding": [[0.0132, -0.0271, 0.0418]]}]),
    400: _WRONG_TASK,
    404: _NO_MODEL,
}
RERANK_RESPONSES: Responses = {
    200: ok_example(
        {
            "id": "rerank-3f0e9f6ed4d24cbb9f1c1f0a7a9c7f9e",
            "object": "list",
            "model": "reranker",
            "results": [{"index": 1, "relevance_score": 0.94}, {"index": 0, "relevance_score": 0.08}],
            "usage": {"prompt_tokens": 31, "total_tokens": 31},
            "meta": {"billed_units": {"search_units": 1}, "tokens": {"input_tokens": 31}},
        }
    ),
    400: _WRONG_TASK,
    404: _NO_MODEL,
}
SCORE_RESPONSES: Responses = {
    200: ok_example(
        {
            "object": "list",
            "model": "reranker",
            "data": [{"index": 0, "object": "score", "score": 0.94}],
            "usage": {"prompt_tokens": 15, "total_tokens": 15},
        }
    ),
    400: _WRONG_TASK,
    404: _NO_MODEL,
}
