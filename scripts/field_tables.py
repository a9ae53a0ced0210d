"""Reads docs/fields: what the server does with each field of a request. Tests send every row.

A row's `value` is JSON: what the test sends as the top-level field. `tools.type` sends all of `tools`.
"""

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "fields"
# The endpoint of each table, in the order of the page.
ENDPOINTS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "compact": "/v1/responses/compact",
    "completions": "/v1/completions",
    "transcriptions": "/v1/audio/transcriptions",
    "translations": "/v1/audio/translations",
    "speech": "/v1/audio/speech",
    "messages": "/v1/messages",
    "ollama-chat": "/api/chat",
    "ollama-generate": "/api/generate",
    "ollama-embed": "/api/embed",
}
_MAX_SHOWN_CHARS = 40
_HEAD = """\
## Fields of requests

What the server does with each field. *Done*: it has the effect that it has in the original API. *Ignored*: it has none,
and the header `X-Ignored-Parameters` names it. *Refused*: a 4xx whose error names the field. A field without a row is
ignored. Tests send every row.
"""


@dataclass(frozen=True, slots=True)
class FieldRow:
    field: str  # a dotted path; the entries of lists have no number
    value: Any
    outcome: str
    note: str

    @property
    def body(self) -> dict[str, Any]:
        return {self.field.partition(".")[0]: self.value}

    @property
    def shown_value(self) -> str:
        """The value at the end of the path, where it is short."""
        found = self.value
        for name in self.field.split(".")[1:]:
            found = next(_at(found, name), None)
        text = json.dumps(found, ensure_ascii=False)
        return f"`{text}`" if len(text) <= _MAX_SHOWN_CHARS and found not in (None, {}, []) else ""


def _at(given: Any, name: str) -> Iterator[Any]:
    """The values of this name, those of later entries of a list first: they differ from row to row."""
    if isinstance(given, dict) and name in given:
        yield given[name]
    for entry in reversed(given) if isinstance(given, list) else ():
        yield from _at(entry, name)


def field_rows(table: str) -> list[FieldRow]:
    with (FOLDER / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return [
            FieldRow(row["field"], json.loads(row["value"]), row["outcome"], row["note"])
            for row in csv.DictReader(file)
        ]


def field_sections() -> str:
    return "\n".join([_HEAD, *(_section(path, field_rows(table)) for table, path in ENDPOINTS.items())])


def _section(path: str, rows: Sequence[FieldRow]) -> str:
    lines = [f"### Fields of `{path}`", "", "| field | for example | outcome | note |", "|---|---|---|---|"]
    lines += [f"| `{row.field}` | {_cell(row.shown_value)} | {row.outcome} | {_cell(row.note)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
