"""All hostile rows."""

from collections.abc import Iterator

from tests.faults.hostile import (
    audio_rows,
    body_rows,
    chat_rows,
    completion_rows,
    grammar_rows,
    key_rows,
    market_rows,
    mcp_rows,
    media_rows,
    message_rows,
    ollama_rows,
    picture_rows,
    response_rows,
    route_rows,
    sheet_rows,
    wire_rows,
)
from tests.faults.hostile.row import Row

_SECTIONS = (
    audio_rows,
    body_rows,
    chat_rows,
    completion_rows,
    grammar_rows,
    key_rows,
    market_rows,
    mcp_rows,
    sheet_rows,
    picture_rows,
    media_rows,
    ollama_rows,
    response_rows,
    message_rows,
    wire_rows,
)


def all_rows(openapi: str) -> Iterator[Row]:
    for section in _SECTIONS:
        yield from section.rows()
    yield from route_rows.rows_of_routes(openapi)
