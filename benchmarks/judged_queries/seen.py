"""Judges the seen half of the search queries over catalogue.csv and writes seen.jsonl, both beside this file.

The judgements follow from what a query says. A product gets 2 where it is what the query asks for and 1 where
a buyer would accept it; the tests of the products stand beside the queries in seen_names.py and
seen_conditions.py, those of the pastes here and their texts in seen_pastes.txt.
"""

import json
import re
import statistics
from collections import Counter
from pathlib import Path

from seen_conditions import CITIES, PRICES, SENTENCES, SKUS, UNITS, sku_query
from seen_goods import (
    CatalogueProduct,
    JudgedQuery,
    Test,
    coffee,
    frying_oil,
    futsal_shoe,
    gaming_laptop,
    kilos,
    litres,
    office_chair,
    read_catalogue,
    refreshes,
    rice,
    screen_of,
    sun_cream,
    tent,
    wireless_buds,
)
from seen_names import BRANDS, HEADS, NOUNS, SUFFIXES, SYNONYMS, TYPOS

HERE = Path(__file__).parent
MIN_RELEVANT = 5
MIN_OF_A_KIND = 6


def on_shopping_list(p: CatalogueProduct) -> bool:
    return (
        (rice(p) and kilos(p) == 5)
        or (frying_oil(p) and litres(p) == 2)
        or p.named(r"^gula pasir.*1 ?kg|^telur ayam.*1 ?kg|^garam dapur|^indomie goreng.*\bdus\b")
    )


def family_tent(p: CatalogueProduct) -> bool:
    return tent(p) and p.says("lapis|layer") and p.attributes.get("kapasitas") in {"3 orang", "4 orang"}


def roasted_arabica_beans(p: CatalogueProduct) -> bool:
    return coffee(p) and p.says("arabi[kc]a") and p.tagged("biji|longberry") and not p.named("green bean|blend")


PASTES: dict[str, tuple[str, Test, Test, str]] = {
    "gaming laptop": (
        "id",
        lambda p: gaming_laptop(p) and p.named("rtx 4060") and p.attributes.get("ram_gb") == 16,
        gaming_laptop,
        "an advert of a laptop with RTX 4060 and 16 GB; other gaming laptops will do; no graphics card",
    ),
    "shopping list": (
        "id",
        on_shopping_list,
        lambda p: p.named(r"^gula pasir|^indomie goreng (original|jumbo)|^minyak goreng .*1 ?l|^minyakita"),
        "six goods in the sizes of the list; other sizes of sugar, oil and noodles will do",
    ),
    "office chairs": (
        "en",
        lambda p: office_chair(p) and p.says("jaring|mesh"),
        office_chair,
        "chairs with a mesh back; other office chairs will do; desks and cabinets are ruled out",
    ),
    "family tent": (
        "en",
        family_tent,
        lambda p: tent(p) and p.attributes.get("kapasitas") in {"3 orang", "4 orang"},
        "two layers, three or four people; one that does not name its layers will do; no mats, bags, stove",
    ),
    "sunscreen": (
        "id",
        lambda p: sun_cream(p) and p.attributes["spf"] == 50 and not p.named("body"),
        sun_cream,
        "for the face with SPF 50; other sunscreens will do",
    ),
    "futsal shoes": (
        "id",
        lambda p: futsal_shoe(p) and not p.named("anak"),
        lambda p: False,
        "of adults; sizes and brands are open; no football shoes with studs, none for children",
    ),
    "monitor": (
        "mixed",
        lambda p: screen_of(27)(p) and refreshes(p) >= 144 and p.says("ips") and not p.says("qhd"),
        screen_of(27),
        "27 inch, IPS, 144 Hz or more; other 27 inch monitors will do; no bracket, no lamp",
    ),
    "earbuds": (
        "en",
        lambda p: wireless_buds(p) and p.says("peredam bising"),
        wireless_buds,
        "with noise cancelling; other wireless earbuds will do; no cable",
    ),
    "coffee beans": (
        "id",
        roasted_arabica_beans,
        lambda p: coffee(p) and p.says("arabi[kc]a") and not p.named("green bean"),
        "whole arabica beans, roasted; ground ones and blends will do; no tools, no glasses",
    ),
}


def paste_queries() -> list[JudgedQuery]:
    blocks = re.split(r"^=== (.+)\n", (HERE / "seen_pastes.txt").read_text(encoding="utf-8"), flags=re.M)[1:]
    texts = {title: text.strip() for title, text in zip(blocks[::2], blocks[1::2], strict=True)}
    for title, text in texts.items():
        assert 60 <= len(text.split()) <= 250, title
    assert texts.keys() == PASTES.keys()
    return [
        JudgedQuery("paste", language, texts[title], asked, acceptable, note)
        for title, (language, asked, acceptable, note) in PASTES.items()
    ]


def sku_queries(products: list[CatalogueProduct]) -> list[JudgedQuery]:
    queries = []
    for language, shape, pattern, note in SKUS:
        [product] = [p for p in products if re.search(pattern, p.name)]
        queries.append(sku_query(language, shape, product, note))
    return queries


def judge(query: JudgedQuery, products: list[CatalogueProduct]) -> dict[str, int]:
    asked = [p for p in products if query.asked(p)]
    if query.cheap:
        middle = statistics.median(p.price for p in asked)
        grades = {p.id: 2 if p.price <= middle else 1 for p in asked}
    else:
        grades = {p.id: 2 for p in asked}
    if query.acceptable:
        grades |= {p.id: 1 for p in products if query.acceptable(p) and p.id not in grades}
    return grades


def main() -> None:
    products = read_catalogue(HERE / "catalogue.csv")
    queries = [*NOUNS, *TYPOS, *SYNONYMS, *BRANDS, *UNITS, *PRICES, *CITIES, *SUFFIXES]
    queries += [*sku_queries(products), *SENTENCES, *HEADS, *paste_queries()]
    lines = []
    for query in queries:
        grades = judge(query, products)
        assert 2 in grades.values(), query.text
        assert query.one_item or len(grades) >= MIN_RELEVANT, (query.text, grades)
        line = {"query": query.text, "kind": query.kind, "language": query.language, "relevant": grades}
        lines.append(json.dumps(line | {"note": query.note}, ensure_ascii=False))
    kinds = Counter(query.kind for query in queries)
    assert min(kinds.values()) >= MIN_OF_A_KIND and len({query.text for query in queries}) == len(queries)
    (HERE / "seen.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(queries)} queries: {dict(kinds)}, {dict(Counter(query.language for query in queries))}")


if __name__ == "__main__":
    main()
