"""Webhooks of a shop: news for its programs.

For owners, not for admins, and not for everybody in open mode: a webhook outlives that mode.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from sqlalchemy.orm import Session

from tis.marketplace.auth.accounts import supplier_account
from tis.marketplace.context import ContextDep, MarketServices
from tis.marketplace.kit.docs import example_body, responses
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.paging import Before, Limit, page_response
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.responses import Message, no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.notices import webhooks
from tis.marketplace.notices.schemas import (
    CREATED_WEBHOOK_EXAMPLE,
    DELIVERY_EXAMPLE,
    WEBHOOK_EXAMPLE,
    DeliveriesToRepeat,
    DeliveryView,
    NewWebhook,
    SentAgain,
    WebhookChange,
    WebhookView,
    WebhookWithSecret,
)
from tis.marketplace.policy import require_account_owner
from tis.marketplace.rates import limited
from tis.marketplace.suppliers.schemas import OWNER_REQUIRED
from tis.marketplace.suppliers.service import lock_supplier_for_update, public_supplier
from tis.marketplace.tables import NoticeDelivery, Webhook

router = APIRouter(
    prefix="/suppliers/{supplier_id}/webhooks",
    tags=["notices"],
    route_class=CheckedRoute,
    dependencies=[Depends(no_store)],
)
_NOT_FOUND = {**OWNER_REQUIRED, 404: "Webhook not found"}
_BAD_URL = {400: "`url` must be an address that begins with https://, at the usual port."}
_TOO_MANY = {409: "A shop has at most 5 webhooks: delete one first."}
_OFF = {409: "This webhook is off: turn it on first."}
_TOO_MANY_TESTS = {429: "Too many webhook_tests: at most 60 per hour. Try again in 600 s."}


@router.post("", responses=responses(CREATED_WEBHOOK_EXAMPLE, OWNER_REQUIRED, _BAD_URL, _TOO_MANY))
def create(context: ContextDep, supplier_id: Id, body: NewWebhook) -> WebhookWithSecret:
    """Create a webhook, for the owners of the shop. The answer shows its secret once.

    News of these groups are posted there as they come, signed as Standard Webhooks says: see docs/notices.md.
    """
    rules = context.market.rules.webhooks
    with context.writing() as (session, principal):
        _lock_as_owner(session, principal, supplier_id)
        row = webhooks.create_webhook(session, principal, supplier_id, body.url, body.groups, rules)
        return _with_secret(context.market, row)


@router.get("", responses=responses([WEBHOOK_EXAMPLE], OWNER_REQUIRED))
def listed(context: ContextDep, supplier_id: Id) -> list[WebhookView]:
    """List the webhooks of a shop, with what its last call brought, for its owners."""
    with context.reading() as (session, principal):
        _require_owner(session, principal, supplier_id)
        return [_view(row) for row in webhooks.list_webhooks(session, supplier_id)]


@router.put("/{webhook_id}", responses=responses(WEBHOOK_EXAMPLE, _NOT_FOUND, _BAD_URL))
def change(context: ContextDep, supplier_id: Id, webhook_id: Id, body: WebhookChange) -> WebhookView:
    """Change the address or the groups of a webhook, or turn it off and on, for the owners of the shop."""
    values = {name: value for name, value in body.model_dump(exclude_unset=True).items() if value is not None}
    with context.writing() as (session, principal):
        row = _own(session, principal, supplier_id, webhook_id)
        webhooks.change_webhook(session, principal, row, values, context.market.rules.webhooks)
        session.flush()
        return _view(row)


@router.delete("/{webhook_id}", responses=responses({"detail": "Deleted."}, _NOT_FOUND))
def delete(context: ContextDep, supplier_id: Id, webhook_id: Id) -> Message:
    """Delete a webhook with all that waits for it, for the owners of the shop."""
    with context.writing() as (session, principal):
        webhooks.delete_webhook(session, principal, _own(session, principal, supplier_id, webhook_id))
    return Message(detail="Deleted.")


@router.post("/{webhook_id}/secret", responses=responses(CREATED_WEBHOOK_EXAMPLE, _NOT_FOUND))
def renew_secret(context: ContextDep, supplier_id: Id, webhook_id: Id) -> WebhookWithSecret:
    """Make a new secret, shown once, for the owners of the shop. For a day calls are signed with both."""
    with context.writing() as (session, principal):
        row = _own(session, principal, supplier_id, webhook_id)
        webhooks.renew_secret(session, principal, row)
        session.flush()
        return _with_secret(context.market, row)


@router.post(
    "/{webhook_id}/test",
    responses=responses({**DELIVERY_EXAMPLE, "type": "ping"}, _NOT_FOUND, _OFF, _TOO_MANY_TESTS),
    dependencies=[limited("webhook_tests")],
)
def test(context: ContextDep, supplier_id: Id, webhook_id: Id) -> DeliveryView:
    """Send a `ping`, for the owners of the shop. Its result is in the list of deliveries a moment later."""
    with context.writing() as (session, principal):
        view = _delivery_view(webhooks.add_ping(session, _own(session, principal, supplier_id, webhook_id)))
    context.market.wake_senders()
    return view


@router.get(
    "/{webhook_id}/deliveries",
    response_model=list[DeliveryView],
    responses=responses([DELIVERY_EXAMPLE], _NOT_FOUND),
)
def list_deliveries(
    request: Request,
    context: ContextDep,
    supplier_id: Id,
    webhook_id: Id,
    status: webhooks.DeliveryStatus | None = None,
    before: Before = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List what was sent to a webhook, newest first, for the owners of the shop; `status=dead`: what did not arrive."""
    with context.reading() as (session, principal):
        _require_owner(session, principal, supplier_id)
        webhooks.find_webhook(session, supplier_id, webhook_id)
        rows = webhooks.list_deliveries(session, webhook_id, status, before, limit + 1)
        return page_response(request, rows, limit, _delivery_view, lambda row: row.id)


