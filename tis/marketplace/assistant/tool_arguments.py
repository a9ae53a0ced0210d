"""What the tools of the catalogue take: arguments, their JSON Schemas for models, and what is said of wrong ones."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from tis.marketplace.assistant.goods import MAX_CARDS
from tis.marketplace.reading.structured_query import MAX_QUERY_CHARS, ProductId, StructuredQuery

_MAX_PROBLEMS = 3
_MAX_PROBLEM_CHARS, _MAX_NAME_CHARS = 200, 60
_NOT_FOR_TOOLS = (
    "intent",
    "compare",
    "product_ids",
    "order_by",
    "asked",
    "measures",
    "total_price",
)  # what a sentence wants; here the name of the tool says it
_MAX_CATEGORIES = 200  # more would make the schema longer than the prompts of small models

ProductIds = Annotated[list[ProductId], Field(max_length=MAX_CARDS, description="ids of products that were found")]


class SearchArguments(StructuredQuery):
    text: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_QUERY_CHARS)] = Field(
        "", description="words to look for, or a plain sentence"
    )
    limit: int = Field(MAX_CARDS, ge=1, le=MAX_CARDS, description="products in the result")


class LookupArguments(BaseModel):
    ids: Annotated[ProductIds, Field(min_length=1)]

    model_config = ConfigDict(extra="forbid")


class CompareArguments(BaseModel):
    ids: Annotated[ProductIds, Field(min_length=2)]

    model_config = ConfigDict(extra="forbid")


def search_schema(categories: Sequence[str]) -> dict[str, Any]:
    schema = schema_of(SearchArguments)
    for name in _NOT_FOR_TOOLS:
        del schema["properties"][name]
    schema.pop("$defs", None)
    if 0 < len(categories) <= _MAX_CATEGORIES:
        schema["properties"]["category"]["enum"] = list(categories)
    return schema


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Without titles, defaults and nulls: models read it, and leave out what they do not need."""
    schema: dict[str, Any] = _plain(model.model_json_schema())
    return schema


def _plain(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    options = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(options) == 1:
        schema = {**{name: value for name, value in schema.items() if name != "anyOf"}, **options[0]}
    return {
        name: {key: _plain(value) for key, value in part.items()} if name == "properties" else _plain(part)
        for name, part in schema.items()
        if name not in ("title", "default")
    }


def problems_of(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{_path(one['loc'])}: {one['msg'][:_MAX_PROBLEM_CHARS]}" for one in problems[:_MAX_PROBLEMS]]
    return f"Wrong arguments. {'; '.join(lines)}"


def _path(parts: Sequence[str | int]) -> str:
    return ".".join(map(str, parts))[:_MAX_NAME_CHARS] or "arguments"
