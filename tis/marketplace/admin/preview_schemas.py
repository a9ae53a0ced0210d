"""Body and view of the preview of a search, with their examples."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from tis.marketplace.auth.schemas import ADMIN_REQUIRED
from tis.marketplace.kit.docs import responses, schema_example
from tis.marketplace.kit.fields import Name
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.taxonomy.schemas import CategoryChange, CategoryForm, Slug, SynonymForm, Term

MAX_QUERIES = 10


class SynonymPut(SynonymForm):
    action: Literal["put_synonym"]


class SynonymDeletion(StrictBody):
    action: Literal["delete_synonym"]
    term: Term


class CategoryAddition(CategoryForm):
    action: Literal["create_category"]


class CategoryEdit(CategoryChange):
    action: Literal["change_category"]
    slug: Slug


class CategoryDeletion(StrictBody):
    action: Literal["delete_category"]
    slug: Slug


WordChange = SynonymPut | SynonymDeletion | CategoryAddition | CategoryEdit | CategoryDeletion
_CHANGE = {"action": "put_synonym", "term": "kulkas mini", "means": "mini bar", "category": "refrigerator"}


class PreviewForm(StrictBody):
    model_config = schema_example({"change": _CHANGE, "queries": ["kulkas mini", "kulkas"]})

    change: WordChange = Field(
        discriminator="action", description="with the fields of the route that makes the change, and its `action`"
    )
    queries: Annotated[list[Name], Field(min_length=1, max_length=MAX_QUERIES)] | None = Field(
        None, description="if left out: words of the change, then the nouns that most names of products begin with"
    )


class FirstTen(BaseModel):
    product_ids: list[int] = Field(description="of the first page of ten")
    total: int
    total_is_exact: bool


class MovedProduct(BaseModel):
    product_id: int
    before: int = Field(description="its place in the list, from 1")
    after: int


class QueryPreview(BaseModel):
    query: str
    before: FirstTen
    after: FirstTen
    came: list[int] = Field(description="products of the first ten after the change that were not among them before")
    went: list[int]
    moved: list[MovedProduct]


class SearchPreview(BaseModel):
    queries: list[QueryPreview]
    names: dict[int, str] = Field(description="of all products in `queries`")


_PREVIEW: dict[str, Any] = {
    "queries": [
        {
            "query": "kulkas mini",
            "before": {"product_ids": [], "total": 0, "total_is_exact": True},
            "after": {"product_ids": [12], "total": 1, "total_is_exact": True},
            "came": [12],
            "went": [],
            "moved": [],
        }
    ],
    "names": {"12": "Mini bar 46 liter"},
}
PREVIEWED = responses(
    _PREVIEW,
    ADMIN_REQUIRED,
    {404: "Category not found", 409: "This category has subcategories: delete them first."},
)
