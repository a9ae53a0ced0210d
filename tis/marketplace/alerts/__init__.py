"""What buyers ask to be told: prices that fall, goods that are back in stock, and what a saved search finds anew.

A transaction that changes what buyers find leaves an `UnwatchedChange`; `Watch` looks at these in the background, some
at a time, and writes the notices in the transaction that deletes them. Reasons:
`docs/decisions/0146-promotions-and-alerts.md`.
"""
