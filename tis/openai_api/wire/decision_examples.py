"""Example requests and answers of decisions for /docs."""

from typing import Any

from tis.openai_api.wire.completion_examples import NO_MODEL
from tis.openai_api.wire.examples import Responses, error_example, ok_example

DECISION_REQUESTS: list[Any] = [
    {
        "model": "qwen-local",
        "input": "Pesanan saya terlambat tiga hari, dan kurirnya kasar.",
        "questions": [
            {"type": "predicate", "name": "late", "instructions": "The delivery was late."},
            {
                "type": "choice",
                "name": "topic",
                "instructions": "What is the message about?",
                "choices": [{"value": "delivery"}, {"value": "payment"}, {"value": "product"}],
            },
            {
                "type": "score",
                "name": "anger",
                "instructions": "How angry is the customer?",
                "levels": [{"label": "calm"}, {"label": "annoyed"}, {"label": "furious"}],
            },
        ],
    }
]
DECISION_RESPONSES: Responses = {
    200: ok_example(
        {
            "model": "demo",
            "answers": [
                {"type": "predicate", "name": "late", "probability": 0.94},
                {
                    "type": "choice",
                    "name": "topic",
                    "choice": "delivery",
                    "probabilities": [
                        {"value": "delivery", "probability": 0.9},
                        {"value": "payment", "probability": 0.04},
                        {"value": "product", "probability": 0.06},
                    ],
                    "confidence": 0.85,
                },
                {
                    "type": "score",
                    "name": "anger",
                    "score": 1.2,
                    "probabilities": [
                        {"value": 0, "label": "calm", "probability": 0.1},
                        {"value": 1, "label": "annoyed", "probability": 0.6},
                        {"value": 2, "label": "furious", "probability": 0.3},
                    ],
                    "confidence": 0.4,
                },
            ],
            "usage": {
                "input_tokens": 212,
                "input_tokens_details": {"cached_tokens": 96, "cache_write_tokens": 0},
                "output_tokens": 0,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 212,
            },
        }
    ),
    400: error_example(
        "questions.0.instructions: Field required",
        "invalid_request_error",
        "questions.0.instructions",
        "missing_required_parameter",
    ),
    404: NO_MODEL,
}
