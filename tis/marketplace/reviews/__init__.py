"""Reviews of products, and their moderation.

A review changes the sum, the count and the rank of its product in one UPDATE, so that concurrent reviews all count.
The shop answers a review once (`answers`), and may change or delete what it said.
A review by a buyer of a completed sale is marked, whichever comes first, and counts like three others.
"""
