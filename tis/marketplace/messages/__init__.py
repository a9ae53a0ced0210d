"""Messages between a buyer and a shop, about a product or an order: plain text and pictures, read marks, reports.

The assistant may draft the answer of the shop from the product's own facts; a person sends it
(`docs/decisions/0149-messages.md`).
"""
