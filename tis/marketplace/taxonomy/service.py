"""Categories and search synonyms. Both are changed by admins only."""

from collections.abc import Mapping, Sequence

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound
from tis.marketplace.kit import audit
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import require_admin
from tis.marketplace.search.vocabulary import expire_categories
from tis.marketplace.tables import Category, ProductFacts, Synonym

# Searches keep all of them in memory.
_MAX_CATEGORIES, _MAX_SYNONYMS = 1000, 10_000


def list_categories(session: Session) -> Sequence[tuple[Category, int]]:
    """With the number of products of active suppliers in each."""
    counts = (
        select(ProductFacts.category_key, func.count().label("products"))
        .where(ProductFacts.sellable >= 0)
        .group_by(ProductFacts.category_key)
        .subquery()
    )
    rows = select(Category, func.coalesce(counts.c.products, 0))
    rows = rows.outerjoin(counts, counts.c.category_key == Category.slug).order_by(Category.slug)
    return [(category, count) for category, count in session.execute(rows)]


def add_category(session: Session, principal: Principal, values: Mapping[str, str | None]) -> Category:
    require_admin(principal)
    if values["parent"] is not None:
        _find_category(session, values["parent"])
    _require_room(session, Category, _MAX_CATEGORIES, "categories")
    category = Category(**values)
    session.add(category)
    try:
        session.flush()
    except IntegrityError as error:
        raise Conflict("Category already registered") from error
    expire_categories(session)
    audit.note(session, principal, "create", "category", category.slug)
    return category


def delete_category(session: Session, principal: Principal, slug: str) -> Category:
    """Products of the category keep its name."""
    require_admin(principal)
    category = _find_category(session, slug)
    session.delete(category)
    try:
        session.flush()
    except IntegrityError as error:
        raise Conflict("This category has subcategories: delete them first.") from error
    expire_categories(session)
    audit.note(session, principal, "delete", "category", slug)
    return category


def list_synonyms(session: Session, principal: Principal) -> Sequence[Synonym]:
    require_admin(principal)
    return session.scalars(select(Synonym).order_by(Synonym.term)).all()


def put_synonym(session: Session, principal: Principal, term: str, means: str, category: str | None) -> Synonym:
    """Creates or replaces the synonym."""
    require_admin(principal)
    if category is not None:
        _find_category(session, category)
    before = session.get(Synonym, term)
    if before is None:
        _require_room(session, Synonym, _MAX_SYNONYMS, "synonyms")
    change = [before and before.means, means]
    synonym = session.merge(Synonym(term=term, means=means, category=category))
    try:
        session.flush()
    except IntegrityError as error:
        raise Conflict("Another request is changing this synonym. Retry.", retry_after=1) from error
    expire_categories(session)
    audit.note(session, principal, "put", "synonym", term, means=change)
    return synonym


def delete_synonym(session: Session, principal: Principal, term: str) -> Synonym:
    require_admin(principal)
    synonym = session.get(Synonym, term)
    if synonym is None:
        raise NotFound("Synonym not found")
    session.delete(synonym)
    expire_categories(session)
    audit.note(session, principal, "delete", "synonym", term, means=[synonym.means, None])
    return synonym


def _require_room(session: Session, table: type[Category | Synonym], limit: int, name: str) -> None:
    if (session.scalar(select(func.count()).select_from(table)) or 0) >= limit:
        raise Conflict(f"There may be at most {limit} {name}.")


def _find_category(session: Session, slug: str) -> Category:
    category = session.get(Category, slug)
    if category is None:
        raise NotFound("Category not found")
    return category
