"""Which webhook is called next, and what becomes of a call: the rows of the database.

Every server asks: it takes a webhook for a minute, by an UPDATE, and sends what is due there in order. A server that is
killed leaves it to another after that minute; what it had sent and not marked is sent again, with the same id.
"""

import logging
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from sqlalchemy import CursorResult, and_, exists, not_, or_, select, update
from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.kit.news import News
from tis.marketplace.kit.notice_deliveries import WebhookRules, switch_off
from tis.marketplace.kit.notice_outbox import notify
from tis.marketplace.kit.signing import Signer
from tis.marketplace.notices.webhook_http import PostOutcome
from tis.marketplace.notices.webhooks import body_of, signed_headers
from tis.marketplace.tables import NoticeDelivery, Webhook

_log = logging.getLogger("tis.marketplace")
OpenTransaction = Callable[[], AbstractContextManager[Session]]
TAKEN_FOR = timedelta(seconds=60)  # longer than one call takes; each call takes it anew
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
_MAX_SLOW_SEEN = 1000
# After the first try, the second, and so on; the last one again and again until a delivery is given up.
_PAUSES = [timedelta(seconds=one) for one in (5, 60, 300, 1800, 7200, 18_000, 28_800)]
_MAX_PAUSE_OF_WEBHOOK = 300  # seconds, from 5 on, doubled at each failure in a row
_MAX_RETRY_AFTER = 3600
_MIN_FAILURES = 10  # in a row, before it may be switched off


@dataclass(frozen=True)
class WebhookCall:
    delivery_id: int
    url: str
    headers: dict[str, str]
    body: bytes


