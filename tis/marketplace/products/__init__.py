"""Products: CRUD, prices, comparison, delivery advice, and the CSV sheet.

A route calls one function of `service` in `RequestContext.writing` and returns the view. A change locks the product's
row first, so version, stock and reserved units are still those that were checked. `write_products` inserts prices,
stock movements and audit entries in the same transaction and calls `ProductSearch.refresh`. `advise` (pickup, courier
or parcel) and `compare` are pure functions.

Sheets: `read_rows` parses before the transaction; `import_sheet` compares with the rows in the database and writes in
bulk. `guard` keeps spreadsheets from computing what somebody typed; `unguard` is its inverse.
"""
