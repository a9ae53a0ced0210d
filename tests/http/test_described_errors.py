"""The OpenAPI description names the errors of every operation, and they are what the server answers."""

from collections.abc import Iterator
from typing import Any

import httpx2
import jsonschema
import pytest

from tests.http.keys import bearer
from tests.serving import Served, served, settings_with

KEY = "sk-of-the-reader"
WITHOUT_ERRORS = {"/live", "/ready", "/health"}


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with(api_keys=KEY)) as running:
        yield running


@pytest.fixture(scope="module")
def description(server: Served) -> dict[str, Any]:
    return dict(httpx2.get(f"{server.url}/openapi.json", headers=bearer(KEY), timeout=60).raise_for_status().json())


def test_every_operation_names_its_errors_with_their_shape(description: dict[str, Any]) -> None:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            named = {status: one for status, one in operation["responses"].items() if status[0] in "45"}
            assert ("4XX" in named) == (path not in WITHOUT_ERRORS), (method, path)
            for status, response in named.items():
                assert response["content"]["application/json"]["schema"], (method, path, status)


def test_the_shape_of_fastapi_is_in_no_answer_and_not_in_the_description(description: dict[str, Any]) -> None:
    assert not {"HTTPValidationError", "ValidationError"} & set(description["components"]["schemas"])
    assert "HTTPValidationError" not in str(description["paths"])


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("post", "/v1/chat/completions", b"[", 400),
        ("post", "/v1/chat/completions", b"{}", 400),
        ("post", "/v1/messages", b"{}", 400),
        ("post", "/ollama/api/chat", b"{}", 400),
        ("post", "/ktp-ocr/", b"{}", 422),
        ("post", "/ktp-ocr/check", b"[]", 422),
        ("post", "/mcp", b"{", 400),
        ("get", "/api/products", None, 422),
        ("post", "/api/users/register", b"{}", 422),
        ("get", "/metrics", None, 401),
    ],
)
def test_a_refusal_has_the_shape_that_is_described(
    server: Served, description: dict[str, Any], method: str, path: str, body: bytes | None, status: int
) -> None:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers |= {} if status == 401 else bearer(KEY)
    if path.startswith(("/api", "/mcp")):
        headers.pop("Authorization")  # the marketplace has tokens of its own
    url = f"{server.url}{path}" + ("?limit=x" if method == "get" else "")
    answer = httpx2.request(method, url, content=body, headers=headers, timeout=30)
    assert answer.status_code == status, answer.text
    schema = description["paths"][path][method]["responses"]["4XX"]["content"]["application/json"]["schema"]
    jsonschema.validate(answer.json(), {**schema, "components": description["components"]})
