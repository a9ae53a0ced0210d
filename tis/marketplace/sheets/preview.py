"""Some rows of a sheet as they stand in the file, for somebody who looks at them before the import."""

from pydantic import BaseModel

from tis.marketplace.sheets.rows import RowProblem, Sheet

MAX_PREVIEWED_ROWS = 200
_MAX_CHARS = 1_000_000


class PreviewRow(BaseModel):
    """`cells` as in the file, with the edits that were sent."""

    row: int
    cells: list[str]


def preview_rows(sheet: Sheet, problems: list[RowProblem], limit: int) -> list[PreviewRow]:
    """Those with errors first, then the first ones, up to `limit`; in the order of the sheet."""
    wrong = (problem.row for problem in problems if problem.row in sheet.cells)
    chosen: set[int] = set()
    num_chars = 0
    for number in (*wrong, *sheet.cells):
        if number in chosen:
            continue
        num_chars += sum(map(len, sheet.cells[number]))
        if len(chosen) == limit or num_chars > _MAX_CHARS:
            break
        chosen.add(number)
    return [PreviewRow(row=number, cells=sheet.cells[number]) for number in sorted(chosen)]
