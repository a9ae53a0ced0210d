"""Goods for merchant centres, agents and crawlers: the feed, the head of a product's page, the sitemap.

Whoever changes a product marks it (`kit/feed_marks.py`); `feed_log.py` gives the marks numbers, so that a reader gets
what changed since it came last. Reasons: `docs/decisions/0147-agents.md`.
"""
