"""How a shop takes orders, for its owners to set; and what delivery costs, for everybody."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from sqlalchemy.orm import Session

from tis.errors import NotFound, Unprocessable
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.docs import example_body
from tis.marketplace.kit.fields import MAX_ID, Id, Latitude, Longitude
from tis.marketplace.kit.geo import Point
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.kit.versions import IfMatchDep, set_etag
from tis.marketplace.orders.examples import QUOTE_RESPONSES, RULES_FORM, RULES_RESPONSES
from tis.marketplace.orders.payment_methods import offered_methods
from tis.marketplace.orders.rules import (
    bands_of,
    delivery_price,
    rules_for_member,
    rules_of,
    set_rules,
    shown_place_of,
)
from tis.marketplace.orders.schemas import BandView, Delivery, DeliveryOffer, OrderRulesForm, OrderRulesView, QuoteView
from tis.marketplace.tables import ShopOrderRules, Supplier

router = APIRouter(tags=["orders"], route_class=CheckedRoute)
_DELIVERIES: tuple[Delivery, ...] = ("pickup", "courier", "expedition")


@router.get("/suppliers/{supplier_id}/order-rules", responses=RULES_RESPONSES)
def look_at_rules(supplier_id: Id, context: ContextDep, response: Response) -> OrderRulesView:
    """Read how a supplier takes orders, for its members."""
    with context.reading() as (session, principal):
        return _view(session, rules_for_member(session, principal, supplier_id), response)


@router.put("/suppliers/{supplier_id}/order-rules", responses=RULES_RESPONSES)
def change_rules(
    supplier_id: Id,
    body: Annotated[OrderRulesForm, example_body(RULES_FORM)],
    context: ContextDep,
    if_match: IfMatchDep,
    response: Response,
) -> OrderRulesView:
    """Set how a supplier takes orders, for its owners. What is left out gets its default.

    Orders that were placed keep what was agreed.
    """
    with context.writing() as (session, principal):
        rules = set_rules(session, principal, supplier_id, body, if_match.with_body_version(body.version))
        return _view(session, rules, response)


@router.get("/suppliers/{supplier_id}/order-quote", responses=QUOTE_RESPONSES)
def quote(
    supplier_id: Id,
    context: ContextDep,
    latitude: Annotated[Latitude | None, Query(description="of where the courier would go")] = None,
    longitude: Annotated[Longitude | None, Query()] = None,
    branch_id: Annotated[int, Query(ge=0, le=MAX_ID, description="the place that sends; 0: the own address")] = 0,
) -> QuoteView:
    """Read how goods come from a supplier, what that costs and how to pay, without an order.

    Distances are measured from the place that the shop shows.
    """
    if (latitude is None) != (longitude is None):
        raise Unprocessable("latitude and longitude come together")
    place = None if latitude is None or longitude is None else Point(latitude, longitude)
    with context.reading() as (session, _):
        supplier = session.get(Supplier, supplier_id)
        if supplier is None or not supplier.is_active:
            raise NotFound("Supplier not found")
        rules, bands = rules_of(session, supplier_id), bands_of(session, supplier_id)
        origin = shown_place_of(session, supplier, branch_id)
        prices = {one: delivery_price(one, supplier, rules, bands, place, origin) for one in _DELIVERIES}
        return QuoteView(
            supplier_id=supplier_id,
            takes_orders=rules.takes_orders,
            deliveries=[DeliveryOffer(delivery=delivery, **vars(price)) for delivery, price in prices.items()],
            payment_methods=list(offered_methods(session, supplier_id)),
            accept_hours=rules.accept_hours,
            pay_hours=rules.pay_hours,
            handover_hours=rules.handover_hours,
            return_days=rules.return_days,
            tax_rate=rules.tax_rate,
        )


def _view(session: Session, rules: ShopOrderRules, response: Response) -> OrderRulesView:
    set_etag(response, rules.version)
    shown = {name: getattr(rules, name) for name in OrderRulesForm.model_fields if hasattr(rules, name)}
    bands = bands_of(session, rules.supplier_id)
    return OrderRulesView(
        **shown,
        courier_bands=[BandView.model_validate(band, from_attributes=True) for band in bands],
        payment_methods=list(offered_methods(session, rules.supplier_id)),
    )
