"""What goes out of the outbox: a row for each notice and channel, in the transaction of the notice.

Reasons: `docs/decisions/0144-notices-that-go-out.md`.
"""

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import delete, insert, or_, select, update
from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.kit.news import NEWS_KINDS, News
from tis.marketplace.kit.notice_preferences import mailboxes_of, preferences_of
from tis.marketplace.tables import NoticeDelivery, NoticePreferences, Webhook

TRIED_FOR = timedelta(hours=24)
_SHOP = "supplier:"
NoticeRow = Mapping[str, Any]  # account, number, type, data, created_at


@dataclass(frozen=True)
class WebhookRules:
    max_per_supplier: int = 5
    allow_http: bool = False
    call_seconds: float = 10
    off_after_hours: float = 72
    max_waiting: int = 10_000


def store_deliveries(session: Session, notices: Sequence[NoticeRow], *, by_mail: bool) -> bool:
    """Returns whether there are any."""
    rows = _mails(session, notices) if by_mail else []
    rows += _calls(session, notices)
    if rows:
        session.execute(insert(NoticeDelivery), rows)
    return bool(rows)


def delivery_row(
    notice: NoticeRow, channel: str, due_at: datetime, webhook_id: int | None = None, message_id: str | None = None
) -> dict[str, Any]:
    copied = {name: notice[name] for name in ("account", "number", "type", "data", "created_at")}
    ends = {"due_at": due_at, "give_up_at": due_at + TRIED_FOR}
    return {**copied, **ends, "channel": channel, "webhook_id": webhook_id, "message_id": message_id}


def new_message_id() -> str:
    return uuid4().hex


def forget_deliveries(session: Session, accounts: Collection[str]) -> None:
    for table in (NoticeDelivery, NoticePreferences):
        session.execute(delete(table).where(table.account.in_(accounts)))


def turn_off_webhooks_of(session: Session, account: str, supplier_id: int | None = None) -> list[News]:
    """Of one who may no longer set any: the address may be theirs, or they know the secret, so it is another one
    then. Another owner looks at it, makes a secret, and turns it on again. Returns what the shops are told."""
    own = [or_(Webhook.set_by == account, Webhook.secret_by == account)]
    if supplier_id is not None:
        own.append(Webhook.supplier_id == supplier_id)
    rows = session.scalars(select(Webhook).where(*own).order_by(Webhook.id).with_for_update(key_share=True)).all()
    for row in rows:
        row.set_by = row.secret_by = row.former_seed = row.former_until = None
        row.seed = new_webhook_seed()
        switch_off(session, row, "owner_left", now())
    return [
        News("webhook.owner_left", {"webhook_id": row.id, "supplier_id": row.supplier_id}, None, row.supplier_id)
        for row in rows
    ]


def switch_off(session: Session, row: Webhook, reason: str, moment: datetime) -> None:
    """What waits is on the dead list then, from which an owner sends it again."""
    row.status, row.off_reason = "off", reason
    session.flush()
    waiting = NoticeDelivery.webhook_id == row.id, NoticeDelivery.status == "waiting"
    ended = update(NoticeDelivery).where(*waiting).values(status="dead", ended_at=moment, result="webhook off")
    session.execute(ended, execution_options={"synchronize_session": False})


def new_webhook_seed() -> str:
    return secrets.token_hex(32)


def _mails(session: Session, notices: Sequence[NoticeRow]) -> list[dict[str, Any]]:
    preferences = preferences_of(session, {one["account"] for one in notices})
    wanted = [one for one in notices if NEWS_KINDS[one["type"]].group in preferences[one["account"]].mail]
    mailboxes = mailboxes_of(session, {one["account"] for one in wanted})
    return [
        delivery_row(one, "mail", preferences[one["account"]].due(one["created_at"]))
        for one in wanted
        if one["account"] in mailboxes and not _comes_to_the_shop(one, mailboxes)
    ]


def _comes_to_the_shop(notice: NoticeRow, mailboxes: Mapping[str, str]) -> bool:
    """A member whose mailbox is that of the shop, too, gets the mail of the shop, and no second one."""
    if notice["data"]["role"] != "shop" or notice["account"].startswith(_SHOP):
        return False
    return mailboxes.get(f"{_SHOP}{notice['data'].get('supplier_id')}") == mailboxes[notice["account"]]


def _calls(session: Session, notices: Sequence[NoticeRow]) -> list[dict[str, Any]]:
    """To the programs of shops: what the shop's own account is told as a shop."""
    told = [one for one in notices if one["account"].startswith(_SHOP) and one["data"]["role"] == "shop"]
    if not told:
        return []
    ids = {int(one["account"].removeprefix(_SHOP)) for one in told}
    on = select(Webhook.id, Webhook.supplier_id, Webhook.groups)
    webhooks = session.execute(on.where(Webhook.supplier_id.in_(ids), Webhook.status == "on").order_by(Webhook.id))
    listening = [(number, f"{_SHOP}{shop}", groups) for number, shop, groups in webhooks]
    return [
        delivery_row(one, "webhook", one["created_at"], number, new_message_id())
        for one in told
        for number, account, groups in listening
        if one["account"] == account and NEWS_KINDS[one["type"]].group in groups
    ]
