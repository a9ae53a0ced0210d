"""Stock: reservations, their expiry, and the ledger of movements.

Buyers see the units on hand less those that are reserved. `reserve` checks and takes in one UPDATE, and the number of
changed rows is the result. `commit` sells, and only the shop may; `release` gives back; a reservation that has seen
neither in time expires. The shop accepts or refuses a reservation (`sales`); an account holds so much (`caps`).
Buyers change the two counters only in `tis/marketplace/stock/counters.py`. Every server has a `Sweeper` that expires
reservations; a reservation that finds too little sweeps its product itself, so no buyer waits for the sweeper.

Locks: suppliers, users, reservations, orders, reviews, products, entries of the search, words, counters of notices;
within a table by id (`tests/marketplace/test_lock_order.py`). The search index is refreshed when the
last unit goes and when the first comes back. Units on hand are the sum of the movements, reserved units the sum of
the held reservations and of the orders that hold units: `tests/marketplace/stock/test_random_order.py` and
`tests/marketplace/orders/test_order_walk.py` run random operations and check it. Reasons:
`docs/decisions/0014-transactions.md`, `0030-reservations-and-reviews.md`.
"""
