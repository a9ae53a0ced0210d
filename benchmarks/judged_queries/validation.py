"""Write validation.jsonl: queries by a third author, and which products of catalogue.csv answer them.

Run: python benchmarks/judged_queries/validation.py [--show 20]
Each query has a rule about category, name, tags, attributes, price or city. Grade 2 is what the query asks for,
grade 1 is acceptable. The rules of the pastes are here and their texts in validation_pastes.txt; the other queries
are in validation_names.py, validation_conditions.py and validation_sentences.py, their goods in validation_goods.py.
"""

import argparse
import csv
import json
import random
from collections import Counter
from pathlib import Path

import validation_goods as goods
from judging_rules import JudgedProduct, Query, Rule, attribute, brand, city, name, price, told, used
from validation_conditions import CITIES, PRICES, SKUS, UNITS
from validation_goods import query
from validation_names import BRANDS, HEAD_NOUNS, NOUNS, SUFFIXES, SYNONYMS, TYPOS
from validation_sentences import SENTENCES

HERE = Path(__file__).parent
MIN_RELEVANT = 5
MIN_OF_A_KIND = {"paste": 15, "sentence": 20, "synonym": 20, "city": 15, "unit": 15, "head_noun": 15, "typo": 10}

office_laptop = goods.laptop & name(r"512|1 ?tb") & ~name(r"\bi3\b") & ~goods.gaming_laptop & ~brand("Apple") & ~used
driver_phone = goods.android & price(0, 2000) & ~used

PASTES: dict[str, tuple[str, Rule, Rule | None, str]] = {
    "running shoes": ("id", goods.mens_running, None, "running shoes of men; no futsal, no hiking shoes, no sandals"),
    "mechanical keyboard": (
        "en",
        goods.mechanical_keyboard,
        None,
        "mechanical keyboards of any size; no set, no spare part",
    ),
    "office laptop": (
        "id",
        office_laptop & attribute("ram_gb", 16) & attribute("layar_inci", 14) & name("512"),
        office_laptop,
        "new, 14 inch, 16 GB and 512 GB, Windows, no games; 8 GB, 1 TB or another screen will do",
    ),
    "rice bag": (
        "id",
        goods.rice & attribute("berat_kg", 5),
        None,
        "rice in bags of 5 kg; all else on the list is bought",
    ),
    "nappies": (
        "en",
        goods.diaper_pants & name(r"\bl ?\d\d$"),
        goods.diaper_pants & name(r"\bxl\b"),
        "pants of size L; XL will do, smaller ones and tape will not",
    ),
    "home router": (
        "id",
        goods.router & attribute("standar", "WiFi 6"),
        goods.router & ~goods.wired_router,
        "WiFi 6; another WiFi router will do; no modem, no repeater, no wired one",
    ),
    "laptop power bank": (
        "en",
        goods.power_bank & attribute("daya_watt", 65),
        goods.power_bank & attribute("kapasitas_mah", 20000),
        "20000 mAh with 65 W; others of 20000 mAh will do",
    ),
    "pengajian scarves": (
        "id",
        goods.square_hijab,
        name("^pashmina|^hijab instan"),
        "square scarves of voal; pashmina or instant ones will do",
    ),
    "student backpack": (
        "en",
        goods.backpack & told("laptop"),
        name("^tas ransel (wanita korea|kulit)"),
        "backpacks with room for a laptop; a canvas or leather one will do",
    ),
    "laundry steam iron": (
        "id",
        goods.steam_iron & told("laundry"),
        goods.steam_iron,
        "steam irons made for a laundry; those for the home will do",
    ),
    "graphics card": (
        "mixed",
        goods.graphics_card & attribute("gpu", "RTX 4060") & price(0, 5500),
        goods.graphics_card & brand("Sapphire"),
        "RTX 4060 up to 5.5 million, new, no Ti; the card of AMD will do",
    ),
    "cordless drill": ("id", goods.battery_drill, None, "drills with a battery; no corded one, no bits"),
    "dry skin cream": (
        "en",
        goods.face_moisturizer & told("ceramide|sensitif"),
        goods.face_moisturizer,
        "for dry and sensitive skin; other moisturizers for the face will do",
    ),
    "malang crisps": (
        "id",
        goods.chips & name("malang|sanan"),
        goods.chips & city("Malang"),
        "fruit and tempe crisps of Malang; another keripik from there will do",
    ),
    "driver phone": (
        "id",
        driver_phone & name(r"\b6(gb)?/128"),
        driver_phone & name("/128"),
        "Android, new, 6 GB and 128 GB up to 2 million; 4 GB will do",
    ),
    "bookshelf": (
        "en",
        goods.bookshelf & ~name("dinding|anak"),
        goods.bookshelf,
        "free standing; on the wall or for children will do; no shoe rack",
    ),
    "hdmi cable": (
        "en",
        goods.hdmi_cable & attribute("panjang_m", 1.5, 2) & told("4k|8k"),
        goods.hdmi_cable & name("serat optik"),
        "1.5 to 2 m with 4K; the optical one, which does not name 4K, will do",
    ),
}


