"""Shops whose owner showed an identity card once: the badge, and what an admin decides where a card is doubtful.

Kept are the day, the method, whether the name matches, and a keyed digest against doubles; nothing that is printed on
the card (`docs/decisions/0148-verified-suppliers.md`).
"""
