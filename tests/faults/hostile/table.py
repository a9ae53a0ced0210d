"""All hostile rows but those that come from the OpenAPI document."""

from collections.abc import Iterator

from tests.faults.hostile import chat_rows, grammar_rows, market_rows, media_rows, response_rows, wire_rows
from tests.faults.hostile.row import Row

_SECTIONS = (chat_rows, grammar_rows, market_rows, media_rows, response_rows, wire_rows)


def all_rows() -> Iterator[Row]:
    for section in _SECTIONS:
        yield from section.rows()
