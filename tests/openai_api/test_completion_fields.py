"""docs/fields/completions.csv says what becomes of each field, and the server does that."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.engine.batching.grammars import make_folder
from tests.serving import REPOSITORY, served, settings_with
from tis.openai_api.wire.completion_request import CompletionRequest

pytestmark = [pytest.mark.model]

TABLE = REPOSITORY / "docs" / "fields" / "completions.csv"
ROWS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    folder: Path = make_folder(tmp_path_factory.mktemp("models") / "tiny", "Qwen3")
    settings = settings_with(model_repo_id=str(folder), torch_dtype="float32", load_wait_seconds=120)
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=120) as client:
        yield client


def _body(path: str, value: Any) -> dict[str, Any]:
    *outer, name = path.split(".")
    body: dict[str, Any] = {"prompt": "Halo", "max_tokens": 2}
    inner = body
    for one in outer:
        inner = inner.setdefault(one, {})
    inner[name] = value
    return {**body, "stream": True} if path.startswith("stream_options") else body


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['field']}={row['value']}"[:60])
def test_a_field_does_what_its_row_says(http: httpx2.Client, row: dict[str, str]) -> None:
    answer = http.post("/v1/completions", json=_body(row["field"], json.loads(row["value"])))
    if row["outcome"] == "refused":
        assert 400 <= answer.status_code < 500
        assert str(answer.json()["error"]["param"]).startswith(row["field"].partition(".")[0])
    else:
        assert answer.status_code == 200, answer.text
        ignored = answer.headers.get("X-Ignored-Parameters", "").split(", ")
        assert (row["field"] in ignored) == (row["outcome"] == "ignored")


def test_every_field_has_a_row() -> None:
    assert set(CompletionRequest.model_fields) <= {row["field"].partition(".")[0] for row in ROWS}
