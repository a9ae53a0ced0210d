"""Categories and search synonyms."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse
from sqlalchemy.orm import Session

from tis.marketplace.context import ContextDep, RequestContext
from tis.marketplace.kit.idempotency import IdempotencyKeyDep
from tis.marketplace.kit.responses import json_response
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.tables import Category, Synonym
from tis.marketplace.taxonomy.schemas import (
    CATEGORIES_LISTED,
    CATEGORY_ADDED,
    CATEGORY_CHANGED,
    CATEGORY_DELETED,
    SLUG_PATTERN,
    SYNONYM_ADDED,
    SYNONYM_DELETED,
    SYNONYMS_LISTED,
    CategoryChange,
    CategoryForm,
    CategoryView,
    SynonymForm,
    Term,
)
from tis.marketplace.taxonomy.service import (
    add_category,
    change_category,
    delete_category,
    delete_synonym,
    list_categories,
    list_synonyms,
    put_synonym,
)

SlugParameter = Annotated[str, Path(max_length=100, pattern=SLUG_PATTERN)]
router = APIRouter(tags=["categories"], route_class=CheckedRoute)


@router.get("/categories", response_model=list[CategoryView], responses=CATEGORIES_LISTED)
def listed(context: ContextDep) -> list[CategoryView]:
    """List all categories with the number of their products, those of their subcategories included."""
    with context.reading() as (session, _):
        return [_view(category, count) for category, count in list_categories(session, context.market.search)]


@router.post("/categories", response_model=CategoryView, responses=CATEGORY_ADDED)
def create(form: CategoryForm, context: ContextDep, idempotency_key: IdempotencyKeyDep) -> JSONResponse:
    """Create a category, for admins. Products may name it before and after."""
    values = form.model_dump()
    with context.writing() as (session, principal):
        return idempotency_key.answer(
            session,
            principal,
            lambda: json_response(_counted(session, context, add_category(session, principal, values))),
        )


@router.put("/categories/{slug}", response_model=CategoryView, responses=CATEGORY_CHANGED)
def change(slug: SlugParameter, form: CategoryChange, context: ContextDep) -> CategoryView:
    """Change the sent fields of a category, for admins; `"parent": null` makes it one of its own."""
    with context.writing() as (session, principal):
        category = change_category(session, principal, slug, form.model_dump(exclude_unset=True))
        return _counted(session, context, category)


@router.delete("/categories/{slug}", response_model=CategoryForm, responses=CATEGORY_DELETED)
def delete(slug: SlugParameter, context: ContextDep) -> CategoryForm:
    """Delete a category and its synonyms, for admins. Its products stay."""
    with context.writing() as (session, principal):
        return _form(delete_category(session, principal, slug))


@router.get("/synonyms", response_model=list[SynonymForm], responses=SYNONYMS_LISTED)
def synonyms(context: ContextDep) -> list[SynonymForm]:
    """List the synonyms of the search, for admins."""
    with context.reading() as (session, principal):
        return [_synonym(synonym) for synonym in list_synonyms(session, principal)]


@router.post("/synonyms", response_model=SynonymForm, responses=SYNONYM_ADDED)
def add_synonym(form: SynonymForm, context: ContextDep, idempotency_key: IdempotencyKeyDep) -> JSONResponse:
    """Create or replace a synonym, for admins."""
    with context.writing() as (session, principal):
        return idempotency_key.answer(
            session,
            principal,
            lambda: json_response(_synonym(put_synonym(session, principal, form.model_dump()))),
        )


@router.delete("/synonyms/{term}", response_model=SynonymForm, responses=SYNONYM_DELETED)
def remove_synonym(term: Annotated[Term, Path()], context: ContextDep) -> SynonymForm:
    """Delete a synonym, for admins."""
    with context.writing() as (session, principal):
        return _synonym(delete_synonym(session, principal, term))


def _form(category: Category) -> CategoryForm:
    return CategoryForm.model_validate(category, from_attributes=True)


def _view(category: Category, count: int) -> CategoryView:
    """Without a check: each visit of the shop lists all of them, and they were checked when they came."""
    return CategoryView.model_construct(
        slug=category.slug,
        name_id=category.name_id,
        name_en=category.name_en,
        parent=category.parent,
        product_count=count,
    )


def _counted(session: Session, context: RequestContext, category: Category) -> CategoryView:
    session.flush()
    [count] = context.market.search.count_by_category(session, [category.slug]).values()
    return _view(category, count)


def _synonym(synonym: Synonym) -> SynonymForm:
    return SynonymForm.model_validate(synonym, from_attributes=True)
