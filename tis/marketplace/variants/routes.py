"""Groups of variants: make one of products of a shop, add and remove variants, change the axes, dissolve."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from sqlalchemy.orm import Session

from tis.marketplace.context import ContextDep
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.idempotency import IdempotencyKeyDep
from tis.marketplace.kit.paging import Before, Limit, page_response
from tis.marketplace.kit.responses import Message, json_response
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.kit.versions import IfMatchDep, set_etag
from tis.marketplace.products.variant_views import GroupView, group_view, group_views
from tis.marketplace.tables import ProductGroup
from tis.marketplace.variants import service
from tis.marketplace.variants.schemas import (
    DISSOLVED,
    GROUP_CHANGED,
    GROUP_CREATED,
    GROUP_SEEN,
    GROUPS_LISTED,
    VARIANT_ADDED,
    VARIANT_REMOVED,
    GroupChange,
    NewGroup,
    NewVariant,
)

router = APIRouter(tags=["products"], route_class=CheckedRoute)


@router.post("/suppliers/{supplier_id}/product-groups", response_model=GroupView, responses=GROUP_CREATED)
def create(supplier_id: Id, form: NewGroup, context: ContextDep, idempotency_key: IdempotencyKeyDep) -> JSONResponse:
    """Make a group of products of a shop, which are its variants from then on.

    Each has a value of every axis among its attributes, or gets it here, and no two have the same values. Stock, price,
    SKU and pictures stay those of each. Lists show one variant of a group.
    """
    with context.writing() as (session, principal):
        search = context.market.search
        return idempotency_key.answer(
            session,
            principal,
            lambda: _answer(session, service.create_group(session, search, principal, supplier_id, form)),
        )


@router.get("/suppliers/{supplier_id}/product-groups", response_model=list[GroupView], responses=GROUPS_LISTED)
def listed(
    supplier_id: Id, context: ContextDep, request: Request, before: Before = None, limit: Limit = 50
) -> JSONResponse:
    """List the groups of a shop with their variants, newest first, for its members."""
    with context.reading() as (session, principal):
        groups = service.list_groups(session, principal, supplier_id, before, limit + 1)
        views = {view.id: view for view in group_views(session, groups[:limit])}
        return page_response(request, groups, limit, lambda group: views[group.id], lambda group: group.id)


@router.get("/product-groups/{group_id}", response_model=GroupView, responses=GROUP_SEEN)
def get(group_id: Id, context: ContextDep) -> JSONResponse:
    """Read a group: its axes, and the price and stock of each variant."""
    with context.reading() as (session, principal):
        return _answer(session, service.find_group(session, principal, group_id))


@router.put("/product-groups/{group_id}", response_model=GroupView, responses=GROUP_CHANGED)
def change(group_id: Id, form: GroupChange, context: ContextDep, if_match: IfMatchDep) -> JSONResponse:
    """Change the name of a group, or its axes: their order, their names, which there are."""
    with context.writing() as (session, principal):
        version = if_match.with_body_version(form.version)
        group = service.change_group(session, context.market.search, principal, group_id, form, version)
        return _answer(session, group)


@router.delete("/product-groups/{group_id}", responses=DISSOLVED)
def dissolve(group_id: Id, context: ContextDep) -> Message:
    """Dissolve a group. Its variants stay on sale, each as a product alone."""
    with context.writing() as (session, principal):
        service.dissolve(session, context.market.search, principal, group_id)
    return Message(detail="Dissolved.")


@router.post("/product-groups/{group_id}/variants", response_model=GroupView, responses=VARIANT_ADDED)
def add(group_id: Id, form: NewVariant, context: ContextDep, idempotency_key: IdempotencyKeyDep) -> JSONResponse:
    """Add a product of the same shop to a group, which has at most 100 variants."""
    with context.writing() as (session, principal):
        search = context.market.search
        return idempotency_key.answer(
            session,
            principal,
            lambda: _answer(session, service.add_variant(session, search, principal, group_id, form)),
        )


@router.delete("/product-groups/{group_id}/variants/{product_id}", responses=VARIANT_REMOVED)
def remove(group_id: Id, product_id: Id, context: ContextDep) -> Message:
    """Take a variant out of its group. It stays on sale, as a product alone. A group without variants is deleted."""
    with context.writing() as (session, principal):
        service.remove_variant(session, context.market.search, principal, group_id, product_id)
    return Message(detail="Removed.")


def _answer(session: Session, group: ProductGroup) -> JSONResponse:
    session.flush()
    response = json_response(group_view(session, group))
    set_etag(response, group.version)
    return response
