"""Limits before any key is checked: the head of a request, its deadlines, and connections.

`protocol` reads requests from a connection and refuses what breaks a limit, `connections` counts and times connections,
`descriptors` says how many there can be, `refusal` writes the response, log line and metric. `body_deadline` is a
middleware, so it holds under plain uvicorn, too; the rest is set by `tis serve` and `python main.py`
(`docs/decisions/0020-what-a-request-may-cost.md`).
"""
