"""How a shop takes orders, and what it costs to have goods brought."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from tis.errors import NotFound
from tis.marketplace.kit import audit
from tis.marketplace.kit.branch_shares import OWN_ADDRESS
from tis.marketplace.kit.geo import Point, kilometres_between
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.versions import IfMatch
from tis.marketplace.orders.schemas import Delivery, OrderRulesForm
from tis.marketplace.policy import require_owner
from tis.marketplace.products.service import supplier_for_member
from tis.marketplace.tables import Branch, CourierFee, ShopOrderRules, Supplier

_RULES = (
    "takes_orders",
    "accept_hours",
    "pay_hours",
    "handover_hours",
    "return_days",
    "expedition_fee",
    "tax_rate",
    "tax_number",
)


@dataclass(frozen=True)
class DeliveryPrice:
    """What one way of delivery costs, or why the shop does not offer it."""

    fee: int | None = None
    distance_km: float | None = None
    reason: str | None = None


def rules_of(session: Session, supplier_id: int) -> ShopOrderRules:
    """A shop that never said how takes no orders."""
    rules = session.get(ShopOrderRules, supplier_id)
    return rules or ShopOrderRules(supplier_id=supplier_id, version=0, **OrderRulesForm().model_dump(include={*_RULES}))


def bands_of(session: Session, supplier_id: int) -> Sequence[CourierFee]:
    bands = select(CourierFee).where(CourierFee.supplier_id == supplier_id).order_by(CourierFee.up_to_km)
    return session.scalars(bands.execution_options(populate_existing=True)).all()


def set_rules(
    session: Session, principal: Principal, supplier_id: int, form: OrderRulesForm, if_match: IfMatch
) -> ShopOrderRules:
    """All of them: what the form leaves out gets its default. For owners."""
    require_owner(principal, supplier_id)
    locked = select(Supplier.id).where(Supplier.id == supplier_id, Supplier.deleted_at.is_(None))
    if session.scalar(locked.with_for_update(key_share=True)) is None:
        raise NotFound("Supplier not found")
    rules, bands = rules_of(session, supplier_id), bands_of(session, supplier_id)
    if_match.check(rules.version)
    values = form.model_dump(include={*_RULES})
    changed = {name: [getattr(rules, name), new] for name, new in values.items() if getattr(rules, name) != new}
    before, after = ([[band.up_to_km, band.fee] for band in some] for some in (bands, form.courier_bands))
    if before != after:
        changed["courier_bands"] = [before, after]
        session.execute(delete(CourierFee).where(CourierFee.supplier_id == supplier_id))
        session.add_all(CourierFee(supplier_id=supplier_id, **band.model_dump()) for band in form.courier_bands)
    if changed or not rules.version:
        for name, value in values.items():
            setattr(rules, name, value)
        rules.version += 1
        session.add(rules)
        audit.note(session, principal, "order_rules.change", "supplier", supplier_id, **changed)
    session.flush()
    return rules


def rules_for_member(session: Session, principal: Principal, supplier_id: int) -> ShopOrderRules:
    supplier_for_member(session, principal, supplier_id)
    return rules_of(session, supplier_id)


def shown_place_of(session: Session, supplier: Supplier, branch_id: int) -> Point:
    """The place of the shop that sends, as everybody may know it."""
    if branch_id == OWN_ADDRESS:
        return Point(supplier.public_latitude, supplier.public_longitude)
    branch = session.get(Branch, branch_id, populate_existing=True)
    if branch is None or branch.supplier_id != supplier.id:
        raise NotFound("Branch not found")
    return Point(branch.public_latitude, branch.public_longitude)


def delivery_price(
    delivery: Delivery,
    supplier: Supplier,
    rules: ShopOrderRules,
    bands: Sequence[CourierFee],
    place: Point | None,
    origin: Point,
) -> DeliveryPrice:
    if delivery == "pickup":
        return (
            DeliveryPrice(0) if supplier.pickup_enabled else DeliveryPrice(reason="Nothing is picked up at this shop.")
        )
    if delivery == "expedition":
        if rules.expedition_fee is None:
            return DeliveryPrice(reason="This shop sends nothing by expedition.")
        return DeliveryPrice(rules.expedition_fee)
    return _courier_price(supplier, bands, place, origin)


def _courier_price(
    supplier: Supplier, bands: Sequence[CourierFee], place: Point | None, origin: Point
) -> DeliveryPrice:
    """From the place that the shop shows, as search does: fees for exact distances would reveal a hidden address."""
    if not (supplier.courier_enabled and bands):
        return DeliveryPrice(reason="This shop has no courier.")
    if place is None:
        return DeliveryPrice(reason="The fee of the courier needs `latitude` and `longitude` of where it goes.")
    distance = kilometres_between(origin, place)
    shown = round(distance, 1)
    for band in bands:
        if distance <= band.up_to_km:
            return DeliveryPrice(band.fee, shown)
    return DeliveryPrice(
        distance_km=shown, reason=f"It is {shown} km away, and the courier of this shop goes {bands[-1].up_to_km} km."
    )
