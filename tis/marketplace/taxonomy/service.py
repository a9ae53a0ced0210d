"""Categories and search synonyms. Both are changed by admins only."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound
from tis.marketplace.kit import audit
from tis.marketplace.kit.fields import key_of
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import require_admin
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.vocabulary_cache import expire_categories
from tis.marketplace.tables import Category, Synonym

# Searches keep all of them in memory.
_MAX_CATEGORIES, _MAX_SYNONYMS = 1000, 10_000


def list_categories(session: Session, search: ProductSearch) -> Sequence[tuple[Category, int]]:
    """With the number of products that can be bought in each and its subcategories."""
    categories = session.scalars(select(Category).order_by(Category.slug)).all()
    counts = search.count_by_category(session, [category.slug for category in categories])
    return [(category, counts[category.slug]) for category in categories]


def change_category(session: Session, principal: Principal, slug: str, changes: Mapping[str, str | None]) -> Category:
    """The old names become synonyms, so products that were filed under them stay in the category."""
    _begin_change(session, principal)
    category = _find_category(session, slug)
    changed = {name: [getattr(category, name), new] for name, new in changes.items() if getattr(category, name) != new}
    if not changed:
        return category
    if (parent := changes.get("parent")) is not None:
        _find_category(session, parent)
        if slug in _with_parents(session, parent):
            raise Conflict("A category cannot be a subcategory of itself.")
    for name, (_, new) in changed.items():
        setattr(category, name, new)
    _keep_names(session, category, [old for name, (old, _) in changed.items() if name != "parent"])
    session.flush()
    audit.note(session, principal, "change", "category", slug, **changed)
    return category


def add_category(session: Session, principal: Principal, values: Mapping[str, str | None]) -> Category:
    _begin_change(session, principal)
    if values["parent"] is not None:
        _find_category(session, values["parent"])
    _require_room(session, Category, _MAX_CATEGORIES, "categories")
    category = Category(**values)
    session.add(category)
    try:
        session.flush()
    except IntegrityError as error:
        raise Conflict("Category already registered") from error
    audit.note(session, principal, "create", "category", category.slug)
    return category


def delete_category(session: Session, principal: Principal, slug: str) -> Category:
    """Products of the category keep its name."""
    _begin_change(session, principal)
    category = _find_category(session, slug)
    session.delete(category)
    try:
        session.flush()
    except IntegrityError as error:
        raise Conflict("This category has subcategories: delete them first.") from error
    audit.note(session, principal, "delete", "category", slug)
    return category


def list_synonyms(session: Session, principal: Principal) -> Sequence[Synonym]:
    require_admin(principal)
    return session.scalars(select(Synonym).order_by(Synonym.term)).all()


def put_synonym(session: Session, principal: Principal, values: dict[str, Any]) -> Synonym:
    """Creates or replaces the synonym."""
    term, means, category = values["term"], values["means"], values["category"]
    _begin_change(session, principal)
    if category is not None:
        _find_category(session, category)
    before = session.get(Synonym, term)
    if before is None:
        _require_room(session, Synonym, _MAX_SYNONYMS, "synonyms")
    change = [before and before.means, means]
    synonym = session.merge(Synonym(**values))
    try:
        session.flush()
    except IntegrityError as error:
        raise Conflict("Another request is changing this synonym. Retry.", retry_after=1) from error
    audit.note(session, principal, "put", "synonym", term, means=change)
    return synonym


def delete_synonym(session: Session, principal: Principal, term: str) -> Synonym:
    _begin_change(session, principal)
    synonym = session.get(Synonym, term)
    if synonym is None:
        raise NotFound("Synonym not found")
    session.delete(synonym)
    audit.note(session, principal, "delete", "synonym", term, means=[synonym.means, None])
    return synonym


def _begin_change(session: Session, principal: Principal) -> None:
    """One change at a time: the version is a row that all of them write first."""
    require_admin(principal)
    expire_categories(session)


def _keep_names(session: Session, category: Category, old_names: Sequence[str]) -> None:
    known = {key_of(name) for name in (category.slug, category.name_id, category.name_en)}
    for key in {key_of(name) for name in old_names} - known:
        if session.get(Synonym, key) is None:
            _require_room(session, Synonym, _MAX_SYNONYMS, "synonyms")
            session.add(Synonym(term=key, means=category.name_en, category=category.slug))


def _with_parents(session: Session, slug: str) -> set[str]:
    parents = {category.slug: category.parent for category in session.scalars(select(Category))}
    found = {slug}
    while (parent := parents.get(slug)) is not None and parent not in found:
        found.add(parent)
        slug = parent
    return found


def _require_room(session: Session, table: type[Category | Synonym], limit: int, name: str) -> None:
    if (session.scalar(select(func.count()).select_from(table)) or 0) >= limit:
        raise Conflict(f"There may be at most {limit} {name}.")


def _find_category(session: Session, slug: str) -> Category:
    category = session.get(Category, slug)
    if category is None:
        raise NotFound("Category not found")
    return category
