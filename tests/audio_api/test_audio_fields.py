"""docs/fields says what becomes of each field of a form: each row is sent, as OpenAI's client would."""

import json
import typing
from typing import Any

import httpx2
import pytest
from openai.types.audio.transcription_create_params import TranscriptionCreateParamsStreaming
from openai.types.audio.translation_create_params import TranslationCreateParams

from scripts.field_tables import ENDPOINTS, FieldRow, field_rows
from tests.media.sounds import sound_file, spoken
from tests.serving import Served
from tis.audio_api.transcription_request import TranscriptionRequest

FILE = sound_file(spoken("dua tiga"))
TABLES: dict[str, Any] = {
    "transcriptions": TranscriptionCreateParamsStreaming,
    "translations": TranslationCreateParams,
}
NEEDS = {"timestamp_granularities": {"response_format": "verbose_json"}}
ROWS = [(table, row) for table in TABLES for row in field_rows(table)]


def _form(row: FieldRow) -> dict[str, Any]:
    name = row.field.partition(".")[0]
    if name == "file":
        return {}
    value: Any = row.value
    if isinstance(value, dict):
        return {f"{name}[{key}]": str(one) for key, one in value.items()}
    if isinstance(value, list):
        return {f"{name}[]": value}
    return {name: value if isinstance(value, str) else json.dumps(value)}


@pytest.mark.parametrize(("table", "row"), ROWS, ids=lambda value: getattr(value, "field", value))
def test_a_field_does_what_its_row_says(table: str, row: FieldRow, ears: Served) -> None:
    name = row.field.partition(".")[0]
    form = {"model": "tones", **NEEDS.get(name, {}), **_form(row)}
    answer = httpx2.post(f"{ears.url}{ENDPOINTS[table]}", data=form, files={"file": ("a.wav", FILE)}, timeout=60)
    ignored = answer.headers.get("x-ignored-parameters", "")
    match row.outcome:
        case "done":
            assert (answer.status_code, ignored) == (200, ""), answer.text
        case "ignored":
            assert answer.status_code == 200, answer.text
            assert ignored.removesuffix("%5B%5D") == name
        case "refused":
            assert answer.status_code == 400, answer.text
            assert answer.json()["error"]["param"].startswith(name)
        case other:
            pytest.fail(f"{other} is no outcome")


@pytest.mark.parametrize("table", TABLES)
def test_every_field_has_a_row(table: str) -> None:
    rows = {row.field.partition(".")[0] for row in field_rows(table)}
    assert set(TranscriptionRequest.model_fields) - rows == set()
    assert set(typing.get_type_hints(TABLES[table])) - rows == set()
