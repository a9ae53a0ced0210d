"""New orders: of holds of one shop, of goods, or of both; a draft, or placed at once."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import uuid4

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from tis.errors import Conflict, Forbidden, NotFound, Unprocessable
from tis.marketplace.auth.accounts import lock_account
from tis.marketplace.columns import moment_value, now
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit import audit
from tis.marketplace.kit.branch_shares import PlaceWish
from tis.marketplace.kit.geo import Point
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.versions import IfMatch
from tis.marketplace.orders.money import add_up
from tis.marketplace.orders.moving import FreedUnits, make_move, move_order, note_move
from tis.marketplace.orders.order_numbers import new_order_number
from tis.marketplace.orders.payment_methods import offered_methods
from tis.marketplace.orders.reading import find_order
from tis.marketplace.orders.rules import bands_of, delivery_price, rules_of, shown_place_of
from tis.marketplace.orders.schemas import AddressForm, OrderForm, PlacingForm
from tis.marketplace.orders.states import find_move
from tis.marketplace.policy import require_somebody
from tis.marketplace.products.service import lock_supplier_shared
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.stock.caps import MAX_HOLD, require_within_caps
from tis.marketplace.stock.ending import take_for_order
from tis.marketplace.stock.holding import hold_units
from tis.marketplace.tables import Order, OrderAddress, OrderLine, Product, Reservation, Supplier

_OPEN = ("draft", "placed", "accepted")
_ANY_VERSION = IfMatch()


def draft_order(
    session: Session, principal: Principal, search: ProductSearch, form: OrderForm, rules: ServiceRules
) -> Order:
    """Its units are the order's from now on: its holds have ended."""
    require_somebody(principal)
    quantities = {item.product_id: item.quantity for item in form.items}
    supplier = _lock_shop(session, form.reservations, list(quantities))
    _require_stranger(principal, supplier)
    _require_open_shop(session, supplier)
    if principal.account is not None:
        lock_account(session, principal.account)
    _require_room(session, principal, rules)
    if quantities:
        require_within_caps(session, principal, rules, quantities)
    order, terms = _new_order(session, principal, supplier), rules_of(session, supplier.id)
    order.tax_rate, order.tax_number, order.return_days = terms.tax_rate, terms.tax_number, terms.return_days
    held = list(take_for_order(session, principal, form.reservations)) if form.reservations else []
    wish = _one_place(form, held)
    order.due_at = min(
        now() + timedelta(seconds=rules.reservation_seconds),
        *(one.created_at + MAX_HOLD for one in held),
        now() + MAX_HOLD,
    )
    if quantities:  # late: others wait for these products until the transaction ends
        seconds = rules.reservation_seconds
        held += hold_units(session, principal, search, quantities, seconds, "ordered", wish=wish, waits=not held)
    order.branch_id = held[0].branch_id
    lines = _lines_of(session, order, held)
    add_up(order, lines)
    with session.no_autoflush:  # one INSERT: an UPDATE would lock the order after its products
        session.add_all([order, *lines])
        note_move(session, order, "buyer", principal.account, None, order.created_at)
        audit.note(session, principal, "order.draft", "order", order.id)
        if form.place:
            _freeze(session, supplier, order, lines, form.place)
            move = find_move("draft", "placed", "buyer", order.payment_method)
            assert move is not None
            make_move(session, search, order, lines, move, "buyer", principal.account, rules)
            audit.note(session, principal, "order.placed", "order", order.id, state=["draft", "placed"])
    session.flush()
    return order


def place_order(
    session: Session,
    principal: Principal,
    search: ProductSearch,
    order_id: str,
    form: PlacingForm,
    rules: ServiceRules,
    if_match: IfMatch = _ANY_VERSION,
) -> Order:
    """What the buyer and the shop agree on is frozen here."""
    found = find_order(session, principal, order_id)
    supplier = lock_supplier_shared(session, found.supplier_id)
    if supplier is None:
        raise NotFound("Supplier not found")
    if principal.account is not None and principal.account == found.buyer:  # who may work there since it was drafted
        _require_stranger(principal, supplier)

    def freeze(order: Order, lines: Sequence[OrderLine]) -> FreedUnits:
        _require_open_shop(session, supplier)
        _freeze(session, supplier, order, lines, form)
        return {}

    return move_order(session, search, principal, order_id, "placed", rules, if_match=if_match, change=freeze)


