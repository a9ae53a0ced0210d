"""What docs/fields says of each field of a request is what a server does, with the demo model.

A new endpoint has a CSV in docs/fields, its path in `ENDPOINTS` and its body in `BODIES`. Those of
other dialects are sent by tests/anthropic_api, tests/ollama_api and tests/audio_api.
"""

import json
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx2
import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming as ChatParams
from openai.types.completion_create_params import CompletionCreateParamsStreaming as CompletionParams
from openai.types.responses.response_compact_params import ResponseCompactParams
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import BaseModel

from scripts.field_tables import ENDPOINTS, FOLDER, FieldRow, field_rows, field_sections
from tests.serving import REPOSITORY, Served
from tis.openai_api.wire.chat_request import ChatRequest, MediaRef, SoundRef
from tis.openai_api.wire.completion_request import CompletionRequest
from tis.openai_api.wire.response_request import CompactRequest, ResponseRequest

_MESSAGES = [{"role": "user", "content": "Halo"}]
_CHAT_TOOLS = [{"type": "function", "function": {"name": "f"}}]
_RESPONSE_TOOLS = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
# What a request has beside the field of a row. Short answers: an answer that is cut is an answer.
BODIES: Mapping[str, Mapping[str, Any]] = {
    "chat": {"messages": _MESSAGES, "max_tokens": 4},
    "responses": {"input": "Halo", "max_output_tokens": 4},
    "compact": {"input": "Halo"},
    "completions": {"prompt": "Halo", "max_tokens": 4},
}
OTHER_DIALECTS = {"messages", "ollama-chat", "ollama-generate", "ollama-embed"}
OTHER_DIALECTS |= {"transcriptions", "translations", "speech"}
# What a field needs beside it.
NEEDS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("chat", "stream_options"): {"stream": True},
    ("completions", "stream_options"): {"stream": True},
    ("chat", "top_logprobs"): {"logprobs": True},
    ("chat", "tool_choice"): {"tools": _CHAT_TOOLS},
    ("chat", "function_call"): {"functions": [{"name": "f"}]},
    ("chat", "continue_final_message"): {"messages": [*_MESSAGES, {"role": "assistant", "content": "Ha"}]},
    ("responses", "tool_choice"): {"tools": _RESPONSE_TOOLS},
}
MODELS: Mapping[str, type[BaseModel]] = {
    "chat": ChatRequest,
    "responses": ResponseRequest,
    "compact": CompactRequest,
    "completions": CompletionRequest,
}
CLIENTS: Mapping[str, Any] = {
    "chat": ChatParams,
    "responses": ResponseCreateParamsStreaming,
    "compact": ResponseCompactParams,
    "completions": CompletionParams,
}
_ROWS = [(table, row) for table in BODIES for row in field_rows(table)]


def _name(value: Any) -> str:
    return f"{value.field}={json.dumps(value.value)}"[-60:] if isinstance(value, FieldRow) else str(value)


def test_every_table_belongs_to_an_endpoint() -> None:
    assert {path.stem for path in FOLDER.glob("*.csv")} == ENDPOINTS.keys() == BODIES.keys() | OTHER_DIALECTS


@pytest.mark.model
@pytest.mark.parametrize(("table", "row"), _ROWS, ids=_name)
def test_a_field_does_what_its_row_says(table: str, row: FieldRow, demo_server: Served) -> None:
    body = {**BODIES[table], **NEEDS.get((table, row.field.partition(".")[0]), {}), **row.body}
    with httpx2.Client(base_url=demo_server.url, timeout=60) as client:
        answer = client.post(ENDPOINTS[table], json=body)
    ignored = answer.headers.get("x-ignored-parameters", "").split(", ")
    is_named = any(one == row.field or one.startswith(f"{row.field}.") for one in ignored)
    match row.outcome:
        case "done":
            assert (answer.status_code, is_named) == (200, False), answer.text
            assert "error" not in _first_event(answer), answer.text
        case "ignored":
            assert (answer.status_code, is_named) == (200, True), f"{ignored} {answer.text}"
        case "refused":
            assert 400 <= answer.status_code < 500, answer.text
            assert {row.field, row.field.rpartition(".")[0]} & {*_fields_named(answer)}, answer.text
        case other:
            pytest.fail(f"{other} is no outcome")


def _first_event(answer: httpx2.Response) -> dict[str, Any]:
    text = answer.text.partition("data: ")[2].partition("\n")[0] if "data: " in answer.text else answer.text
    found: dict[str, Any] = json.loads(text)
    return {name: value for name, value in found.items() if value is not None}


def _fields_named(answer: httpx2.Response) -> Sequence[str]:
    """What the error and its message name, without the numbers of entries, and what that is in."""
    error = answer.json()["error"]
    named = (error.get("param") if isinstance(error, dict) else None) or ""
    message = error["message"] if isinstance(error, dict) else error
    fields = [re.sub(r"\.\d+(?=\.|$)", "", one.strip(".:`'\"")) for one in (named, *message.split())]
    return [".".join(one.split(".")[:end]) for one in fields for end in range(1, one.count(".") + 2)]


@pytest.mark.parametrize("table", MODELS)
def test_every_field_that_the_server_reads_has_a_row(table: str) -> None:
    assert set(_paths_of(MODELS[table])) - {row.field for row in field_rows(table)} == set()


@pytest.mark.parametrize("table", CLIENTS)
def test_every_parameter_of_the_official_client_has_a_row(table: str) -> None:
    assert set(typing.get_type_hints(CLIENTS[table])) - {row.field for row in field_rows(table)} == set()


def test_the_page_of_endpoints_shows_the_tables() -> None:
    """`python scripts/write_endpoints.py` writes it."""
    assert (REPOSITORY / "docs" / "endpoints.md").read_text(encoding="utf-8").endswith(field_sections())


def _paths_of(model: type[BaseModel], path: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        within = f"{path}{field.alias or name}"
        yield within
        for inner in _models_in(field.annotation):
            yield from _paths_of(inner, f"{within}.")


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if annotation in (MediaRef, SoundRef):  # a picture's URL with its detail is one field
        return
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        return
    for one in typing.get_args(annotation):
        yield from _models_in(one)
