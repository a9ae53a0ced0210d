"""`POST /api/search/parse`, as anybody calls it."""

from typing import Any

import httpx2
import pytest


def test_anybody_may_ask_how_a_sentence_is_understood(internet: httpx2.Client) -> None:
    answer = internet.post("/api/search/parse", json={"query": "laptop gaming di Jakarta, budget 12 juta"}).json()
    assert (answer["source"], answer["query"]["category"], answer["query"]["cities"]) == (
        "rules",
        "laptop",
        ["Jakarta"],
    )
    assert {"field": "max_price", "rule": "ceiling", "words": "budget 12 juta"} in answer["explain"]


def test_a_follow_up_needs_no_memory_of_the_server(internet: httpx2.Client) -> None:
    context = {
        "previous": {"category": "laptop", "cities": ["Jakarta"]},
        "last_results": [{"id": 7, "price": 9_000_000}],
    }
    body = {"query": "yang lebih murah?", "context": context}
    query = internet.post("/api/search/parse", json=body).json()["query"]
    assert (query["category"], query["cities"], query["max_price"]) == ("laptop", ["Jakarta"], 8_999_999)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": ""},
        {"query": "  \n"},
        {"query": "?!"},
        {"query": "a" * 501},
        {"query": "laptop", "language": "id"},
        {"query": "laptop", "context": {"previous": {"colour": "red"}}},
        {"query": "laptop", "context": {"last_results": [{"id": number} for number in range(1, 52)]}},
        {"query": 5},
    ],
)
def test_what_is_no_sentence_is_a_422(internet: httpx2.Client, body: dict[str, Any]) -> None:
    refused = internet.post("/api/search/parse", json=body)
    assert refused.status_code == 422 and "detail" in refused.json()
