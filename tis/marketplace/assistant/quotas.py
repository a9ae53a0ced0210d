"""The daily quota of model tokens per user. The database counts: restarts forget nothing, several servers share it."""

from datetime import date

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.auth.accounts import account_holder, user_account
from tis.marketplace.tables import ChatUsage


def tokens_used(session: Session, user_id: int, today: date) -> int:
    used = select(ChatUsage.tokens).where(ChatUsage.user_id == user_id, ChatUsage.day == today)
    return session.scalar(used) or 0


def tokens_left(session: Session, user_id: int, today: date, quota: int) -> int | None:
    """None: no quota is set (`quota` 0). Never negative, though the last answer of a day may use more than was left."""
    return max(0, quota - tokens_used(session, user_id, today)) if quota else None


def count_tokens(session: Session, user_id: int, today: date, tokens: int) -> None:
    """Of an account that was deleted meanwhile nothing is counted."""
    # The lock also keeps two answers of one user from inserting the row of a day at once.
    if tokens <= 0 or account_holder(session, user_account(user_id), locked=True) is None:
        return
    usage = session.get(ChatUsage, (user_id, today), populate_existing=True)
    if usage is None:
        session.add(ChatUsage(user_id=user_id, day=today, tokens=tokens))
    else:
        usage.tokens += tokens
    session.flush()
