"""Sheets of products: CSV and xlsx, in and out.

`read_records` makes text of a file, `CellEdits` replaces cells that somebody has mended, `read_header` finds the field
of each column, `read_rows` parses the cells, all before the transaction; `plan_sheet` compares with the rows in the
database, `import_sheet` writes in bulk. A sheet of more than 5,000 rows becomes a `SheetImport`, which an
`ImportWorker` imports batch by batch. `guard` keeps spreadsheets from computing what somebody typed; `unguard` is its
inverse. `workbook_parts` writes a workbook while its rows are read.
"""
