"""Sample data: a small sample to try the marketplace with, and a large generated catalogue for benchmarks.

`seed_data.py` and `tis seed` call `tis/marketplace/seed/commands.py`: one function per step, which returns a line to
print. The sample (`sample.json`) is the data that the commands of `docs/marketplace.md` expect;
`tests/marketplace/test_readme.py` runs them on it. `insert_catalogue` makes the large catalogue from lists of places,
goods and words, the same for the same number, in bulk and in one transaction. `write_history` gives both a price
history, and stock movements that sum up to the stock. `benchmarks/marketplace.py` runs the same queries on it through
`ProductSearch` and in plain SQL, in turns. Reasons: `docs/decisions/0088-how-we-measure.md`.
"""
