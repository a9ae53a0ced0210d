"""Where a reader of notices begins, and what it reads next. The caller is looked at each time."""

from collections.abc import Sequence

from sqlalchemy import func, select

from tis.errors import BadRequest
from tis.marketplace.context import RequestContext
from tis.marketplace.kit.notice_outbox import OPEN, latest_numbers
from tis.marketplace.policy import require_somebody
from tis.marketplace.tables import Notice
from tis.streaming.errors import ReplayGap

MAX_READ = 100  # at once
_READ_ANEW = "read your reservations anew."


def begin(context: RequestContext, cursor: int | None) -> tuple[str, int]:
    """The account of the caller, and the number after which it reads: the latest one without a cursor."""
    with context.reading() as (session, principal):
        require_somebody(principal)
        account = principal.account or OPEN
        latest = latest_numbers(session, [account]).get(account, 0)
        if cursor is None:
            return account, latest
        if cursor > latest:
            raise BadRequest(
                f"There is no notice {cursor} yet: the latest is {latest}.",
                param="last_event_id",
                code="invalid_last_event_id",
            )
        oldest = session.scalar(select(func.min(Notice.number)).where(Notice.account == account)) or latest + 1
        if cursor + 1 < oldest:
            raise ReplayGap(f"Notices before {oldest} are no longer kept: {_READ_ANEW}")
        return account, cursor


def read_after(context: RequestContext, account: str, number: int) -> Sequence[Notice]:
    """At most `MAX_READ`. A session that has ended, or an account that is gone, hears nothing more."""
    with context.reading() as (session, principal):
        require_somebody(principal)
        later = select(Notice).where(Notice.account == account, Notice.number > number)
        notices = session.scalars(later.order_by(Notice.number).limit(MAX_READ)).all()
        if notices and notices[0].number != number + 1:
            raise ReplayGap(f"Notices were deleted while you were reading: {_READ_ANEW}")
        session.expunge_all()
        return notices
