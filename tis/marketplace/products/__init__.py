"""Products: CRUD, prices, comparison and delivery advice.

A route calls one function of `service` in `RequestContext.writing` and returns the view. A change locks the product's
row first, so version, stock and reserved units are still those that were checked. `write_products` inserts prices,
stock movements and audit entries in the same transaction and calls `ProductSearch.refresh`. `change_products` changes
many products of a shop, all or none. `advise` (pickup, courier or parcel) and `compare` are pure functions.
"""
