"""Where the words of a query stand in what was found."""

from typing import Any

import pytest

from tests.marketplace.search.conftest import Catalogue
from tis.marketplace.search.highlights import Highlighter, Highlights

TEXTS = ("name", "description", "brand", "category", "tags", "sku")


def highlights_of(catalogue: Catalogue, text: str) -> Highlights:
    results = catalogue.find(text)
    assert len(results.hits) == 1
    return Highlighter(results.text_query).highlights(results.hits[0].product)


def marked(catalogue: Catalogue, text: str) -> dict[str, list[str]]:
    """The words that are highlighted in each text."""
    [hit] = catalogue.find(text).hits
    highlights = highlights_of(catalogue, text)
    found = {one: [getattr(hit.product, one)[start:end] for start, end in getattr(highlights, one)] for one in TEXTS}
    if highlights.attributes:
        found["attributes"] = highlights.attributes
    return {name: words for name, words in found.items() if words}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("teko merah", {"name": ["Teko", "MERAH"]}),
        ("leptop teko", {"name": ["Teko"]}),  # what no product has is no match
        ("tekko", {"name": ["Teko"]}),  # corrected
        ("mer", {"name": ["MERAH"]}),  # the beginning of a word
        ("cerek", {"name": ["Teko"]}),  # a synonym
        ("panci susun", {"description": ["panci"], "tags": ["susun"]}),
        ("16gb", {"description": ["16 GB"], "attributes": ["ram_gb"]}),
        ("16 giga", {"description": ["16 GB"], "attributes": ["ram_gb"]}),
        ("wifi", {"description": ["Wi-Fi"]}),
        ("wi-fi", {"description": ["Wi-Fi"]}),
        ("rtx 4060", {"description": ["RTX4060"]}),
        ("rtx4060", {"description": ["RTX4060"]}),
        ("café noir", {"description": ["café Noir"[:4], "Noir"]}),
        ("cafe", {"description": ["café"]}),
        ("maspion", {"brand": ["Maspion"]}),
        ("MSP-01.x", {"sku": ["MSP-01-X"]}),
        ("msp01x", {"sku": ["MSP-01-X"]}),
        ("hitam", {"attributes": ["Warna"]}),
        ("ko", {}),
    ],
)
def test_the_words_that_matched_are_highlighted(catalogue: Catalogue, text: str, words: dict[str, list[str]]) -> None:
    catalogue.synonym("cerek", "teko")
    catalogue.put(
        "Teko MERAH-tua",
        description="Dari panci: 16 GB, RTX4060 & Wi-Fi.\nUntuk café Noir 😀 teko-tekoan? Bukan.",
        brand="Maspion",
        tags="susun,besar",
        sku="MSP-01-X",
        category="Dapur",
        attributes={"ram_gb": 16, "Warna": "Hitam"},
    )
    if not words:
        assert catalogue.find(text).hits == []
        return
    found = marked(catalogue, text)
    if "teko" in words.get("name", [""])[0].lower():
        assert found.pop("description") == ["teko"]
    assert found == words


def test_products_of_a_category_that_was_named_show_it(catalogue: Catalogue) -> None:
    catalogue.put("Asus Vivobook", category="laptop")
    assert marked(catalogue, "notebook")["category"] == ["laptop"]


def test_ranges_count_characters_and_not_bytes_or_letters_of_an_accent(catalogue: Catalogue) -> None:
    catalogue.put("😀😀 Teko ﬁne e\u0301te\u0301 İz ﷺ Kopi", description=None)
    assert marked(catalogue, "kopi") == {"name": ["Kopi"]}
    assert marked(catalogue, "ete") == {"name": ["e\u0301te\u0301"]}
    assert marked(catalogue, "fine") == {"name": ["ﬁne"]}
    assert highlights_of(catalogue, "teko").name == [(3, 7)]
    assert highlights_of(catalogue, "teko").snippet is None


def test_a_phrase_is_highlighted_only_where_all_of_it_matched(catalogue: Catalogue) -> None:
    catalogue.synonym("magicom", "rice cooker")
    catalogue.put("Rice bowl magicom")
    assert marked(catalogue, "magicom") == {"name": ["magicom"]}


def test_the_snippet_is_the_part_with_most_words(catalogue: Catalogue) -> None:
    filler = "lorem ipsum dolor sit amet " * 12
    catalogue.put("Barang", description=f"Teko biasa. {filler}Di sini teko listrik merah. {filler}")
    snippet = highlights_of(catalogue, "teko listrik merah").snippet
    assert snippet is not None and len(snippet.text) <= 162
    assert snippet.text.startswith("…") and snippet.text.endswith("…") and "Teko biasa" not in snippet.text
    assert [snippet.text[start:end] for start, end in snippet.ranges] == ["teko", "listrik", "merah"]
    words = snippet.text.strip("…").split()
    assert set(words) <= set(f"{filler} Di sini teko listrik merah.".split())


@pytest.mark.parametrize("description", ["Pendek", "x" * 300, "kata " * 40, "teko" * 50])
def test_without_a_match_the_snippet_is_the_beginning(catalogue: Catalogue, description: str) -> None:
    catalogue.put("Teko", description=description)
    snippet = highlights_of(catalogue, "teko").snippet
    assert snippet is not None and snippet.ranges == []
    assert description.startswith(snippet.text.removesuffix("…")) and len(snippet.text) >= min(len(description), 120)


def test_long_texts_are_bounded(catalogue: Catalogue) -> None:
    catalogue.put("Teko", description="teko 16 GB wi-fi rtx4060 " * 700 + "ujung")
    highlights = highlights_of(catalogue, "teko 16gb")
    assert len(highlights.description) == 50
    assert highlights_of(catalogue, "ujung").description == []  # looked for in the first 5000 characters


@pytest.mark.parametrize("text", ["a", "-", "wi-", "🙂", "ß", "1/2 pk", "x" * 100, "ﬁ", "٣"])
def test_any_text_and_any_product_have_highlights(catalogue: Catalogue, text: str) -> None:
    values: dict[str, Any] = {"tags": "-,--", "brand": "ß-1", "attributes": {"x": None, "y": [1], "z": 10**400}}
    catalogue.put(f"A {text} ½ ﷺ\u0301 b-{text}", description=f"\u0301{text}-\n", **values)
    for hit in (results := catalogue.find(text)).hits:
        Highlighter(results.text_query).highlights(hit.product)
