"""What an account is told: `GET /api/notices/stream`, mails, and webhooks of shops.

The outbox (`tis/marketplace/kit/notice_outbox.py`) is written by the transaction that changes something, and with it
what goes out (`notice_deliveries.py`). Readers of the stream are woken by `NoticeHub`; `NoticeMailSender` and
`WebhookSender` send. Reasons: `docs/decisions/0136-notices.md`, `docs/decisions/0144-notices-that-go-out.md`.
"""
