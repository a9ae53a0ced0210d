"""Bodies and views of categories and synonyms, with their examples."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from tis.marketplace.kit.docs import KEY_USED, responses, schema_example
from tis.marketplace.kit.fields import Name, ShortName, key_of
from tis.marketplace.kit.unknown_fields import StrictBody

CATEGORY_FORM_EXAMPLE: dict[str, Any] = {"slug": "laptop", "name_id": "Laptop", "name_en": "Laptop", "parent": None}
CATEGORY_EXAMPLE: dict[str, Any] = {**CATEGORY_FORM_EXAMPLE, "product_count": 3}
SYNONYM_EXAMPLE: dict[str, Any] = {"term": "notebook", "means": "laptop", "category": "laptop", "is_broader": False}

SLUG_PATTERN = r"^[a-z0-9]+(-[a-z0-9]+)*$"
Slug = Annotated[str, Field(max_length=100, pattern=SLUG_PATTERN)]
Term = Annotated[ShortName, AfterValidator(key_of)]


class CategoryForm(StrictBody):
    model_config = schema_example(CATEGORY_FORM_EXAMPLE)

    slug: Slug
    name_id: ShortName
    name_en: ShortName
    parent: Slug | None = None


class CategoryChange(StrictBody):
    # Defaults are never used: only the fields that were sent are changed.
    model_config = schema_example({"name_en": "Laptops", "parent": "computer"})

    name_id: ShortName = ""
    name_en: ShortName = ""
    parent: Slug | None = None


class CategoryView(CategoryForm):
    product_count: int = Field(description="that can be bought, with its subcategories: as `category=` finds them")


class SynonymForm(StrictBody):
    model_config = schema_example(SYNONYM_EXAMPLE)

    term: Term = Field(description="the word that people type")
    means: Name = Field(description="the words that the catalogue uses")
    category: Slug | None = Field(None, description="the category of these products, if there is one")
    is_broader: bool = Field(
        False,
        description="the words are kinds of what the term means: `sembako` finds rice, `beras` finds no `sembako`",
    )


# Answers of the routes, for /docs.
_ADMINS_ONLY = {403: "Only an admin may do that."}
CATEGORIES_LISTED = responses([CATEGORY_EXAMPLE])
CATEGORY_ADDED = responses(
    {**CATEGORY_EXAMPLE, "product_count": 0}, _ADMINS_ONLY, {409: "Category already registered"}, KEY_USED
)
CATEGORY_CHANGED = responses(
    CATEGORY_EXAMPLE,
    _ADMINS_ONLY,
    {404: "Category not found", 409: "A category cannot be a subcategory of itself."},
)
CATEGORY_DELETED = responses(
    CATEGORY_FORM_EXAMPLE,
    _ADMINS_ONLY,
    {404: "Category not found"},
    {409: "This category has subcategories: delete them first."},
)
SYNONYMS_LISTED = responses([SYNONYM_EXAMPLE], _ADMINS_ONLY)
SYNONYM_ADDED = responses(SYNONYM_EXAMPLE, _ADMINS_ONLY, {404: "Category not found"}, KEY_USED)
SYNONYM_DELETED = responses(SYNONYM_EXAMPLE, _ADMINS_ONLY, {404: "Synonym not found"})