class WebhookQueue:
    def __init__(
        self,
        reading: OpenTransaction,
        writing: OpenTransaction,
        signer: Callable[[], Signer],
        rules: WebhookRules,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._reading, self._writing = reading, writing
        self._signer = signer
        self._rules = rules
        self._clock = clock

    def take(self, num: int, num_slow: int, known_slow: frozenset[int]) -> list[int]:
        """Of those with something due. Those that fail come last, and only a few of them at once."""
        moment = self._clock()
        is_free = or_(Webhook.taken_until.is_(None), Webhook.taken_until <= moment)
        has_due = exists().where(NoticeDelivery.webhook_id == Webhook.id, *_is_due(moment))
        is_ready = and_(
            Webhook.status == "on", or_(Webhook.paused_until.is_(None), Webhook.paused_until <= moment), is_free
        )
        with self._reading() as session:
            ready = select(Webhook.id, Webhook.last_at).where(is_ready, has_due)
            is_slow = or_(Webhook.num_failures > 0, Webhook.id.in_(known_slow))
            found = [row.id for row in session.execute(ready.where(not_(is_slow)).limit(num))]
            if num_slow > 0:
                # Whoever waits longest goes first.
                slow = sorted(
                    session.execute(ready.where(is_slow).limit(_MAX_SLOW_SEEN)),
                    key=lambda row: row.last_at or _LONG_AGO,
                )
                found += [row.id for row in slow[:num_slow]]
        if not found:
            return []
        with self._writing() as session:
            taken = {"taken_until": moment + TAKEN_FOR}
            return [
                webhook_id
                for webhook_id in sorted(found)  # other servers lock them in this order, too
                if _changed(session, update(Webhook).where(Webhook.id == webhook_id, is_free).values(**taken))
            ]

    def next_call(self, webhook_id: int) -> WebhookCall | None:
        moment = self._clock()
        with self._reading() as session:
            row = session.get(Webhook, webhook_id)
            due = select(NoticeDelivery).where(NoticeDelivery.webhook_id == webhook_id, *_is_due(moment))
            delivery = session.scalar(due.order_by(NoticeDelivery.id).limit(1))
            if row is None or row.status != "on" or delivery is None:
                return None
            body = body_of(delivery)
            assert delivery.message_id is not None
            headers = signed_headers(self._signer(), row, delivery.message_id, body, moment)
            return WebhookCall(delivery.id, row.url, headers, body)

    def mark(self, webhook_id: int, delivery_id: int, outcome: PostOutcome) -> None:
        moment = self._clock()
        with self._writing() as session:
            row = session.scalar(select(Webhook).where(Webhook.id == webhook_id).with_for_update(key_share=True))
            delivery = session.get(NoticeDelivery, delivery_id, with_for_update=True)
            if row is None or delivery is None:
                return  # deleted meanwhile
            row.last_at, row.last_result, row.taken_until = moment, outcome.result, moment + TAKEN_FOR
            delivery.tries, delivery.result = delivery.tries + 1, outcome.result
            if outcome.is_success:
                delivery.status, delivery.ended_at = "sent", moment
                row.failing_since, row.num_failures, row.paused_until = None, 0, None
            else:
                self._failed(session, row, delivery, outcome, moment)
        _log.info("webhook %d, delivery %d: %s", webhook_id, delivery_id, outcome.result)

    def give_back(self, webhook_id: int) -> None:
        with self._writing() as session:
            _changed(session, update(Webhook).where(Webhook.id == webhook_id).values(taken_until=None))
            self._give_up_old(session, webhook_id, self._clock())

    def _failed(
        self, session: Session, row: Webhook, delivery: NoticeDelivery, outcome: PostOutcome, moment: datetime
    ) -> None:
        row.failing_since, row.num_failures = row.failing_since or moment, row.num_failures + 1
        asked = timedelta(seconds=min(outcome.retry_after, _MAX_RETRY_AFTER))
        pause = min(_MAX_PAUSE_OF_WEBHOOK, 5 * 2 ** min(row.num_failures - 1, 10))
        row.paused_until = moment + max(asked, timedelta(seconds=pause * random.uniform(0.8, 1.2)))
        wait = _PAUSES[min(delivery.tries, len(_PAUSES)) - 1] * random.uniform(0.8, 1.2)
        delivery.due_at = moment + max(asked, wait)
        off_after = timedelta(hours=self._rules.off_after_hours)
        has_failed_long = row.num_failures >= _MIN_FAILURES and moment - row.failing_since >= off_after
        if row.status == "on" and (outcome.status == 410 or has_failed_long):
            switch_off(session, row, "gone" if outcome.status == 410 else "failing", moment)
            notify(
                session,
                [News("webhook.off", {"webhook_id": row.id, "supplier_id": row.supplier_id}, None, row.supplier_id)],
            )
            _log.warning("webhook %d of supplier %d is off: %s", row.id, row.supplier_id, outcome.result)

    def _give_up_old(self, session: Session, webhook_id: int, moment: datetime) -> None:
        """What was tried for a day, or would be then, and the oldest ones beyond the bound."""
        waiting = NoticeDelivery.webhook_id == webhook_id, NoticeDelivery.status == "waiting"
        newest = select(NoticeDelivery.id).where(*waiting).order_by(NoticeDelivery.id.desc())
        last = session.scalar(newest.offset(self._rules.max_waiting).limit(1)) or 0
        is_late = or_(NoticeDelivery.due_at >= NoticeDelivery.give_up_at, NoticeDelivery.give_up_at <= moment)
        was_tried = NoticeDelivery.tries > 0  # what waited while this server was away was not
        is_over = or_(and_(is_late, was_tried), NoticeDelivery.id <= last)
        dead = update(NoticeDelivery).where(*waiting, is_over).values(status="dead", ended_at=moment)
        session.execute(dead, execution_options={"synchronize_session": False})


def _is_due(moment: datetime) -> tuple[Any, ...]:
    return NoticeDelivery.status == "waiting", NoticeDelivery.due_at <= moment


def _changed(session: Session, statement: Any) -> int:
    result = session.execute(statement, execution_options={"synchronize_session": False})
    return cast(CursorResult[Any], result).rowcount
