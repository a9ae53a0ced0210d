"""Write catalogue.csv from catalogue_families.txt: expand the variants, fill in shop, SKU, rating and stock.

Run: python benchmarks/judged_queries/make_catalogue.py
The output depends on the text file only: numbers that look random come from a hash of the product's name.
"""

import csv
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
COLUMNS = (
    "id,sku,name,description,category,brand,price,condition,tags,attributes,shop,city,province,rating,stock".split(",")
)


@dataclass
class CatalogueShop:
    name: str
    city: str
    province: str
    separator: str


@dataclass
class FamilyBlock:
    category: str
    shops: list[str]
    lines: list[list[str]] = field(default_factory=list)


def read_families(path: Path) -> tuple[dict[str, CatalogueShop], list[FamilyBlock]]:
    shops: dict[str, CatalogueShop] = {}
    blocks: list[FamilyBlock] = []
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("shop "):
            key, _, rest = line[5:].partition(" = ")
            shops[key] = CatalogueShop(*[cell.strip() for cell in rest.split("|")])
        elif line.startswith("== "):
            category, _, keys = line[3:].partition(" @ ")
            blocks.append(FamilyBlock(category, keys.split(",")))
        else:
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) != 6:
                raise ValueError(f"line {number}: {len(cells)} cells, 6 expected: {line}")
            blocks[-1].lines.append(cells)
    return shops, blocks


def variants(name: str, price: str) -> list[tuple[str, str, int]]:
    """(name, variant text, price in thousands) for each alternative between braces."""
    match = re.search(r"\{(.+?)\}", name)
    if match is None:
        return [(name, "", int(price))]
    found = []
    for option in match[1].split(";"):
        text, _, own_price = option.partition("=")
        found.append((name[: match.start()] + text + name[match.end() :], text, int(own_price or price)))
    return found


def fill(template: str, variant: str) -> str:
    number = re.search(r"\d+(?:[.,]\d+)?", variant)
    digits = number[0].replace(",", ".") if number else variant
    if re.fullmatch(r"\d+\.000", digits):  # 20.000 mAh is twenty thousand
        digits = digits.replace(".", "")
    return template.replace("$", variant).replace("#", digits)


def attribute_value(text: str) -> str | int | float:
    if re.fullmatch(r"\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"\d+\.\d+", text) else text


def dice(name: str, purpose: str, sides: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{purpose}:{name}".encode()).digest()[:4], "big") % sides


def main() -> None:
    shops, blocks = read_families(HERE / "catalogue_families.txt")
    rows: list[dict[str, object]] = []
    for block in blocks:
        leaf = re.sub(r"[^A-Z]", "", block.category.split("/")[1].upper())[:3]
        for position, (name, brand, price, attributes, tags, description) in enumerate(block.lines):
            words = [tag for tag in tags.split(",") if tag]
            own_shop = next((word[1:] for word in words if word.startswith("@")), None)
            shop = shops[own_shop or block.shops[position % len(block.shops)]]
            shown = [word for word in words if word != "used" and not word.startswith("@")]
            for full_name, variant, thousands in variants(name, price):
                pairs = [pair.partition("=") for pair in fill(attributes, variant).split(",") if pair]
                number = str(1000 + dice(full_name, "sku number", 9000))
                code = [re.sub(r"[^A-Z0-9]", "", brand.upper())[:4], leaf, number]
                rows.append(
                    {
                        "id": f"q{len(rows) + 1:04d}",
                        "sku": shop.separator.join(code),
                        "name": full_name,
                        "description": fill(description, variant),
                        "category": block.category,
                        "brand": brand,
                        "price": thousands * 1000,
                        "condition": "used" if "used" in words else "new",
                        "tags": ",".join(shown),
                        "attributes": json.dumps({k: attribute_value(v) for k, _, v in pairs}, ensure_ascii=False),
                        "shop": shop.name,
                        "city": shop.city,
                        "province": shop.province,
                        "rating": (36 + dice(full_name, "rating", 15)) / 10,
                        "stock": 1 + dice(full_name, "stock", 250),
                    }
                )
    for column in ("sku", "name"):
        values = [row[column] for row in rows]
        repeated = {value for value in values if values.count(value) > 1}
        if repeated:
            raise ValueError(f"{column} is not unique: {repeated}")
    with (HERE / "catalogue.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    used_shops = {row["shop"] for row in rows}
    print(f"{len(rows)} products, {len(used_shops)} of {len(shops)} shops, {len(blocks)} categories")


if __name__ == "__main__":
    main()
