"""Webhooks of a shop: addresses that its programs listen at, their secrets, and what was sent there.

Only owners have them. Headers and signatures follow Standard Webhooks 1.0 (standardwebhooks.com).
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from tis.errors import BadRequest, Conflict, NotFound
from tis.marketplace.auth.accounts import note_of_account, supplier_account
from tis.marketplace.columns import now
from tis.marketplace.kit.notice_deliveries import (
    TRIED_FOR,
    WebhookRules,
    delivery_row,
    new_message_id,
    new_webhook_seed,
    switch_off,
)
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.signing import Signer
from tis.marketplace.notices.webhook_http import usable_url
from tis.marketplace.tables import NoticeDelivery, Webhook
from tis.network.url import NoUrl

DeliveryStatus = Literal["waiting", "sent", "dead"]
PING = "ping"
_SECRET_PREFIX = "whsec_"
_FORMER_SECRET_VALID = timedelta(days=1)
MAX_SENT_AGAIN = 500  # by one request
_MAX_PINGS = 10  # that wait


def create_webhook(
    session: Session, principal: Principal, supplier_id: int, url: str, groups: Sequence[str], rules: WebhookRules
) -> Webhook:
    """The caller has locked the row of the supplier."""
    _require_usable(url, rules)
    of_shop = select(func.count()).where(Webhook.supplier_id == supplier_id)
    if (session.scalar(of_shop) or 0) >= rules.max_per_supplier:
        raise Conflict(
            f"A shop has at most {rules.max_per_supplier} webhooks: delete one first.", code="too_many_webhooks"
        )
    row = Webhook(
        supplier_id=supplier_id,
        url=url,
        groups=sorted(set(groups)),
        seed=new_webhook_seed(),
        set_by=principal.account,
        secret_by=principal.account,
    )
    session.add(row)
    session.flush()
    _note(session, principal, row, "webhook.create")
    return row


def list_webhooks(session: Session, supplier_id: int) -> Sequence[Webhook]:
    return session.scalars(select(Webhook).where(Webhook.supplier_id == supplier_id).order_by(Webhook.id)).all()


def find_webhook(session: Session, supplier_id: int, webhook_id: int, *, locked: bool = False) -> Webhook:
    own = select(Webhook).where(Webhook.id == webhook_id, Webhook.supplier_id == supplier_id)
    row = session.scalar(own.with_for_update(key_share=True) if locked else own)
    if row is None:
        raise NotFound("Webhook not found")
    return row


def change_webhook(
    session: Session, principal: Principal, row: Webhook, values: dict[str, Any], rules: WebhookRules
) -> None:
    """`url`, `groups` and `is_on`, as far as they are there. The address stays that of who set it."""
    if "url" in values and values["url"] != row.url:
        _require_usable(values["url"], rules)
        row.url, row.set_by = values["url"], principal.account
    if "groups" in values:
        row.groups = sorted(set(values["groups"]))
    if values.get("is_on") is False and row.status == "on":
        switch_off(session, row, "owner", now())
    elif values.get("is_on") and row.status == "off":
        row.status, row.off_reason = "on", None
        row.failing_since, row.num_failures, row.paused_until = None, 0, None
    _note(session, principal, row, "webhook.change", **dict.fromkeys(values, True))


def delete_webhook(session: Session, principal: Principal, row: Webhook) -> None:
    _note(session, principal, row, "webhook.delete")
    session.delete(row)
    session.flush()
    session.execute(delete(NoticeDelivery).where(NoticeDelivery.webhook_id == row.id))


def renew_secret(session: Session, principal: Principal, row: Webhook) -> None:
    """For a day the secret before signs, too."""
    row.former_seed, row.former_until = row.seed, now() + _FORMER_SECRET_VALID
    row.seed, row.secret_by = new_webhook_seed(), principal.account
    _note(session, principal, row, "webhook.secret")


def add_ping(session: Session, row: Webhook) -> NoticeDelivery:
    if row.status == "off":
        raise Conflict("This webhook is off: turn it on first.", code="webhook_off")
    waiting = NoticeDelivery.webhook_id == row.id, NoticeDelivery.status == "waiting", NoticeDelivery.type == PING
    if (session.scalar(select(func.count()).where(*waiting)) or 0) >= _MAX_PINGS:
        raise Conflict("Some pings are waiting already.", code="pings_waiting")
    moment, account = now(), supplier_account(row.supplier_id)
    ping = {"account": account, "number": 0, "type": PING, "data": {"webhook_id": row.id}, "created_at": moment}
    delivery = NoticeDelivery(**delivery_row(ping, "webhook", moment, row.id, new_message_id()))
    session.add(delivery)
    session.flush()
    return delivery


def list_deliveries(
    session: Session, webhook_id: int, status: DeliveryStatus | None, before: int | None, limit: int
) -> Sequence[NoticeDelivery]:
    """Newest first."""
    wanted = [NoticeDelivery.webhook_id == webhook_id]
    if status is not None:
        wanted.append(NoticeDelivery.status == status)
    if before is not None:
        wanted.append(NoticeDelivery.id < before)
    return session.scalars(select(NoticeDelivery).where(*wanted).order_by(NoticeDelivery.id.desc()).limit(limit)).all()


def send_again(session: Session, row: Webhook, ids: Sequence[int] | None) -> int:
    """Those of the dead list, oldest first, with the ids that they had: a receiver knows them again."""
    if row.status == "off":
        raise Conflict("This webhook is off: turn it on first.", code="webhook_off")
    dead = select(NoticeDelivery.id).where(NoticeDelivery.webhook_id == row.id, NoticeDelivery.status == "dead")
    if ids is not None:
        dead = dead.where(NoticeDelivery.id.in_(ids))
    found = session.scalars(dead.order_by(NoticeDelivery.id).limit(MAX_SENT_AGAIN)).all()
    moment = now()
    waits = {"status": "waiting", "due_at": moment, "give_up_at": moment + TRIED_FOR, "tries": 0, "ended_at": None}
    again = update(NoticeDelivery).where(NoticeDelivery.id.in_(found)).values(**waits)
    session.execute(again, execution_options={"synchronize_session": False})
    return len(found)


def secret_of(signer: Signer, seed: str) -> str:
    return _SECRET_PREFIX + base64.b64encode(_key_of(signer, seed)).decode()


def signed_headers(signer: Signer, row: Webhook, message_id: str, body: bytes, moment: datetime) -> dict[str, str]:
    seeds = [row.seed]
    if row.former_seed is not None and row.former_until is not None and row.former_until > moment:
        seeds.append(row.former_seed)
    seconds = str(int(moment.timestamp()))
    signed = f"msg_{message_id}.{seconds}.".encode() + body
    digests = (hmac.new(_key_of(signer, seed), signed, hashlib.sha256).digest() for seed in seeds)
    return {
        "webhook-id": f"msg_{message_id}",
        "webhook-timestamp": seconds,
        "webhook-signature": " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests),
    }


def body_of(delivery: NoticeDelivery) -> bytes:
    """The same in every try: receivers sort by `number`, as a later one may come first."""
    at = delivery.created_at.isoformat().replace("+00:00", "Z")
    said = {"type": delivery.type, "timestamp": at, "number": delivery.number, "data": delivery.data}
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


def _require_usable(url: str, rules: WebhookRules) -> None:
    try:
        usable_url(url, allow_http=rules.allow_http)
    except NoUrl:
        schemes = "https:// or http://" if rules.allow_http else "https://"
        raise BadRequest(f"`url` must be an address that begins with {schemes}, at the usual port.") from None


def _key_of(signer: Signer, seed: str) -> bytes:
    """Whoever reads the database alone can sign nothing."""
    return bytes.fromhex(signer.digest(f"webhook\n{seed}".encode()))


def _note(session: Session, principal: Principal, row: Webhook, what: str, **changes: Any) -> None:
    note_of_account(session, supplier_account(row.supplier_id), what, principal, webhook=row.id, **changes)
