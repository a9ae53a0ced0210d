"""What a model understands is merged with what the rules found: numbers and places are theirs."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tis.marketplace.assistant.extraction import (
    ExtractedQuery,
    extraction_messages,
    extraction_schema,
    merge,
    price_in,
    read_extraction,
)
from tis.marketplace.reading.structured_query import ParsedQuery, StructuredQuery
from tis.marketplace.reading.vocabulary import Vocabulary

NOTHING: dict[str, Any] = {
    "intent": "search",
    "category": None,
    "words": "",
    "brands": [],
    "exclude": [],
    "lowest_price": None,
    "highest_price": None,
    "places": [],
    "condition": None,
    "fulfilment": None,
    "in_stock": None,
    "sort": None,
}
VOCABULARY = Vocabulary({}, {"laptop": None, "bag": None}, {}, {}, brands=("asus", "hp", "msi"))


def merged(
    text: str, rules: dict[str, Any], model: dict[str, Any], *, exact: bool = False
) -> tuple[dict[str, Any], str]:
    parsed = ParsedQuery(query=StructuredQuery(**rules), exact_category=exact)
    result = merge(text, parsed, ExtractedQuery(**NOTHING | model), VOCABULARY)
    return result.query.model_dump(exclude_defaults=True), result.source


@pytest.mark.parametrize(
    ("text", "rules", "model", "expected"),
    [
        # Numbers of the rules stay, whatever the model says; a quoted amount is read by our own code.
        ("laptop 12 juta", {"max_price": 12_000_000}, {"highest_price": "12 juta"}, {"max_price": 12_000_000}),
        ("laptop 12 juta", {"max_price": 12_000_000}, {"lowest_price": "12 juta"}, {"max_price": 12_000_000}),
        ("budgetku 5 juta", {}, {"highest_price": "5 juta"}, {"max_price": 5_000_000}),
        ("budgetku 5 juta", {}, {"highest_price": "6 juta"}, {}),
        ("tas buat kerja", {}, {"lowest_price": "kerja"}, {}),
        ("5 juta sampai 2 juta", {}, {"lowest_price": "5 juta", "highest_price": "2 juta"}, {}),
        # Places must stand in the sentence and be one city of the gazetteer.
        ("yang di bandung", {}, {"places": ["bandung"]}, {"cities": ["Bandung"]}),
        ("yang di bandung", {}, {"places": ["surabaya"]}, {}),
        ("dari wakanda", {}, {"places": ["wakanda"]}, {}),
        ("di bandung", {"cities": ["Surabaya"]}, {"places": ["bandung"]}, {"cities": ["Surabaya"]}),
        # Categories of the catalogue only, and not instead of a noun that the rules know.
        ("something for work", {}, {"category": "laptop"}, {"category": "laptop"}),
        ("something for work", {}, {"category": "rocket"}, {}),
        # Brands of the catalogue that stand in the sentence; excluded goes before wanted.
        ("asus atau msi", {"brands": ["asus"]}, {"brands": ["MSI", "hp"]}, {"brands": ["asus", "msi"]}),
        ("no asus please", {"brands": ["asus"]}, {"exclude": ["asus"]}, {"exclude_brands": ["asus"], "brands": []}),
        ("jangan merah", {}, {"exclude": ["merah", "biru"]}, {"exclude_terms": ["merah"]}),
        ("yang second", {}, {"condition": "used"}, {"condition": "used"}),
        ("yang second", {"condition": "new"}, {"condition": "used"}, {"condition": "new"}),
        ("light one for school", {}, {"words": "light gaming school"}, {"text": "light school"}),
    ],
)
def test_rules_own_what_they_found_and_the_model_adds_what_the_sentence_says(
    text: str, rules: dict[str, Any], model: dict[str, Any], expected: dict[str, Any]
) -> None:
    found, source = merged(text, rules, model)
    assert found == {name: value for name, value in expected.items() if value}
    assert source == ("rules" if found == rules else "merged")


def test_a_main_noun_that_the_rules_know_is_not_another_category() -> None:
    assert merged("tas laptop", {"category": "bag"}, {"category": "laptop"}, exact=True)[0] == {"category": "bag"}
    assert merged("buat laptop", {"category": "bag"}, {"category": "laptop"})[0] == {"category": "laptop"}


def test_each_change_of_the_model_is_explained() -> None:
    merged = merge(
        "yang second",
        ParsedQuery(query=StructuredQuery()),
        ExtractedQuery(**NOTHING | {"condition": "used"}),
        VOCABULARY,
    )
    assert [(one.field, one.rule, one.words) for one in merged.explain] == [("condition", "model", "used")]


def test_the_model_may_name_categories_of_the_catalogue_and_nothing_else() -> None:
    schema = extraction_schema(VOCABULARY)
    assert schema["properties"]["category"] == {"enum": [None, "bag", "laptop"]}
    assert list(schema["properties"]) == schema["required"] and schema["additionalProperties"] is False


def test_the_question_says_what_the_rules_have_read() -> None:
    previous = StructuredQuery(category="laptop")
    system, user = extraction_messages("yang merah", StructuredQuery(text="merah"), previous, "2026-11-23")
    assert user == {"role": "user", "content": "yang merah"}
    assert '"turn before": {"category": "laptop"}' in system["content"] and "2026-11-23" in system["content"]


@pytest.mark.parametrize("reply", ["", "{}", "[1]", '{"intent": "search"', json.dumps(NOTHING | {"user_id": 1})])
def test_what_is_no_answer_of_the_schema_is_none(reply: str) -> None:
    assert read_extraction(reply) is None


@given(
    st.text("0123456789.,- rpjutaibkdw ", max_size=60)
    | st.integers(0).map(lambda number: f"hp {number}{'9' * 400} juta")
)
def test_no_number_is_too_much(text: str) -> None:
    said = price_in(text)
    assert said is None or said.most is None or said.least is None or said.least <= said.most
