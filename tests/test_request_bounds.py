"""Every list, mapping and text of every request has a limit."""

from collections.abc import Iterator
from typing import Annotated, Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel, TypeAdapter, ValidationError

from tests.serving import settings_with
from tis.app import create_app
from tis.bounds import MaxItems
from tis.http.error_handlers import OLLAMA_PREFIX, OPENAI_PATHS
from tis.openai_api.wire.chat_request import ChatRequest
from tis.openai_api.wire.response_request import ResponseRequest

FREE_FORMS = ("any", "json", "is-instance")
MESSAGES = [{"role": "user", "content": "Halo"}]
JSON = {"Content-Type": "application/json"}


def test_every_list_mapping_and_text_of_a_request_has_a_limit() -> None:
    """Free-form JSON is allowed only below /v1 and /ollama, where the values of the whole body are limited."""
    app = create_app(settings_with())
    unbounded = [f"{field}: {what}" for field, schema in _inputs(app) for what in _unbounded(field, schema)]
    assert not unbounded, "\n".join(unbounded)


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (list[int], "list"),
        (dict[str, int], "dict"),
        (str | list[int], "list"),
        (dict[str, list[int]], "list"),
        (Any, "any"),
        (dict[str, Any], "any"),
    ],
)
def test_a_schema_without_a_limit_is_found(kind: Any, named: str) -> None:
    assert any(f" {named}" in found for found in _unbounded("POST /api/things body", TypeAdapter(kind).core_schema))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("chat/completions", b'{"messages": [], "tools": [' + b"{}," * 380_000 + b"{}]}"),
        ("chat/completions", b'{"messages": [], "logit_bias": {' + b'"1": 0, ' * 1_000_000 + b'"2": 0}}'),
        ("responses", b'{"input": "Halo", "tools": [' + b"{}," * 380_000 + b"{}]}"),
        ("conversations", b'{"metadata": {"a": [' + b"[]," * 380_000 + b"[]]}}"),
    ],
    ids=["chat tools", "chat logit_bias", "response tools", "conversation metadata"],
)
def test_a_flood_of_values_is_refused_before_it_is_parsed(http: httpx2.Client, path: str, body: bytes) -> None:
    answer = http.post(f"/v1/{path}", content=body, headers=JSON)
    assert answer.status_code == 400 and len(answer.content) < 500
    assert answer.json()["error"]["code"] == "too_many_values"


@pytest.mark.parametrize(
    ("field", "value", "bound"),
    [
        ("tools", [{}] * 5000, 128),
        ("tools", [{"type": "function", "function": {"name": "f"}}] * 5000, 128),
        ("logit_bias", {str(token): "" for token in range(5000)}, 1024),
        ("logit_bias", {str(token): 0 for token in range(5000)}, 1024),
        ("stop", [0] * 5000, 4),
        ("messages", [{}] * 40_000, 16_384),
    ],
)
def test_entries_are_counted_before_they_are_validated(http: httpx2.Client, field: str, value: Any, bound: int) -> None:
    answer = http.post("/v1/chat/completions", json={"messages": MESSAGES, field: value})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == field
    assert answer.json()["error"]["message"] == f"{field}: at most {bound} entries, got {len(value)}"
    assert _num_errors(ChatRequest, {field: value}) <= 2  # `stop` may be a string, too


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (ChatRequest, {"tools": [{}] * 128}),
        (ChatRequest, {"messages": [{"role": "user", "content": [{}] * 4096}] * 10}),
        (ResponseRequest, {"input": [5] * 10_000}),
    ],
)
def test_a_list_is_refused_at_its_first_wrong_entry(model: type[BaseModel], body: dict[str, Any]) -> None:
    assert _num_errors(model, body) <= 3  # one for each type that the entry might have had


def test_mcp_calls_that_a_client_sends_back_cause_no_500(http: httpx2.Client) -> None:
    """They become messages of their own, which have limits again."""
    call = {"name": "f", "error": {"message": "x"}}
    many = {"role": "assistant", "mcp_calls": [call] * 1000}
    large = {"role": "assistant", "mcp_calls": [{**call, "error": {"message": "x" * (3 * 2**20)}}]}
    for message in (many, large):
        answer = http.post("/v1/chat/completions", json={"messages": [message, *MESSAGES], "max_tokens": 1})
        assert answer.status_code in (200, 400), answer.text
        assert answer.status_code == 200 or answer.json()["error"]["code"] == "context_length_exceeded"


def _num_errors(model: type[BaseModel], body: dict[str, Any]) -> int:
    with pytest.raises(ValidationError) as refusal:
        model.model_validate(body)
    return refusal.value.error_count()


def _inputs(app: FastAPI) -> Iterator[tuple[str, Any]]:
    """Each parameter of each route with pydantic's description of its type."""
    for route in iter_route_contexts(app.routes):
        for dependant in _with_dependencies(getattr(route, "dependant", None)):
            for place in ("path", "query", "header", "cookie", "body"):
                for field in getattr(dependant, f"{place}_params"):
                    method = "/".join(sorted(route.methods or ()))
                    info = field.field_info
                    kind: Any = Annotated[info.annotation, place, *info.metadata]
                    yield f"{method} {route.path} {place} {field.name}", TypeAdapter(kind).core_schema


def _with_dependencies(dependant: Dependant | None) -> Iterator[Dependant]:
    if dependant:
        yield dependant
        for inner in dependant.dependencies:
            yield from _with_dependencies(inner)


def _unbounded(where: str, schema: Any, counted: Any = None) -> Iterator[str]:
    """`counted` is a schema whose entries a `MaxItems` counts before they are validated."""
    if isinstance(schema, list | tuple):
        for one in schema:
            yield from _unbounded(where, one)
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    if kind == "function-after" and "maxLength" in schema.get("metadata", {}).get("pydantic_js_updates", {}):
        return  # a secret: its text is counted where it is no plain text any more
    if kind in ("list", "dict", "set", "tuple", "generator") and not (schema is counted and "max_length" in schema):
        yield f"{where}: {kind} without MaxItems"
    if kind == "list" and not schema.get("fail_fast"):
        yield f"{where}: list that goes on after a wrong entry"
    if kind in ("str", "bytes") and "max_length" not in schema:
        yield f"{where}: {kind} without max_length"
    is_free = kind in FREE_FORMS or schema.get("extra_behavior") == "allow"
    if is_free and not any(f" {prefix}" in where for prefix in (*OPENAI_PATHS, f"{OLLAMA_PREFIX}/")):
        yield f"{where}: {kind} outside of what is counted as a whole"
    if kind == "function-before" and isinstance(getattr(schema["function"]["function"], "__self__", None), MaxItems):
        counted = schema["schema"].get("schema", schema["schema"]) if schema["schema"]["type"] == "nullable" else None
        counted = counted or schema["schema"]
    for name, inner in schema.items():
        if name == "fields" and isinstance(inner, dict):
            for field, one in inner.items():
                yield from _unbounded(f"{where}.{field}", one)
        elif name not in ("metadata", "config", "function", "default", "cls", "serialization"):
            yield from _unbounded(where, inner, counted)