@router.post(
    "/{webhook_id}/deliveries/retry",
    responses=responses({"num_waiting": 2}, _NOT_FOUND, _OFF, _TOO_MANY_TESTS),
    dependencies=[limited("webhook_tests")],
)
def send_again(
    context: ContextDep,
    supplier_id: Id,
    webhook_id: Id,
    body: Annotated[DeliveriesToRepeat, example_body({"ids": [812, 813]})],
) -> SentAgain:
    """Send deliveries of the dead list again, with the ids that they had, for the owners of the shop."""
    with context.writing() as (session, principal):
        row = _own(session, principal, supplier_id, webhook_id)
        num = webhooks.send_again(session, row, body.ids)
    context.market.wake_senders()
    return SentAgain(num_waiting=num)


def _own(session: Session, principal: Principal, supplier_id: int, webhook_id: int) -> Webhook:
    _lock_as_owner(session, principal, supplier_id)
    return webhooks.find_webhook(session, supplier_id, webhook_id, locked=True)


def _lock_as_owner(session: Session, principal: Principal, supplier_id: int) -> None:
    lock_supplier_for_update(session, principal, supplier_id)
    _require_owner(session, principal, supplier_id)


def _require_owner(session: Session, principal: Principal, supplier_id: int) -> None:
    public_supplier(session, principal, supplier_id)
    require_account_owner(principal, supplier_account(supplier_id))


def _view(row: Webhook) -> WebhookView:
    shown = {name: getattr(row, name) for name in WebhookView.model_fields if name != "former_secret_until"}
    return WebhookView(**shown, former_secret_until=row.former_until)


def _with_secret(market: MarketServices, row: Webhook) -> WebhookWithSecret:
    return WebhookWithSecret(**vars(_view(row)), secret=webhooks.secret_of(market.signer, row.seed))


def _delivery_view(row: NoticeDelivery) -> DeliveryView:
    shown = {name: getattr(row, name) for name in DeliveryView.model_fields if name != "event_id"}
    return DeliveryView(**shown, event_id=f"msg_{row.message_id}")
