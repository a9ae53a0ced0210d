"""Orders: what a buyer asks of one shop, from the draft to the goods in hand, and its money.

`states` is the table of moves that code, tests, documents and pages share.
"""