def _freeze(session: Session, supplier: Supplier, order: Order, lines: Sequence[OrderLine], form: PlacingForm) -> None:
    terms, address = rules_of(session, supplier.id), form.address
    place = _point_of(address)
    origin = shown_place_of(session, supplier, order.branch_id)
    price = delivery_price(form.delivery, supplier, terms, bands_of(session, supplier.id), place, origin)
    if price.fee is None:
        raise Unprocessable(price.reason or "This shop does not deliver so.")
    if form.payment_method not in offered_methods(session, supplier.id):
        raise Unprocessable(f"This shop does not take {form.payment_method}.")
    if form.payment_method == "cash" and form.delivery == "expedition":
        raise Unprocessable("An expedition takes no cash: pay before it is sent.")
    order.shop_name, order.delivery, order.delivery_fee = supplier.business_name, form.delivery, price.fee
    order.payment_method, order.note = form.payment_method, form.note
    order.tax_rate, order.tax_number, order.return_days = terms.tax_rate, terms.tax_number, terms.return_days
    add_up(order, lines)
    if address:
        session.add(OrderAddress(order_id=order.id, **address.model_dump()))


def _one_place(form: OrderForm, held: Sequence[Reservation]) -> PlaceWish:
    """An order is of one place, from which it is handed over or sent: that of its holds, if it has any."""
    places = {one.branch_id for one in held}
    if form.branch_id is not None:
        places.add(form.branch_id)
    if len(places) > 1:
        raise Unprocessable("An order is of one place of the shop: make one for each.", code="several_places")
    address = form.place.address if form.place else None
    return PlaceWish(places.pop() if places else None, form.near or _point_of(address))


def _point_of(address: AddressForm | None) -> Point | None:
    if address is None or address.latitude is None or address.longitude is None:
        return None
    return Point(address.latitude, address.longitude)


def _lock_shop(session: Session, reservation_ids: Sequence[str], product_ids: Sequence[int]) -> Supplier:
    """The one shop of all lines. Locks it before accounts and reservations; what it reads first never changes."""
    of_holds = select(Reservation.supplier_id).where(Reservation.id.in_(reservation_ids))
    of_goods = select(Product.supplier_id).where(Product.id.in_(product_ids))
    shops = {*session.scalars(of_holds), *session.scalars(of_goods)}
    if not shops:
        raise NotFound("Reservation not found" if reservation_ids else "Product not found")
    if len(shops) > 1:
        raise Unprocessable("An order is of one shop: make one for each.")
    supplier = lock_supplier_shared(session, shops.pop())
    if supplier is None:
        raise NotFound("Supplier not found")
    return supplier


def _require_stranger(principal: Principal, supplier: Supplier) -> None:
    if supplier.id in principal.supplier_ids:
        raise Forbidden("You cannot order from a supplier that you work for.")


def _require_open_shop(session: Session, supplier: Supplier) -> None:
    if not supplier.is_active:
        raise Conflict("This shop is closed.", code="shop_closed")
    if not rules_of(session, supplier.id).takes_orders:
        raise Conflict("This shop takes no orders.", code="takes_no_orders")


def _require_room(session: Session, principal: Principal, rules: ServiceRules) -> None:
    """After the account is locked: two orders at once would both find room for one."""
    if principal.account is None:
        return
    due_at = func.coalesce(Order.due_at, moment_value(now()))
    waiting = select(func.count()).where(Order.buyer == principal.account, Order.state.in_(_OPEN), due_at > now())
    if (session.scalar(waiting) or 0) >= rules.max_open_orders_per_account:
        raise Conflict(
            f"{rules.max_open_orders_per_account} of your orders are open already: wait for one, or cancel one.",
            code="too_many_orders",
        )


def _new_order(session: Session, principal: Principal, supplier: Supplier) -> Order:
    return Order(
        id=str(uuid4()),
        number=new_order_number(session),
        supplier_id=supplier.id,
        buyer=principal.account,
        state="draft",
        shop_name=supplier.business_name,
        delivery_fee=0,
        version=1,
        created_at=now(),
    )


def _lines_of(session: Session, order: Order, held: Sequence[Reservation]) -> list[OrderLine]:
    """At the prices of the holds. One order of products for everybody."""
    rows = select(Reservation, Product.name, Product.sku).join(Product, Product.id == Reservation.product_id)
    of_order = rows.where(Reservation.id.in_([one.id for one in held]))
    found = session.execute(of_order.execution_options(populate_existing=True)).all()
    return [
        OrderLine(
            order_id=order.id,
            position=position,
            product_id=one.product_id,
            reservation_id=one.id,
            name=name,
            sku=sku,
            unit_price=one.unit_price,
            ordered=one.quantity,
            quantity=one.quantity,
        )
        for position, (one, name, sku) in enumerate(sorted(found, key=lambda row: (row[0].product_id, row[0].id)), 1)
    ]
