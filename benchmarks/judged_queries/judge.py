"""Write unseen.jsonl and known_items.jsonl: queries, and which products of catalogue.csv answer them.

Run: python benchmarks/judged_queries/judge.py [--show 10]
Each query has a rule about category, name, tags, attributes, price or city. Grade 2 is what the query asks for,
grade 1 is acceptable. The queries are in unseen_queries.py, the vocabulary of their rules in judging_rules.py.
"""

import argparse
import csv
import json
import random
import re
from collections import Counter
from pathlib import Path

from judging_rules import JudgedProduct
from unseen_queries import KNOWN_ITEM_SEED, QUERIES

HERE = Path(__file__).parent
KINDS = "noun typo synonym brand unit price_word city suffix sku sentence head_noun paste".split()
EXTRA_WORDS = "promo ready original murah termurah bergaransi gratis ongkir terbaru cod".split()
LONG_WORD = re.compile(r"(?<!\S)[A-Za-z]{5,}(?!\S)")


def read_catalogue() -> list[JudgedProduct]:
    with (HERE / "catalogue.csv").open(encoding="utf-8", newline="") as file:
        return [JudgedProduct(row) for row in csv.DictReader(file)]


def judged_queries(products: list[JudgedProduct]) -> list[dict[str, object]]:
    pastes = {}
    for part in (HERE / "pastes.txt").read_text(encoding="utf-8").split("== ")[1:]:
        key, _, text = part.partition("\n")
        pastes[key] = text.strip()
    by_name = {product.name: product for product in products}
    by_id = {product.id: product for product in products}
    too_few: list[str] = []
    found: list[dict[str, object]] = []
    for query in QUERIES:
        text = query.text
        if query.kind == "paste":
            text = pastes.pop(text)
            if not 60 <= len(text.split()) <= 250:
                raise ValueError(f"a paste has {len(text.split())} words: {text[:40]}")
        text = re.sub(r"<sku:(.+?)>", lambda m: by_name[m[1]].sku, text)
        text = re.sub(r"<lower sku:(.+?)>", lambda m: by_name[m[1]].sku.lower(), text)
        text = re.sub(r"<plain sku:(.+?)>", lambda m: re.sub(r"\W", " ", by_name[m[1]].sku), text)
        grades = {}
        for product in products:
            if query.asked(product):
                grades[product.id] = 2
            elif query.acceptable and query.acceptable(product):
                grades[product.id] = 1
        if not any(grade == 2 for grade in grades.values()):
            raise ValueError(f"no product has grade 2: {text}")
        if len(grades) < 5 and query.kind != "sku" and not query.known_item:
            too_few.append(f"{len(grades)} for {text[:60]}: {[by_id[key].name for key in grades]}")
        line: dict[str, object] = {"query": text, "kind": query.kind, "language": query.language, "relevant": grades}
        if query.known_item:
            line["known_item"] = True
        found.append(line | {"note": query.note})
    if too_few:
        raise ValueError("five relevant products are expected:\n" + "\n".join(too_few))
    if pastes:
        raise ValueError(f"pastes without a query: {list(pastes)}")
    count = Counter((line["kind"], line["language"] == "id") for line in found)
    for kind in KINDS:
        indonesian, other = count[kind, True], count[kind, False]
        if indonesian + other < 6 or min(indonesian, other) < 2:
            raise ValueError(f"too few queries of kind {kind}: {indonesian} Indonesian, {other} English or mixed")
    return sorted(found, key=lambda line: KINDS.index(str(line["kind"])))


def with_slip(name: str, dice: random.Random) -> str:
    """The name with one slip of the finger in a longer word: two letters swapped, one lost, or one doubled."""
    words = name.lower().split()
    long_words = [index for index, word in enumerate(words) if len(word) >= 5 and word.isalpha()]
    index = dice.choice(long_words)
    word = words[index]
    at = dice.randrange(1, len(word) - 1)
    slip = dice.choice(["swap", "lose", "double"])
    if slip == "swap" and word[at] != word[at + 1]:
        words[index] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    elif slip == "double":
        words[index] = word[:at] + word[at] + word[at:]
    else:
        words[index] = word[:at] + word[at + 1 :]
    return " ".join(words)


def known_items(products: list[JudgedProduct]) -> list[dict[str, object]]:
    dice = random.Random(KNOWN_ITEM_SEED)
    fit = [product for product in products if LONG_WORD.search(product.name)]
    chosen = dice.sample(fit, 60)
    found: list[dict[str, object]] = []
    for position, product in enumerate(chosen):
        kind = ("name", "name_plus_two_words", "sku", "name_one_slip")[position // 15]
        if kind == "name":
            text = product.name
        elif kind == "name_plus_two_words":
            text = f"{product.name} {' '.join(dice.sample(EXTRA_WORDS, 2))}"
        elif kind == "sku":
            text = product.sku
        else:
            text = with_slip(product.name, dice)
        found.append({"query": text, "kind": kind, "relevant": {product.id: 2}, "known_item": True})
    return found


def write(name: str, lines: list[dict[str, object]]) -> None:
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (HERE / name).write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", type=int, default=0, help="print this many random queries with their relevant names")
    parser.add_argument("--seed", type=int, default=0, help="which random queries --show picks")
    options = parser.parse_args()
    products = read_catalogue()
    queries = judged_queries(products)
    write("unseen.jsonl", queries)
    write("known_items.jsonl", known_items(products))
    print(len(queries), "queries:", dict(Counter(line["kind"] for line in queries)))
    print("languages:", dict(Counter(line["language"] for line in queries)))
    by_id = {product.id: product for product in products}
    for line in random.Random(options.seed).sample(queries, min(options.show, len(queries))):
        print(f"\n[{line['kind']}] {line['query']}")
        grades = line["relevant"]
        assert isinstance(grades, dict)
        for key, grade in grades.items():
            product = by_id[key]
            print(f"   {grade} {product.name} | {product.price:,} | {product.city}")


if __name__ == "__main__":
    main()
