"""What a change of categories or synonyms would do to searches. The change is made and taken back at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from tis.marketplace.admin.preview_schemas import (
    MAX_QUERIES,
    CategoryAddition,
    CategoryDeletion,
    CategoryEdit,
    SynonymDeletion,
    SynonymPut,
    WordChange,
)
from tis.marketplace.context import RequestContext
from tis.marketplace.kit.fields import key_of
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import require_admin
from tis.marketplace.search.index_tokens import head_token
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.query import PageRequest, ProductQuery, SearchResults
from tis.marketplace.search.sql import run
from tis.marketplace.tables import Category, Synonym
from tis.marketplace.taxonomy.service import (
    add_category,
    change_category,
    delete_category,
    delete_synonym,
    put_synonym,
)

_FIRST_PAGE = PageRequest(limit=10)
_MIN_CHARS = 2
_NOUNS = "SELECT term FROM lexicon WHERE term >= :first AND term < :end ORDER BY count DESC, term LIMIT :most"


@dataclass(frozen=True)
class PreviewedSearch:
    query: str
    before: SearchResults
    after: SearchResults


def preview_searches(
    context: RequestContext, change: WordChange, queries: Sequence[str] | None
) -> list[PreviewedSearch]:
    """Without `queries`, those that the change speaks of, then common nouns of the catalogue."""
    search = context.market.search
    with context.writing() as (session, principal):
        require_admin(principal)
        spoken_of = _spoken_of(session, change)
        before = search.with_words_of(session)
        _make(session, principal, change)
        session.flush()
        after = search.with_words_of(session)
        session.rollback()  # nothing else uses this session, and no other transaction has seen the change
    if queries is None:
        with context.reading() as (session, _):
            queries = [*spoken_of, *_common_nouns(session, MAX_QUERIES + len(spoken_of))]
    queries = list(dict.fromkeys(queries))[:MAX_QUERIES]
    return [PreviewedSearch(query, _find(context, before, query), _find(context, after, query)) for query in queries]


def _find(context: RequestContext, search: ProductSearch, text: str) -> SearchResults:
    """As `GET /api/products/search?q=` does, for somebody whose place is not known."""
    with context.reading() as (session, _):
        query = search.read(session, ProductQuery(text=text)).query
        results = search.find(session, query, _FIRST_PAGE)
    meaning = context.market.meaning
    if meaning and (fused := meaning.beside(query, results, search)):
        with context.reading() as (session, _):
            results = search.find(session, query, _FIRST_PAGE, fused)
    return results


def _make(session: Session, principal: Principal, change: WordChange) -> None:
    match change:
        case SynonymPut():
            put_synonym(session, principal, change.model_dump(exclude={"action"}))
        case SynonymDeletion():
            delete_synonym(session, principal, change.term)
        case CategoryAddition():
            add_category(session, principal, change.model_dump(exclude={"action"}))
        case CategoryEdit():
            changes = change.model_dump(exclude={"action", "slug"}, exclude_unset=True)
            change_category(session, principal, change.slug, changes)
        case CategoryDeletion():
            delete_category(session, principal, change.slug)


def _spoken_of(session: Session, change: WordChange) -> list[str]:
    """The words that the change is about, as they were and as they become."""
    if isinstance(change, SynonymPut | SynonymDeletion):
        known = session.get(Synonym, change.term)
        means = [change.means if isinstance(change, SynonymPut) else "", known.means if known else ""]
        words = [change.term, *(word for text in means for word in text.split(","))]
    else:
        row = session.get(Category, change.slug)
        names = [change.name_id, change.name_en] if isinstance(change, CategoryAddition | CategoryEdit) else []
        words = [*names, *([row.name_id, row.name_en] if row else [])]
    return list(dict.fromkeys(key for word in words if (key := key_of(word))))


def _common_nouns(session: Session, count: int) -> list[str]:
    """The words that names of products begin with most often, the most common first."""
    values = {"first": head_token(""), "end": head_token("\U0010ffff"), "most": 2 * count}
    nouns = (term.removeprefix(head_token("")) for [term] in run(session, _NOUNS, values))
    return [noun for noun in nouns if noun.isalpha() and len(noun) >= _MIN_CHARS][:count]
