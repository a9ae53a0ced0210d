"""Body and view of the route that parses a sentence, with their example."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from tis.marketplace.kit.docs import responses, schema_example
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.reading.structured_query import (
    MAX_QUERY_CHARS,
    Explanation,
    QueryContext,
    QuerySource,
    StructuredQuery,
)


def _not_blank(query: str) -> str:
    if not any(map(str.isalnum, query)):
        raise ValueError("must have a letter or a digit")
    return query


_SENTENCE = "Saya butuh laptop gaming di Jakarta, budget 12 juta, jangan yang bekas"
_PARSED: dict[str, Any] = {
    "query": {
        **StructuredQuery().model_dump(),
        "category": "laptop",
        "text": "gaming",
        "max_price": 12_000_000,
        "cities": ["Jakarta"],
        "condition": "new",
    },
    "source": "rules",
    "explain": [
        {"field": "max_price", "rule": "ceiling", "words": "budget 12 juta"},
        {"field": "cities", "rule": "place", "words": "di Jakarta"},
        {"field": "condition", "rule": "words of condition", "words": "jangan yang bekas"},
        {"field": "category", "rule": "main noun", "words": "laptop gaming"},
    ],
}


class SentenceForm(StrictBody):
    model_config = schema_example({"query": _SENTENCE, "context": {"user": {"city": "Depok"}}})

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS), AfterValidator(_not_blank)]
    context: QueryContext = Field(default_factory=QueryContext)


class ParsedSentence(BaseModel):
    query: StructuredQuery
    source: QuerySource = Field(description="`rules`, or `llm` or `merged` if a model helped")
    explain: list[Explanation] = Field(description="which words filled a field, and by which rule")


PARSED = responses(_PARSED, {422: "query: must have a letter or a digit"})
