"""Product search: full text, filters, distance, pages and facets.

`ProductSearch` is the interface; its routes are in `tis/marketplace/products/search_routes.py`. A `TextIndex` hides
what differs between databases: `choose_backend` chooses `SqliteFtsIndex`, `PostgresTextIndex` or `TextIndex` itself,
which uses LIKE.

`ProductSearch.read` makes filters and an order of what a text says, for whoever has a raw text. `ProductSearch.find`
looks for the other words: `understand` makes a `TextQuery` of them, with the synonyms of the `Vocabulary` and
corrected spelling; `with_main_noun` tells what the goods are, `with_shops` adds the words of shops. `filter_keys` makes
keys and ids of the names in filters, and `candidate_query` one SQL statement of filters, text and radius. `KeysetPager`
reads a page of it in the sort order (by relevance it is a `RankedList`: tiers, rings around the buyer, ratings), and
`load_products` loads the rows. If few products match all words, `relaxed_query` adds those that match the words that
weigh most. A place without goods has a `NearestElsewhere`. `FacetCounter` counts the same candidates, in the database.
A cursor contains the `UnderstoodText`, so every page understands the text as the first did. `counted_relaxations` tells
which filter hides products, `Candidate` how well a product fits. `Highlighter` finds the words of a `TextQuery` in the
texts of a page.

`index_products` updates `ProductFacts`, the indexed words, the attributes and the lexicon in the transaction that
changes a product, and rewrites only what changed. Why relevance is a tier and not a number:
`docs/decisions/0067-how-the-search-finds.md`.
"""
