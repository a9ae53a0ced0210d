"""docs/fields/messages.csv says what becomes of each field: each row is sent."""

import csv
import json

import httpx2
import pytest

from tests.anthropic_api.message_requests import MESSAGES, message_of
from tests.serving import REPOSITORY
from tis.anthropic_api.wire.messages_request import MessagesRequest

TABLE = REPOSITORY / "docs" / "fields" / "messages.csv"
ROWS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))
OF_THE_SERVICE = {  # no fields of the model: nobody needs to know their types
    "billing_policy",
    "diagnostics",
    "fallback_credit_token",
    "fallbacks",
    "inference_geo",
    "speed",
    "user_profile_id",
    "workspace_id",
}


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['field']}-{number}" for number, row in enumerate(ROWS)])
def test_a_field_is_followed_ignored_or_refused_as_its_row_says(http: httpx2.Client, row: dict[str, str]) -> None:
    field = row["field"]
    answer = http.post(MESSAGES, json=message_of("Halo", **{field.partition(".")[0]: json.loads(row["value"])}))
    named = answer.headers.get("x-ignored-parameters", "").split(", ")
    if row["outcome"] == "refused":
        assert answer.status_code == 400 and answer.json()["error"]["details"]["param"].startswith(field.split(".")[0])
        return
    assert answer.status_code == 200, answer.text
    assert named == ([field] if row["outcome"] == "ignored" else [""])


def test_every_field_has_a_row() -> None:
    assert {row["field"].partition(".")[0] for row in ROWS} == set(MessagesRequest.model_fields) | OF_THE_SERVICE
    assert {row["outcome"] for row in ROWS} == {"done", "ignored", "refused"}
