"""Suppliers, products, users, and a search that finds. It knows nothing of torch or OpenAI.

A room has `routes`, `schemas` and `service`. Rooms import `search`, then `picture_files`, `kit`, `tables`. A
`RequestContext` gives a route its transaction and its `Principal`. `tis/marketplace/policy.py` alone decides what a
principal may do, and `tests/marketplace/test_policy.py` is the table: every route, every kind of caller, both modes.
`IdempotencyKey` and `IfMatch` of `kit` serve every room: `docs/decisions/0011-responses-and-idempotency.md`.

A lost database: `Market` migrates before the first transaction. The `Sweeper` queries the database every few seconds,
so a marketplace whose database comes back continues without a request. Until then `/health` says `waiting`, and
models are served all the while.
"""
