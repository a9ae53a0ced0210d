"""Promotions: a lower price for a while, shown beside the normal price and the lowest of the 30 days before.

Reasons: `docs/decisions/0146-promotions-and-alerts.md`.
"""
