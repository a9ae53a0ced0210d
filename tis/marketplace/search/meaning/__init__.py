"""Goods that are near to a sentence in meaning, where few products have its words. Off without an embedding model.

`VectorRenewal` makes a vector of each product in the background and keeps it in the database. `VectorMatrix` has the
vectors in memory. `MeaningSearch` finds the nearest products, and a reranker may sort them; no transaction is open
while a model computes. `fused_list.py` of the search puts what passes the filters behind the products that match all
words: docs/decisions/0101-semantic-candidates.md.
"""
