"""Alerts of users on products: made, listed, deleted, and what a look at a product makes of them."""

from collections.abc import Sequence

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound
from tis.marketplace.alerts.schemas import AlertForm, AlertView
from tis.marketplace.auth.accounts import lock_account, user_account
from tis.marketplace.columns import now
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit.fields import ClosedReason
from tis.marketplace.kit.news import News
from tis.marketplace.kit.notice_outbox import notify
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import require_user
from tis.marketplace.products.service import find_product
from tis.marketplace.tables import Product, ProductAlert, ProductFacts, Supplier

CAN_BE_BOUGHT = 1  # as `sellable`
_WITH_GOODS = (
    select(ProductAlert, Product, Supplier)
    .join(Product, Product.id == ProductAlert.product_id)
    .join(Supplier, Supplier.id == Product.supplier_id)
)


def add_alert(
    session: Session, principal: Principal, product_id: int, form: AlertForm, rules: ServiceRules
) -> AlertView:
    """One of each kind for a user and a product: another one takes its place."""
    user_id = require_user(principal)
    lock_account(session, user_account(user_id))
    product = find_product(session, principal, product_id)
    # A change of the product waits: it is looked at after this is committed, or it is committed and seen here.
    session.execute(select(Product.id).where(Product.id == product_id).with_for_update(read=True))
    session.refresh(product, ["price", "on_hand", "reserved", "is_available"])
    price, is_buyable = product.price, product.is_available and product.on_hand > product.reserved
    if form.kind == "stock" and is_buyable:
        raise Conflict("It is in stock.")
    if form.max_price is not None and is_buyable and price <= form.max_price:
        raise Conflict(f"It can be bought for {price} already.")
    same = ProductAlert.user_id == user_id, ProductAlert.product_id == product_id, ProductAlert.kind == form.kind
    alert = session.scalar(select(ProductAlert).where(*same))
    if alert is None:
        of_user = select(func.count()).where(ProductAlert.user_id == user_id)
        if (session.scalar(of_user) or 0) >= rules.max_alerts_per_user:
            raise Conflict(f"A user has at most {rules.max_alerts_per_user} alerts: delete one first.")
        alert = ProductAlert(user_id=user_id, product_id=product_id, kind=form.kind)
        session.add(alert)
    alert.max_price = form.max_price
    # Of `below`, what cannot be bought now is news as soon as it can be, if it is cheap enough then.
    alert.last_price = price if is_buyable or form.kind == "fall" else None
    session.flush()
    return _view(alert, product, product.supplier)


def list_alerts(
    session: Session, principal: Principal, product_id: int | None, before: int | None, limit: int
) -> Sequence[AlertView]:
    """Newest first."""
    wanted = [ProductAlert.user_id == require_user(principal)]
    wanted += [ProductAlert.product_id == product_id] if product_id else []
    wanted += [ProductAlert.id < before] if before else []
    found = session.execute(_WITH_GOODS.where(*wanted).order_by(ProductAlert.id.desc()).limit(limit))
    return [_view(*row) for row in found]


def delete_alert(session: Session, principal: Principal, alert_id: int) -> AlertView:
    user_id = require_user(principal)
    own = ProductAlert.id == alert_id, ProductAlert.user_id == user_id
    row = session.execute(_WITH_GOODS.where(*own)).one_or_none()
    if row is None:
        raise NotFound("Alert not found")
    alert, product, supplier = row
    view = _view(alert, product, supplier)
    session.delete(alert)
    return view


def tell_alerts(session: Session, product_ids: Sequence[int], after: int, limit: int) -> int | None:
    """Looks at the alerts on these products with a greater id than `after`: the last id, or None behind the last one.

    What cannot be bought is left alone, as the price of goods that are sold out is no news.
    """
    rows = (
        select(ProductAlert)
        .where(ProductAlert.product_id.in_(product_ids), ProductAlert.id > after)
        .order_by(ProductAlert.id)
        .limit(limit)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    alerts = session.scalars(rows).all()
    columns = ProductFacts.product_id, ProductFacts.price, ProductFacts.supplier_id
    bought = ProductFacts.product_id.in_(product_ids), ProductFacts.sellable == CAN_BE_BOUGHT
    facts = {row.product_id: row for row in session.execute(select(*columns).where(*bought))} if alerts else {}
    for alert in alerts:
        if found := facts.get(alert.product_id):
            _look(session, alert, found)
    session.flush()
    return alerts[-1].id if len(alerts) == limit else None


def _look(session: Session, alert: ProductAlert, facts: Row[int, int, int]) -> None:
    price, before, limit = facts.price, alert.last_price, alert.max_price
    told = {"alert_id": alert.id, "product_id": alert.product_id, "supplier_id": facts.supplier_id, "price": price}
    buyer = user_account(alert.user_id)
    if alert.kind == "stock":
        notify(session, [News("stock.back", told, buyer=buyer)])
        session.delete(alert)  # it is told once, and then the request is done
        return
    if limit is None:
        has_fallen = before is not None and price < before
    else:
        has_fallen = price <= limit and (before is None or before > limit)
    if has_fallen:
        was = {} if before is None else {"price_before": before}
        notify(session, [News("price.fell", told | was, buyer=buyer)])
        alert.told_at = now()
    alert.last_price = price


def _view(alert: ProductAlert, product: Product, supplier: Supplier) -> AlertView:
    """What is gone may come back: its alert stays, and says no price."""
    reason: ClosedReason | None = None
    if not supplier.is_active:
        reason = "shop_closed" if supplier.deleted_at is not None else "shop_suspended"
    elif product.deleted_at is not None:
        reason = "product_gone"
    own = ("id", "product_id", "kind", "max_price", "created_at", "told_at")
    return AlertView(
        **{one: getattr(alert, one) for one in own},
        product_name=product.name,
        price=None if reason else product.price,
        closed_reason=reason,
    )
