"""Stored responses and conversations: sessions of `streaming` with a document of items.

A response is a session with one turn; its sequence number is the index of the event. Its input items are the session's
document, the response object is what the last event says (`ResponseStore.current`). A conversation is a session with
only a document: items and ids of responses. `ResponseStore.items_until` walks the history, so nothing is copied:
`docs/decisions/0011-responses-and-idempotency.md`.
"""
