"""Orders: what a buyer asks of one shop, from the draft to the goods in hand, and its money.

`states` is the table of moves that code, tests, documents and pages share; `moving` makes them, each with its stock
(`order_stock`), its news and its history in one transaction. `drafting` makes orders, `shop_moves` is what the shop
does, `clock` moves what is due, `ending` ends the orders of accounts that are deleted. `rules` is how a shop takes
orders.

Units of an order count in `reserved` of the products while its state holds units. Locks: supplier, buyer, reservations,
order, reviews, products, search. Reasons: `docs/decisions/0142-orders.md`.
"""
