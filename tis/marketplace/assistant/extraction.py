"""What a model understands of a sentence, and how it is merged with what the rules found.

The rules own numbers and places. The model copies amounts as the buyer writes them, and our own code reads them: so it
cannot miscalculate, and what it quotes must stand in the sentence.
"""

import json
import math
import re
from collections.abc import Callable, Collection
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tis.marketplace.assistant.chat_schemas import Interpretation
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.reading.prices import AMOUNT_SPELLINGS, FoundPrice, find_price, foreign_amounts
from tis.marketplace.reading.structured_query import Explanation, Intent, ParsedQuery, QuerySort, StructuredQuery
from tis.marketplace.reading.vocabulary import Vocabulary

MAX_EXTRACTED_TOKENS = 240
_MAX_ITEMS = 5
_MAX_RULES_CHARS = 1500
_Quoted = Annotated[str, Field(max_length=60)]
_QuotedList = Annotated[list[_Quoted], Field(max_length=_MAX_ITEMS)]

_OF_MODEL = ("condition", "fulfilment", "sort", "in_stock")

_SYSTEM = """You read what a buyer of an Indonesian marketplace writes and fill in a JSON object. Today is {today}.
Copy words and amounts exactly as the buyer writes them. Leave out what the buyer does not say: null or [].
"category" is the kind of goods, or null. "words" are the remaining words to search for.
Rules have read already: {rules}"""


class ExtractedQuery(BaseModel):
    """The answer of the model. Its properties are in the order in which it writes them."""

    intent: Intent
    category: str | None
    words: Annotated[str, Field(max_length=120)]
    brands: _QuotedList
    exclude: _QuotedList
    lowest_price: _Quoted | None
    highest_price: _Quoted | None
    places: _QuotedList
    condition: Literal["new", "used"] | None
    fulfilment: Literal["delivery", "pickup"] | None
    in_stock: bool | None
    sort: QuerySort | None

    model_config = ConfigDict(extra="forbid")


def extraction_schema(vocabulary: Vocabulary) -> dict[str, Any]:
    """With the categories of the catalogue: the model cannot name another one."""
    schema = ExtractedQuery.model_json_schema()
    schema["properties"]["category"] = {"enum": [None, *sorted(vocabulary.parents)]}
    return schema


def extraction_messages(
    text: str, by_rules: StructuredQuery, previous: StructuredQuery | None, today: str
) -> list[dict[str, Any]]:
    """No text of a product is in them."""
    queries = {"now": by_rules} | ({"turn before": previous} if previous else {})
    rules = {name: query.model_dump(exclude_defaults=True) for name, query in queries.items()}
    system = _SYSTEM.format(today=today, rules=json.dumps(rules, ensure_ascii=False)[:_MAX_RULES_CHARS])
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]


def read_extraction(reply: str) -> ExtractedQuery | None:
    try:
        return ExtractedQuery.model_validate_json(reply)
    except ValidationError:
        return None


def merge(text: str, rules: ParsedQuery, model: ExtractedQuery, vocabulary: Vocabulary) -> Interpretation:
    """Its source is `rules` where the model adds nothing, else `merged`."""
    query, occurs = rules.query, _occurrence_test(text)
    changes: dict[str, Any] = {}
    if query.intent == "search" and model.intent != "search":
        changes["intent"] = model.intent
    if model.category != query.category and not rules.exact_category and model.category in vocabulary.parents:
        changes["category"] = model.category
    words = [word for word in model.words.lower().split() if occurs(word)]
    if not query.text and words:
        changes["text"] = " ".join(words)
    changes |= _merged_brands(query, model, occurs, set(vocabulary.brands))
    if query.min_price is None and query.max_price is None:
        changes |= _quoted_prices(model, occurs)
    if not (query.cities or query.provinces or query.exclude_cities):
        changes |= _quoted_cities(model, occurs)
    for name in _OF_MODEL:
        said = getattr(model, name)
        if getattr(query, name) is None and said is not None:
            changes[name] = said
    words_of = {name: ", ".join(one) if isinstance(one, list) else str(one) for name, one in changes.items()}
    explain = [Explanation(field=name, rule="model", words=words_of[name]) for name in changes]
    return Interpretation(
        query=query.model_copy(update=changes),
        source="merged" if changes else "rules",
        explain=[*rules.explain, *explain],
    )


def _occurrence_test(text: str) -> Callable[[str], bool]:
    """Whether words stand in the text, one behind the other."""
    folded = f" {_words_joined(text)} "

    def occurs(quoted: str) -> bool:
        words = _words_joined(quoted)
        return bool(words) and f" {words} " in folded

    return occurs


def _words_joined(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


def _merged_brands(
    query: StructuredQuery, model: ExtractedQuery, occurs: Callable[[str], bool], known: Collection[str]
) -> dict[str, list[str]]:
    """Exclusion goes before what is wanted."""
    unwanted = [one.lower() for one in model.exclude if occurs(one)]
    refused = {*query.exclude_brands, *(one for one in unwanted if one in known)}
    wanted = [one.lower() for one in model.brands if occurs(one) and one.lower() in known]
    merged = {
        "exclude_brands": [*query.exclude_brands, *(one for one in unwanted if one in known)],
        "exclude_terms": [*query.exclude_terms, *(one for one in unwanted if one not in known)],
        "brands": [one for one in (*query.brands, *wanted) if one not in refused],
    }
    unique = {name: list(dict.fromkeys(values)) for name, values in merged.items()}
    return {name: values for name, values in unique.items() if values != getattr(query, name)}


def _quoted_prices(model: ExtractedQuery, occurs: Callable[[str], bool]) -> dict[str, int]:
    found = {"min_price": model.lowest_price, "max_price": model.highest_price}
    prices = {name: price_in(quoted) for name, quoted in found.items() if quoted and occurs(quoted)}
    amounts = {name: price.most for name, price in prices.items() if price is not None and price.most is not None}
    return amounts if amounts.get("min_price", 0) <= amounts.get("max_price", math.inf) else {}


def price_in(text: str) -> FoundPrice | None:
    """The first price or range of a text in any spelling, but not in another currency."""
    folded = text.lower()
    for pattern, spelling in AMOUNT_SPELLINGS:
        folded = pattern.sub(spelling, folded)
    for start, end in foreign_amounts(folded):
        folded = folded[:start] + "\0" * (end - start) + folded[end:]
    return find_price(folded)


def _quoted_cities(model: ExtractedQuery, occurs: Callable[[str], bool]) -> dict[str, list[str]]:
    """Those that the gazetteer knows as one city."""
    found = [gazetteer().find(quoted) for quoted in model.places if occurs(quoted)]
    cities = list(dict.fromkeys(places[0].name for places in found if len(places) == 1))
    return {"cities": cities} if cities else {}
