"""Reads and writes the rows of a sheet of products. Pure functions, no database."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from tis.errors import Unprocessable
from tis.marketplace.sheets.cell_edits import CellEdits
from tis.marketplace.sheets.columns import (
    COLUMNS,
    NULLABLE,
    ColumnMapping,
    Header,
    guessed_fields,
    read_header,
    variant_values_text,
    without_blank_end,
)
from tis.marketplace.sheets.files import read_records

MAX_ROWS = 50_000
_MAX_PROBLEMS = 50_000
_BOM = "\ufeff"
_HOW_TO_IGNORE = "with `?ignore_unknown=1` it is ignored"
UnknownColumns = Literal["refuse", "report", "ignore"]


class RowProblem(BaseModel):
    """Rows are numbered as in a spreadsheet: the header is row 1."""

    row: int
    field: str | None
    message: str


@dataclass(frozen=True)
class SheetRow:
    """Values of one row. A blank cell clears a nullable field (`NULLABLE`); for other fields it means no change."""

    number: int
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sheet:
    """The valid rows, and the problems of the others."""

    rows: list[SheetRow]
    problems: list[RowProblem]
    columns: list[ColumnMapping]
    num_rows: int
    cells: dict[int, list[str]] = field(default_factory=dict)  # of each row, for a preview


def read_rows(
    data: bytes,
    unknown: UnknownColumns = "refuse",
    *,
    chosen: Sequence[str | None] | None = None,
    edits: CellEdits | None = None,
    for_preview: bool = False,
) -> Sheet:
    """Raises Unprocessable if the file as a whole cannot be read, or has a column that is unknown and not ignored.

    `chosen` has the field of each column, whatever its name. `for_preview` keeps the cells, and takes a header of which
    no name is known.
    """
    rows: list[SheetRow] = []
    cells_of_row: dict[int, list[str]] = {}
    problems: list[RowProblem] = []
    header: Header | None = None
    num_rows = 0
    records = read_records(data)
    for number, cells in edits.applied_to(records) if edits else records:
        if not any(cell.strip() for cell in cells):
            continue
        if header is None:
            fields = guessed_fields(cells) if chosen is None and for_preview else chosen
            header = read_header(number, cells, fields)
            problems += [] if fields else _unknown_columns(number, header, unknown)
        elif num_rows == MAX_ROWS:
            raise Unprocessable(f"row {number}: a sheet has at most {MAX_ROWS:,} rows below its header")
        else:
            num_rows += 1
            if for_preview:
                cells_of_row[number] = cells
                if not any(header.fields):
                    continue
            row, row_problems = _row(number, header, cells)
            problems += row_problems
            if len(problems) > _MAX_PROBLEMS:
                raise Unprocessable(f"row {number}: more than {_MAX_PROBLEMS:,} cells are wrong. {_first(problems)}")
            rows += [] if row_problems else [row]
    if header is None:
        raise Unprocessable("row 1: the header is missing")
    return Sheet(rows, problems, header.mapping, num_rows, cells_of_row)


def _first(problems: Sequence[RowProblem]) -> str:
    first = problems[0]
    return f"The first: row {first.row}, {f'`{first.field}`: ' if first.field else ''}{first.message}"


def write_rows(rows: Iterable[dict[str, Any]], *, with_header: bool = False) -> str:
    sheet = io.StringIO(newline="")
    writer = csv.writer(sheet)
    if with_header:
        # Without a BOM Excel does not read the file as UTF-8.
        sheet.write(_BOM)
        writer.writerow(COLUMNS)
    writer.writerows([cell_text(row[column]) for column in COLUMNS] for row in rows)
    return sheet.getvalue()


def guard(cell: str) -> str:
    """Prefixes `'` to a cell that a spreadsheet would run as a formula. `unguard` removes exactly that prefix.

    A program that splits at semicolons or tabs ignores quotes: text behind such a character is a cell of its own.
    """
    return _UNGUARDED.sub("'", cell)


def unguard(cell: str) -> str:
    return _GUARDED.sub("", cell)


_CELL_START, _FORMULA = r"(?:\A|(?<=[;\t\r\n]))", r"""(?=['" ]*[=+\-@\t\r＝＋－＠])"""
_UNGUARDED, _GUARDED = re.compile(_CELL_START + _FORMULA), re.compile(f"{_CELL_START}'{_FORMULA}")


def _unknown_columns(number: int, header: Header, unknown: UnknownColumns) -> list[RowProblem]:
    if not any(header.fields):
        raise Unprocessable(f"row {number}: no column has a known name; there are {', '.join(COLUMNS)}")
    if unknown == "ignore":
        return []
    if unknown == "report":
        message = f"is no known column; {_HOW_TO_IGNORE}"
        return [RowProblem(row=number, field=name, message=message) for name in header.unknown]
    if header.unknown:
        known = ", ".join(COLUMNS)
        raise Unprocessable(f"row {number}: unknown column `{header.unknown[0]}`; {_HOW_TO_IGNORE}; there are {known}")
    return []


def _row(number: int, header: Header, cells: Sequence[str]) -> tuple[SheetRow, list[RowProblem]]:
    row = SheetRow(number)
    num_columns = len(header.fields)
    if len(cells) > num_columns:
        cells = [*cells[:num_columns], *without_blank_end(cells[num_columns:])]
    if len(cells) != num_columns:
        message = f"has {len(cells)} cells, the header has {num_columns}"
        return row, [RowProblem(row=number, field=None, message=message)]
    problems = []
    for place, (field_name, cell) in enumerate(zip(header.fields, cells, strict=True), start=1):
        text = cell.strip()
        if field_name:
            problems += _read_cell(row, field_name, text)
        elif field_name == "" and text:
            problems.append(
                RowProblem(row=number, field=None, message=f"column {place} has no name, but has a cell here")
            )
    return row, problems


def _read_cell(row: SheetRow, field_name: str, text: str) -> list[RowProblem]:
    """Adds the value to the row."""
    parse: Callable[[str], Any] = COLUMNS[field_name]
    try:
        if text:
            row.values[field_name] = parse(unguard(text))
        elif field_name in NULLABLE:
            row.values[field_name] = None
        return []
    except ValidationError as error:
        message = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
    except ValueError as error:
        message = str(error)
    return [RowProblem(row=row.number, field=field_name, message=message)]


def cell_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        are_pairs = bool(value) and not isinstance(value[0], str)
        value = variant_values_text(value) if are_pairs else " ".join(value)
    return "" if value is None else guard(str(value))
