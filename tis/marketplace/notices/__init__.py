"""What an account is told while it looks: `GET /api/notices/stream`, server-sent events that resume by their id.

The outbox (`tis/marketplace/kit/notice_outbox.py`) is written by the transaction that changes something, and readers
are woken by `NoticeHub`. Reasons: `docs/decisions/0136-notices.md`.
"""
