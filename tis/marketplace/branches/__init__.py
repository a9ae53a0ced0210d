"""Places of a shop beside its own address, and units that move between them.

The shares of a product are in `tis/marketplace/kit/branch_shares.py`, and change under the lock of the product.
Reasons: `docs/decisions/0150-places-of-a-shop.md`.
"""
