"""Groups of variants: one thing in several sizes, colours and the like, each a product with stock and price of its own.

`docs/decisions/0145-variants.md` says why a variant is a product.
"""
