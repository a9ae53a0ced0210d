"""The judge of understanding: what it calls right, and what it calls gravely wrong."""

from pathlib import Path

import pytest

from benchmarks.judged_understanding.scoring import UnderstandingLine, grave_groups, load_lines, score, wrong_fields
from tis.marketplace.reading.structured_query import QueryContext, StructuredQuery

JUDGED = Path(__file__).parents[2] / "benchmarks" / "judged_understanding"

LINE = UnderstandingLine(
    id="x1",
    kind="noun_filters",
    language="id",
    query="laptop gaming ram 16 GB di Bandung, bukan MSI, sekitar 10 juta",
    expected={
        "category": "laptop",
        "cities": ["Bandung"],
        "exclude_brands": ["msi"],
        "min_price": 8_000_000,
        "max_price": 12_000_000,
    },
    text_has=["gaming", "16gb"],
    text_lacks=["bandung", "10", "juta"],
    accept={"intent": ["recommend"]},
    approximate=True,
)
RIGHT = {**LINE.expected, "text": "gaming ram 16 gb", "sort": "relevance"}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"intent": "recommend"},
        {"cities": ["bandung"]},
        {"max_price": 12_200_000},
        {"text": "Gaming 16GB"},
        {"text": ["gaming", "16 GB"]},
    ],
)
def test_other_spellings_of_a_right_query_are_right(change: dict[str, object]) -> None:
    assert wrong_fields(LINE, RIGHT | change) == set()


@pytest.mark.parametrize(
    ("change", "wrong", "groups"),
    [
        ({"max_price": 12_500_000}, {"max_price"}, {"price"}),
        ({"cities": []}, {"cities"}, {"place"}),
        ({"category": None}, {"category"}, {"category"}),
        ({"exclude_brands": []}, {"exclude_brands"}, {"exclusion"}),
        ({"intent": "stock"}, {"intent"}, set()),
        ({"text": "gaming 16gb bandung"}, {"text"}, set()),
        ({"text": "16gb"}, {"text"}, set()),
        ({"exclude_cities": ["Medan"]}, {"exclude_cities"}, {"place", "exclusion"}),
    ],
)
def test_a_wrong_field_is_named_with_its_group(change: dict[str, object], wrong: set[str], groups: set[str]) -> None:
    assert wrong_fields(LINE, RIGHT | change) == wrong
    assert grave_groups(wrong) == groups


def test_a_whole_other_query_may_be_right_too() -> None:
    cheaper = UnderstandingLine(
        "x2", "followup", "yang lebih murah?", {"max_price": 99}, accept_queries=[{"sort": "price_asc"}]
    )
    assert wrong_fields(cheaper, {"max_price": 99}) == set()
    assert wrong_fields(cheaper, {"sort": "price_asc"}) == set()
    assert wrong_fields(cheaper, {}) != set()


def test_without_a_category_the_noun_must_be_in_the_text() -> None:
    chair = UnderstandingLine("x3", "noun", "kursi lipat", {"category": "furniture"}, noun=["kursi"])
    chair = UnderstandingLine(**{**vars(chair), "accept": {"category": [None]}})
    assert wrong_fields(chair, {"category": "furniture", "text": "lipat"}) == set()
    assert wrong_fields(chair, {"text": "kursi lipat"}) == set()
    assert wrong_fields(chair, {"text": "lipat"}) == {"text"}


def test_comparisons_are_compared_without_order() -> None:
    line = UnderstandingLine(
        "x4", "compare", "a vs b", {"compare": {"items": ["Epson L3210", "Canon G2010"], "product_ids": []}}
    )
    assert wrong_fields(line, {"compare": {"items": ["canon g2010", "epson l3210"]}}) == set()
    assert wrong_fields(line, {"compare": {"items": ["canon g2010"]}}) == {"compare"}


def test_the_score_counts_a_line_once() -> None:
    result = score([(LINE, RIGHT), (LINE, RIGHT | {"cities": [], "max_price": None})])
    assert (result.lines, result.right, result.grave) == (2, 1, 1)
    assert result.grave_groups == {"price": 1, "place": 1}
    assert (result.right_share, result.grave_share) == (0.5, 0.5)


@pytest.mark.parametrize("path", sorted(JUDGED.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_judged_query_is_a_query(path: Path) -> None:
    lines = load_lines(path)
    assert len({line.id for line in lines}) == len(lines)
    for line in lines:
        QueryContext.model_validate(line.context)
        for expected in (line.expected, *line.accept_queries):
            StructuredQuery.model_validate(expected)
        for name, values in line.accept.items():
            for value in values:
                StructuredQuery.model_validate({name: value})
        lacking = {"text": " ".join(line.text_has).replace("|", " ")}
        assert wrong_fields(line, {**line.expected, **lacking}) <= {"text"}, (
            f"{line.id} accepts not even what it expects"
        )
