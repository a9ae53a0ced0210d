"""Searches that users save: the parameters of the search as they are, and what they were read as."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from pydantic import TypeAdapter
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound, Unprocessable
from tis.marketplace.alerts.schemas import SavedSearchChange, SavedSearchForm, SavedSearchView
from tis.marketplace.auth.accounts import lock_account, user_account
from tis.marketplace.auth.service import round_to_100m
from tis.marketplace.columns import now
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit.geo import Point
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import require_user
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.tables import SavedSearch, SearchFind

_MAX_CHARS = 4000  # of all parameters
_COORDINATES = ("user_lat", "user_lon")
_QUERY: TypeAdapter[ProductQuery] = TypeAdapter(ProductQuery)
Parameters = Sequence[tuple[str, str]]


def save_search(
    session: Session,
    principal: Principal,
    query: ProductQuery,
    parameters: Parameters,
    form: SavedSearchForm,
    rules: ServiceRules,
) -> SavedSearchView:
    """The place of the user is kept as coarse as in the profile."""
    user_id = require_user(principal)
    if replace(query, sort=None, origin=None) == ProductQuery():
        raise Unprocessable("Save a search with words or with a filter.")
    # PostgreSQL keeps no NUL; the filters were read without it.
    parameters = [(name.replace("\0", ""), value.replace("\0", "")) for name, value in parameters]
    if query.origin:
        place = (round_to_100m(one) or 0.0 for one in (query.origin.latitude, query.origin.longitude))
        query = replace(query, origin=Point(*place))
        parameters = [
            (name, str(round_to_100m(float(value))) if name in _COORDINATES else value) for name, value in parameters
        ]
    if len(urlencode(parameters)) > _MAX_CHARS:
        raise Unprocessable(f"The parameters of a saved search have at most {_MAX_CHARS} characters.")
    lock_account(session, user_account(user_id))
    of_user = select(func.count()).where(SavedSearch.user_id == user_id)
    if (session.scalar(of_user) or 0) >= rules.max_saved_searches_per_user:
        raise Conflict(f"A user saves at most {rules.max_saved_searches_per_user} searches: delete one first.")
    stored: dict[str, Any] = _QUERY.dump_python(query, mode="json", exclude_defaults=True)
    saved = SavedSearch(
        user_id=user_id,
        name=form.name,
        parameters=[list(pair) for pair in parameters],
        query=stored,
        tells=form.tells,
    )
    session.add(saved)
    session.flush()
    return _view(saved)


def query_of(saved: SavedSearch) -> ProductQuery:
    return _QUERY.validate_python(saved.query)


def list_searches(session: Session, principal: Principal, before: int | None, limit: int) -> Sequence[SavedSearchView]:
    """Newest first."""
    own = select(SavedSearch).where(SavedSearch.user_id == require_user(principal))
    own = own if before is None else own.where(SavedSearch.id < before)
    return [_view(saved) for saved in session.scalars(own.order_by(SavedSearch.id.desc()).limit(limit))]


def change_search(session: Session, principal: Principal, search_id: int, change: SavedSearchChange) -> SavedSearchView:
    """One that is switched on again tells of what comes from then on."""
    saved = _own(session, principal, search_id)
    if change.name is not None:
        saved.name = change.name
    if change.tells is not None and change.tells != saved.tells:
        saved.tells, saved.tells_since = change.tells, now()
        untold = delete(SearchFind).where(SearchFind.saved_search_id == search_id, SearchFind.told_at.is_(None))
        session.execute(untold)
    session.flush()
    return _view(saved)


def delete_search(session: Session, principal: Principal, search_id: int) -> SavedSearchView:
    saved = _own(session, principal, search_id)
    view = _view(saved)
    session.delete(saved)
    return view


def _own(session: Session, principal: Principal, search_id: int) -> SavedSearch:
    own = SavedSearch.id == search_id, SavedSearch.user_id == require_user(principal)
    saved = session.scalar(select(SavedSearch).where(*own).with_for_update())
    if saved is None:
        raise NotFound("Saved search not found")
    return saved


def _view(saved: SavedSearch) -> SavedSearchView:
    parameters = [(str(name), str(value)) for name, value in saved.parameters]
    has_text = any(name == "q" for name, _ in parameters)
    return SavedSearchView(
        id=saved.id,
        name=saved.name,
        parameters=parameters,
        path=f"/api/products{'/search' if has_text else ''}?{urlencode(parameters)}",
        tells=saved.tells,
        created_at=saved.created_at,
        told_at=saved.told_at,
    )
