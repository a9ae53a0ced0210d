"""Products: CRUD, prices, comparison, delivery advice, and the sheet (CSV, xlsx).

A route calls one function of `service` in `RequestContext.writing` and returns the view. A change locks the product's
row first, so version, stock and reserved units are still those that were checked. `write_products` inserts prices,
stock movements and audit entries in the same transaction and calls `ProductSearch.refresh`. `advise` (pickup, courier
or parcel) and `compare` are pure functions.

Sheets: `read_records` makes text of a file, `read_header` finds the field of each column, `read_rows` parses the cells,
all before the transaction; `plan_sheet` compares with the rows in the database, `import_sheet` writes in bulk. A sheet
of more than 5,000 rows becomes a `SheetImport`, which an `ImportWorker` imports batch by batch. `guard` keeps
spreadsheets from computing what somebody typed; `unguard` is its inverse.
"""
