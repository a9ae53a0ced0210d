"""Product search: full text, filters, distance, pages and facets.

`ProductSearch` is the interface; its routes are in `tis/marketplace/products/search_routes.py`. A `TextIndex` hides
what differs between databases: `choose_backend` chooses `SqliteFtsIndex`, `PostgresTextIndex` or `LikeIndex`.

`ProductSearch.find`: `understand` makes a `TextQuery` of words, synonyms and corrected spelling (`relaxed_queries`
leaves out words only if no product matches all). `candidate_query` puts filters, text and radius into one SQL
statement. `KeysetPager` reads a page of it in the sort order, and `load_products` loads the rows. `FacetCounter`
counts the same candidates. A cursor contains the `ResolvedQuery`, so every page understands the text as the first
did. `tokenize`, `match_tiers` and `bounding_box` are pure functions.

`index_products` updates `ProductFacts`, the indexed words and the lexicon in the transaction that changes a product,
and rewrites only what changed. Why relevance is a tier and not a number:
`docs/decisions/0018-search-beside-the-data.md`.
"""
