"""Cells that somebody mended before the import: they take the place of those in the file."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from tis.bounds import MaxItems
from tis.errors import Unprocessable
from tis.marketplace.sheets.columns import MAX_COLUMNS
from tis.marketplace.sheets.files import Record

MAX_EDITS = 1000
_MAX_CELL_CHARS = 20_000
_Edit = tuple[
    Annotated[int, Field(ge=1, le=2**20)],
    Annotated[int, Field(ge=1, le=MAX_COLUMNS)],
    Annotated[str, Field(max_length=_MAX_CELL_CHARS)],
]
_EDITS: TypeAdapter[list[_Edit]] = TypeAdapter(Annotated[list[_Edit], MaxItems(MAX_EDITS)])


class CellEdits:
    """`[row, column, text]`, both counted as a spreadsheet counts them. A later one replaces an earlier one."""

    def __init__(self, edits: list[_Edit]) -> None:
        self._of_row: defaultdict[int, dict[int, str]] = defaultdict(dict)
        for row, column, text in edits:
            self._of_row[row][column] = text

    def applied_to(self, records: Iterator[Record]) -> Iterator[Record]:
        missing = set(self._of_row)
        for number, cells in records:
            if number in missing:
                missing.remove(number)
                edited = self._of_row[number]
                cells = [*cells, *[""] * (max(edited) - len(cells))]
                for column, text in edited.items():
                    cells[column - 1] = text
            yield number, cells
        if missing:
            raise Unprocessable(f"edits: row {min(missing)} is not in the sheet")


def parse_edits(text: str) -> CellEdits:
    """JSON: `[[7, 3, "349000"]]`."""
    if not text:
        return CellEdits([])
    try:
        return CellEdits(_EDITS.validate_json(text))
    except ValidationError as error:
        raise Unprocessable(f'edits: {error.errors()[0]["msg"]}. Send [[row, column, "text"], ...].') from None
