"""Suppliers: register, find, read, change, close, reopen, suspend and export."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from tis.marketplace.auth.passwords import hashed_new
from tis.marketplace.auth.registration import RegistrationKeyDep
from tis.marketplace.auth.schemas import (
    ADMIN_REQUIRED,
    EMAIL_TAKEN,
    TOKENS_EXAMPLE,
    TOO_MANY_LOGINS,
    TOO_MANY_REGISTRATIONS,
    Erasure,
)
from tis.marketplace.auth.service import require_password
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.docs import STALE_VERSION, example_body, responses
from tis.marketplace.kit.fields import CITY_FILTER_DESCRIPTION, VERIFIED_DESCRIPTION, Id, Keyword, Words
from tis.marketplace.kit.origin import OriginDep, VicinityDep
from tis.marketplace.kit.paging import CursorPageDep
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.responses import no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.kit.versions import IfMatchDep, set_etag
from tis.marketplace.rates import count_in_thread, limited
from tis.marketplace.suppliers.deletion import close_or_delete_supplier, password_to_erase
from tis.marketplace.suppliers.number_views import NUMBERS, ShopNumbers
from tis.marketplace.suppliers.numbers import numbers_of
from tis.marketplace.suppliers.schemas import (
    EMAIL_BY_LINK,
    EXPORT_OF_SUPPLIER,
    FOUND_SUPPLIER_EXAMPLE,
    LAST_LOGIN,
    NEW_SUPPLIER_EXAMPLE,
    NO_SUPPLIER,
    OWNER_REQUIRED,
    SUPPLIER_EXAMPLE,
    FoundSupplier,
    NameParameter,
    RegisteredSupplier,
    SupplierChange,
    SupplierRegistration,
    SupplierStatus,
    SupplierView,
    supplier_view,
    validate_name,
)
from tis.marketplace.suppliers.service import (
    change_supplier,
    export_supplier_data,
    public_supplier,
    register_supplier,
    restore_supplier,
    set_status,
)
from tis.marketplace.suppliers.supplier_search import SupplierQuery, SupplierState, found_suppliers, found_view
from tis.marketplace.tables import Supplier

router = APIRouter(prefix="/suppliers", tags=["suppliers"], route_class=CheckedRoute)


@router.post(
    "/register",
    responses=responses({**SUPPLIER_EXAMPLE, **TOKENS_EXAMPLE}, EMAIL_TAKEN, TOO_MANY_REGISTRATIONS),
    dependencies=[limited("registrations", by_address=True), Depends(no_store)],
)
async def register(
    context: ContextDep,
    body: Annotated[SupplierRegistration, example_body(NEW_SUPPLIER_EXAMPLE)],
    key: RegistrationKeyDep,
) -> RegisteredSupplier:
    """Register a supplier. The user of the token owns it."""

    def create() -> RegisteredSupplier:
        facts = body.name, body.business_name, body.email
        password_hash = hashed_new(body.password, *facts) if body.password else None
        create = partial(register_supplier, body=body, password_hash=password_hash)
        view, tokens = key.register(context, body.consent_version, create, _own_view)
        return RegisteredSupplier(**vars(view), **vars(tokens))

    return await context.market.passwords.run(create)


def _own_view(supplier: Supplier) -> SupplierView:
    return supplier_view(supplier, Principal(owned_ids=frozenset({supplier.id})))


@router.get(
    "",
    responses=responses([FOUND_SUPPLIER_EXAMPLE], {422: "radius_km needs user_lat and user_lon."}),
    dependencies=[limited("searches")],
)
def list_suppliers(
    request: Request,
    context: ContextDep,
    page: CursorPageDep,
    vicinity: VicinityDep,
    q: NameParameter = None,
    city: Annotated[Words | None, Query(description=CITY_FILTER_DESCRIPTION)] = None,
    category: Annotated[Keyword | None, Query(description="of a product that can be bought there")] = None,
    open_now: Annotated[bool, Query(description="`true`: only those whose opening hours say so")] = False,
    verified: Annotated[bool, Query(description=VERIFIED_DESCRIPTION)] = False,
    status: Annotated[SupplierState, Query(description="another than `active`: for admins")] = "active",
) -> list[FoundSupplier]:
    """Find suppliers. Without `q` and `user_lat`, the oldest come first.

    All words of `q` must be in the name, the city or the province; the last may be the beginning of a word. The best
    match comes first, then the nearest, then the best rated.
    """
    query = SupplierQuery(validate_name(q), city, category, open_now, vicinity, status, verified)
    if query.is_ranked:
        count_in_thread(request, "searches")
    with context.reading() as (session, principal):
        return found_suppliers(session, context.market.search, principal, page, query)


@router.get("/{supplier_id}", responses=responses(FOUND_SUPPLIER_EXAMPLE, NO_SUPPLIER))
def get_supplier(context: ContextDep, supplier_id: Id, response: Response, origin: OriginDep) -> FoundSupplier:
    """Read a supplier. Private fields are null except for its owners, admins and in open mode."""
    with context.reading() as (session, principal):
        supplier = public_supplier(session, principal, supplier_id)
        set_etag(response, supplier.version)
        return found_view(session, principal, [supplier], origin)[0]


@router.get(
    "/{supplier_id}/export", dependencies=[Depends(no_store)], responses=responses(EXPORT_OF_SUPPLIER, OWNER_REQUIRED)
)
def export_supplier(context: ContextDep, supplier_id: Id) -> dict[str, Any]:
    """Export all data about a supplier, for its own account and its owners."""
    with context.reading() as (session, principal):
        return export_supplier_data(session, principal, supplier_id)


@router.get("/{supplier_id}/numbers", responses=NUMBERS)
def get_numbers(
    context: ContextDep,
    supplier_id: Id,
    weeks: Annotated[int, Query(ge=1, le=12, description="to look back on, today included")] = 1,
) -> ShopNumbers:
    """Count the sales, holds and reviews of a shop by day in its time zone, for its members.

    Sales are the holds that were sold. Views of products are not counted anywhere.
    """
    with context.reading() as (session, principal):
        return numbers_of(session, principal, supplier_id, weeks)


@router.put(
    "/{supplier_id}", responses=responses(SUPPLIER_EXAMPLE, {**OWNER_REQUIRED, **STALE_VERSION, **EMAIL_BY_LINK})
)
def put_supplier(
    context: ContextDep,
    supplier_id: Id,
    response: Response,
    body: Annotated[SupplierChange, example_body({"address": "Jl. Thamrin No. 1"})],
    if_match: IfMatchDep,
) -> SupplierView:
    """Change the sent fields of a supplier; `null` clears an optional field."""
    with context.writing() as (session, principal):
        search, expected = context.market.search, if_match.with_body_version(body.version)
        by_link = context.market.mail.is_configured and not principal.is_open
        changes = body.changes()
        supplier = change_supplier(session, principal, search, supplier_id, changes, expected, email_by_link=by_link)
        set_etag(response, supplier.version)
        return supplier_view(supplier, principal)


@router.delete("/{supplier_id}", responses=responses(SUPPLIER_EXAMPLE, OWNER_REQUIRED, LAST_LOGIN, TOO_MANY_LOGINS))
def delete_supplier(
    request: Request,
    context: ContextDep,
    supplier_id: Id,
    body: Annotated[Erasure | None, example_body({"password": "a long sentence"})] = None,
    confirm: Annotated[
        bool, Query(description="where the supplier has neither a password nor an owner: nobody can sign in again")
    ] = False,
) -> SupplierView:
    """Close a supplier: it and its products are no longer found, until it is restored.

    One that closes itself, where no user owns it, is erased with its personal data. That needs its password, if it
    has one.
    """
    with context.reading() as (session, principal):
        compared_hash = password_to_erase(session, principal, supplier_id)
    if compared_hash is not None:
        count_in_thread(request, "logins")
        require_password(body.password if body else None, compared_hash)
    with context.writing() as (session, principal):
        search = context.market.search
        supplier = close_or_delete_supplier(
            session, principal, search, supplier_id, confirmed=confirm, compared_hash=compared_hash
        )
        return supplier_view(supplier, principal)


@router.post("/{supplier_id}/restore", responses=responses(SUPPLIER_EXAMPLE, OWNER_REQUIRED))
def reopen_supplier(context: ContextDep, supplier_id: Id) -> SupplierView:
    """Reopen a closed supplier, for its owners and admins. The supplier's own token ended when it closed."""
    with context.writing() as (session, principal):
        return supplier_view(restore_supplier(session, principal, context.market.search, supplier_id), principal)


@router.put(
    "/{supplier_id}/status",
    responses=responses(SUPPLIER_EXAMPLE, {**ADMIN_REQUIRED, **NO_SUPPLIER}),
)
def put_status(
    context: ContextDep,
    supplier_id: Id,
    body: Annotated[SupplierStatus, example_body({"status": "suspended", "reason": "Sells what it does not have."})],
) -> SupplierView:
    """Suspend a supplier or end its suspension, for admins."""
    with context.writing() as (session, principal):
        search = context.market.search
        supplier = set_status(session, principal, search, supplier_id, body.status, body.reason)
        return supplier_view(supplier, principal)
