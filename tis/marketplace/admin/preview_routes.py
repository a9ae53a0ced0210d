"""For admins: what a change of categories or synonyms would do to ten searches."""

from fastapi import APIRouter

from tis.marketplace.admin.preview_schemas import (
    PREVIEWED,
    FirstTen,
    MovedProduct,
    PreviewForm,
    QueryPreview,
    SearchPreview,
)
from tis.marketplace.admin.search_preview import PreviewedSearch, preview_searches
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.rates import limited
from tis.marketplace.search.query import SearchResults

router = APIRouter(tags=["admin"], route_class=CheckedRoute)


@router.post("/admin/search-preview", responses=PREVIEWED, dependencies=[limited("facets")])
def preview(form: PreviewForm, context: ContextDep) -> SearchPreview:
    """Say what a change of categories or synonyms would do to ten searches, for admins. Nothing is changed."""
    found = preview_searches(context, form.change, form.queries)
    hits = [hit for one in found for results in (one.before, one.after) for hit in results.hits]
    return SearchPreview(queries=list(map(_view, found)), names={hit.product.id: hit.product.name for hit in hits})


def _view(one: PreviewedSearch) -> QueryPreview:
    before, after = _first_ten(one.before), _first_ten(one.after)
    places = [{product_id: place for place, product_id in enumerate(ids.product_ids, 1)} for ids in (before, after)]
    return QueryPreview(
        query=one.query,
        before=before,
        after=after,
        came=[product_id for product_id in places[1] if product_id not in places[0]],
        went=[product_id for product_id in places[0] if product_id not in places[1]],
        moved=[
            MovedProduct(product_id=product_id, before=place, after=places[1][product_id])
            for product_id, place in places[0].items()
            if places[1].get(product_id, place) != place
        ],
    )


def _first_ten(results: SearchResults) -> FirstTen:
    ids = [hit.product.id for hit in results.hits]
    return FirstTen(product_ids=ids, total=results.total or 0, total_is_exact=results.total_is_exact)
