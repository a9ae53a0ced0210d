"""What a model understands of a sentence, and how it is merged with what the rules found.

The rules own numbers and places. The model copies amounts as the buyer writes them, and our own code reads them: so it
cannot miscalculate, and what it quotes must stand in the sentence.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.reading.prices import price_in
from tis.marketplace.reading.structured_query import (
    Explanation,
    Intent,
    ParsedQuery,
    QuerySort,
    QuerySource,
    StructuredQuery,
)
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
    rules = {"now": _said(by_rules)} | ({"turn before": _said(previous)} if previous else {})
    system = _SYSTEM.format(today=today, rules=json.dumps(rules, ensure_ascii=False)[:_MAX_RULES_CHARS])
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]


def read_extraction(reply: str) -> ExtractedQuery | None:
    try:
        return ExtractedQuery.model_validate_json(reply)
    except ValidationError:
        return None


def merge(
    text: str, rules: ParsedQuery, model: ExtractedQuery, vocabulary: Vocabulary
) -> tuple[ParsedQuery, QuerySource]:
    """`rules` where the model adds nothing, else `merged`."""
    query, explain = rules.query, list(rules.explain)
    changes: dict[str, Any] = {}
    occurs = _occurrence_test(text)
    if query.intent == "search" and model.intent != "search":
        changes["intent"] = model.intent
    if model.category != query.category and not rules.exact_category and model.category in vocabulary.parents:
        changes["category"] = model.category
    words = [word for word in model.words.lower().split() if occurs(word)]
    if not query.text and words:
        changes["text"] = " ".join(words)
    unwanted = [one.lower() for one in model.exclude if occurs(one)]
    known_brands = set(vocabulary.brands)
    excluded_brands = [one for one in unwanted if one in known_brands]
    excluded_terms = [one for one in unwanted if one not in known_brands]
    changes |= _added("exclude_brands", query.exclude_brands, excluded_brands)
    changes |= _added("exclude_terms", query.exclude_terms, excluded_terms)
    refused = {*query.exclude_brands, *excluded_brands}
    brands = [one.lower() for one in model.brands if occurs(one) and one.lower() in known_brands - refused]
    changes |= _added("brands", query.brands, brands)
    if refused & set(query.brands):
        changes["brands"] = [one for one in query.brands if one not in refused]
    changes |= _merged_prices(query, model, occurs)
    changes |= _merged_places(query, model, occurs)
    for name in _OF_MODEL:
        said = getattr(model, name)
        if getattr(query, name) is None and said is not None:
            changes[name] = said
    if not changes:
        return rules, "rules"
    explain += [Explanation(field=name, rule="model", words=_words_of(value)) for name, value in changes.items()]
    return rules.model_copy(update={"query": query.model_copy(update=changes), "explain": explain}), "merged"


def _said(query: StructuredQuery) -> dict[str, Any]:
    return query.model_dump(exclude_defaults=True)


def _occurrence_test(text: str) -> Callable[[str], bool]:
    """Whether words stand in the text, one behind the other."""
    folded = f" {_words_joined(text)} "

    def occurs(quoted: str) -> bool:
        words = _words_joined(quoted)
        return bool(words) and f" {words} " in folded

    return occurs


def _words_joined(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


def _added(name: str, own: Sequence[str], more: Sequence[str]) -> Mapping[str, list[str]]:
    new = [one for one in dict.fromkeys(more) if one not in own]
    return {name: [*own, *new]} if new else {}


def _merged_prices(query: StructuredQuery, model: ExtractedQuery, occurs: Callable[[str], bool]) -> dict[str, Any]:
    """Only where the rules found no price at all."""
    if (query.min_price, query.max_price) != (None, None):
        return {}
    least, most = (_amount(one) if one and occurs(one) else None for one in (model.lowest_price, model.highest_price))
    if least is not None and most is not None and least > most:
        return {}
    return {name: value for name, value in (("min_price", least), ("max_price", most)) if value is not None}


def _amount(quoted: str) -> int | None:
    found = price_in(quoted)
    return found.most if found else None


def _merged_places(query: StructuredQuery, model: ExtractedQuery, occurs: Callable[[str], bool]) -> dict[str, Any]:
    """Only where the rules found no place, and if the gazetteer knows the name as one city."""
    if query.cities or query.provinces or query.exclude_cities:
        return {}
    cities = []
    for said in model.places:
        places = gazetteer().find(said) if occurs(said) else []
        if len(places) == 1:
            cities.append(places[0].name)
    return {"cities": list(dict.fromkeys(cities))} if cities else {}


def _words_of(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)