def read_catalogue() -> list[JudgedProduct]:
    with (HERE / "catalogue.csv").open(encoding="utf-8", newline="") as file:
        return [JudgedProduct(row) for row in csv.DictReader(file)]


def paste_queries() -> list[Query]:
    texts = {}
    for part in (HERE / "validation_pastes.txt").read_text(encoding="utf-8").split("== ")[1:]:
        title, _, text = part.partition("\n")
        texts[title] = text.strip()
        assert 60 <= len(text.split()) <= 200, (title, len(text.split()))
    assert texts.keys() == PASTES.keys()
    return [
        query("paste", language, texts[title], asked, note, acceptable)
        for title, (language, asked, acceptable, note) in PASTES.items()
    ]


def judge(asked: Query, products: list[JudgedProduct]) -> dict[str, int]:
    grades = {product.id: 2 for product in products if asked.asked(product)}
    if asked.acceptable:
        grades |= {p.id: 1 for p in products if asked.acceptable(p) and p.id not in grades}
    assert 2 in grades.values(), asked.text
    if asked.known_item:
        assert len(grades) == 1, (asked.text, grades)
    else:
        assert len(grades) >= MIN_RELEVANT, (asked.text, grades)
    return grades


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--show", type=int, default=0, help="print this many random queries with their products")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    products = read_catalogue()
    queries = [*NOUNS, *TYPOS, *SYNONYMS, *BRANDS, *UNITS, *PRICES, *CITIES, *SUFFIXES]
    queries += [*SKUS, *SENTENCES, *HEAD_NOUNS, *paste_queries()]
    grades = {asked.text: judge(asked, products) for asked in queries}
    assert len(grades) == len(queries), "two queries have the same text"
    lines = []
    for asked in queries:
        line: dict[str, object] = {"query": asked.text, "kind": asked.kind, "language": asked.language}
        line["relevant"] = grades[asked.text]
        if asked.known_item:
            line["known_item"] = True
        lines.append(json.dumps(line | {"note": asked.note}, ensure_ascii=False))
    kinds = Counter(asked.kind for asked in queries)
    assert all(kinds[kind] >= MIN_OF_A_KIND.get(kind, 5) for kind in kinds), kinds
    (HERE / "validation.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(queries)} queries: {dict(kinds)}, {dict(Counter(asked.language for asked in queries))}")
    by_id = {product.id: product for product in products}
    for asked in random.Random(arguments.seed).sample(queries, arguments.show):
        print(f"\n[{asked.kind}] {asked.text}\n  ({asked.note})")
        for product_id, grade in grades[asked.text].items():
            product = by_id[product_id]
            print(f"  {grade} {product_id} {product.name} | {product.price:,} | {product.city}")


if __name__ == "__main__":
    main()
