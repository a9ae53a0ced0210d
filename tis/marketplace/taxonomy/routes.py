"""Categories and search synonyms."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse

from tis.marketplace.context import ContextDep
from tis.marketplace.kit.idempotency import IdempotencyKeyDep
from tis.marketplace.kit.responses import json_response
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.tables import Category, Synonym
from tis.marketplace.taxonomy.schemas import (
    CATEGORIES_LISTED,
    CATEGORY_ADDED,
    CATEGORY_DELETED,
    SLUG_PATTERN,
    SYNONYM_ADDED,
    SYNONYM_DELETED,
    SYNONYMS_LISTED,
    CategoryForm,
    CategoryView,
    SynonymForm,
    Term,
)
from tis.marketplace.taxonomy.service import (
    add_category,
    delete_category,
    delete_synonym,
    list_categories,
    list_synonyms,
    put_synonym,
)

router = APIRouter(tags=["categories"], route_class=CheckedRoute)


@router.get("/categories", response_model=list[CategoryView], responses=CATEGORIES_LISTED)
def listed(context: ContextDep) -> list[CategoryView]:
    """List all categories with their number of products."""
    with context.reading() as (session, _):
        return [_view(category, count) for category, count in list_categories(session)]


@router.post("/categories", response_model=CategoryView, responses=CATEGORY_ADDED)
def create(form: CategoryForm, context: ContextDep, idempotency_key: IdempotencyKeyDep) -> JSONResponse:
    """Create a category, for admins. Products may name it before and after."""
    values = form.model_dump()
    with context.writing() as (session, principal):
        return idempotency_key.answer(
            session,
            principal,
            lambda: json_response(_view(add_category(session, principal, values), 0)),
        )


@router.delete("/categories/{slug}", response_model=CategoryForm, responses=CATEGORY_DELETED)
def delete(slug: Annotated[str, Path(max_length=100, pattern=SLUG_PATTERN)], context: ContextDep) -> CategoryForm:
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
            lambda: json_response(_synonym(put_synonym(session, principal, form.term, form.means, form.category))),
        )


@router.delete("/synonyms/{term}", response_model=SynonymForm, responses=SYNONYM_DELETED)
def remove_synonym(term: Annotated[Term, Path()], context: ContextDep) -> SynonymForm:
    """Delete a synonym, for admins."""
    with context.writing() as (session, principal):
        return _synonym(delete_synonym(session, principal, term))


def _form(category: Category) -> CategoryForm:
    return CategoryForm.model_validate(category, from_attributes=True)


def _view(category: Category, count: int) -> CategoryView:
    return CategoryView(**dict(_form(category)), product_count=count)


def _synonym(synonym: Synonym) -> SynonymForm:
    return SynonymForm.model_validate(synonym, from_attributes=True)
