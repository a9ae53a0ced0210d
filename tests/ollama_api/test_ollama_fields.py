"""What docs/fields says of each field of Ollama's requests is what the server does."""

import base64
import csv
import json
import typing
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import httpx2
import pytest
from pydantic import BaseModel

from tests.openai_api.media_requests import picture_file
from tests.serving import REPOSITORY, Served, served, settings_with
from tis.ollama_api.wire.chat_fields import OllamaChatRequest, OllamaGenerateRequest
from tis.ollama_api.wire.model_fields import OllamaEmbedRequest

pytestmark = pytest.mark.model

_SHORT = {"stream": False, "options": {"num_predict": 2}}
BODIES: Mapping[str, Mapping[str, Any]] = {
    "ollama-chat": {"model": "demo", "messages": [{"role": "user", "content": "Halo"}], **_SHORT},
    "ollama-generate": {"model": "demo", "prompt": "Halo", **_SHORT},
    "ollama-embed": {"model": "demo-embedding", "input": "kopi"},
}
PATHS = {"ollama-chat": "/api/chat", "ollama-generate": "/api/generate", "ollama-embed": "/api/embed"}
MODELS: Mapping[str, type[BaseModel]] = {
    "ollama-chat": OllamaChatRequest,
    "ollama-generate": OllamaGenerateRequest,
    "ollama-embed": OllamaEmbedRequest,
}


class OllamaField(NamedTuple):
    field: str
    value: Any
    outcome: str

    @property
    def name(self) -> str:
        return self.field.partition(".")[0]

    def body(self, table: str) -> dict[str, Any]:
        """The value of a row is that of the whole field, but for an option."""
        if self.name == "options" and self.field != "options":
            return {**BODIES[table], "options": {"num_predict": 2, self.field.partition(".")[2]: self.value}}
        needed = {"logprobs": True} if self.field == "top_logprobs" else {}
        return {**BODIES[table], **needed, self.name: self.value}


def rows_of(table: str) -> list[OllamaField]:
    picture = base64.b64encode(picture_file()).decode()
    text = (REPOSITORY / "docs" / "fields" / f"{table}.csv").read_text(encoding="utf-8").replace("IMAGE", picture)
    rows = csv.DictReader(text.splitlines())
    return [OllamaField(row["field"], json.loads(row["value"]), row["outcome"]) for row in rows]


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with(model_repo_id="demo", models="demo-embedding", load_wait_seconds=120)) as running:
        yield running


@pytest.mark.parametrize(
    ("table", "row"),
    [(table, row) for table in BODIES for row in rows_of(table)],
    ids=lambda value: f"{value.field} {str(value.value)[:20]}" if isinstance(value, OllamaField) else value,
)
def test_a_field_does_what_its_row_says(server: Served, table: str, row: OllamaField) -> None:
    with httpx2.Client(base_url=server.url, timeout=60) as http:
        answer = http.post(PATHS[table], json=row.body(table))
    ignored = answer.headers.get("x-ignored-parameters", "").split(", ")
    if row.outcome == "refused":
        assert 400 <= answer.status_code < 500, answer.text
        names = [word.strip(".:`'\"") for word in answer.json()["error"].split()]
        plain = [".".join(part for part in name.split(".") if not part.isdecimal()) for name in names]
        assert row.field in plain, answer.text
    else:
        assert answer.status_code == 200, answer.text
        assert (row.field in ignored) is (row.outcome == "ignored"), ignored


@pytest.mark.parametrize("table", MODELS)
def test_every_field_that_the_server_reads_has_a_row(table: str) -> None:
    assert set(_paths_of(MODELS[table])) - {row.field for row in rows_of(table)} == set()


def _paths_of(model: type[BaseModel], path: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield f"{path}{name}"
        for inner in _models_in(field.annotation):
            yield from _paths_of(inner, f"{path}{name}.")


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for one in typing.get_args(annotation):
        yield from _models_in(one)
