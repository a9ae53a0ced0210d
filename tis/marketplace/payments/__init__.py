"""How an order is paid: by transfer, by the shop's QRIS code, or on the page of a provider. No data of cards, ever.

What a provider says is a hint: the truth is asked from its `status` (`checks.py`), and applied in one place
(`truth.py`). Why: docs/decisions/0143-payments-are-the-shops.md.
"""
