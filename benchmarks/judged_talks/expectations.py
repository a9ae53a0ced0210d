"""What must hold of an answer: the rules that a turn of a talk names, and the goods as the data files have them."""

import csv
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLE = _REPOSITORY / "tis/marketplace/seed/sample.json"
CATALOGUE = _REPOSITORY / "benchmarks/judged_queries/catalogue.csv"

# A sentence that says so, in either language. A regex of the data names one with @.
_SENTENCES = {
    "nothing": r"\b(tidak|tak|tdk|belum|bukan|nggak|enggak|gak|kosong|habis|maaf|hanya|cuma"
    r"|no|not|none|nothing|cannot|only|sorry|unfortunately|out of stock|sold out)\b|n't\b",
    "found_nothing": r"tidak (ada|menemukan|ditemukan)|belum (ada|menemukan)|found (nothing|no)|no products|n't find",
    "goods_only": r"belanja|barang|produk|\b(men)?cari|beli|toko|pasar"
    r"|shop|product|goods|find|search|\bbuy|market|\bitems?\b",
    "polite": r"sama-sama|kembali|senang|terima ?kasih|siap|selamat|welcome|glad|pleasure|happy|any ?time",
    "greeting": r"halo|\bhai\b|\bhi\b|hello|selamat|good (morning|day)|cari|bantu|help|looking for|find",
}


@dataclass(frozen=True)
class Good:
    name: str
    brand: str
    price: int
    stock: int
    category: str
    condition: str
    shop: str
    city: str
    attributes: Mapping[str, Any]
    text: str  # all that the shop says of it

    def has_attribute(self, name: str, wanted: Any) -> bool:
        value = self.attributes.get(name)
        if isinstance(wanted, list):
            least, most = wanted
            if not isinstance(value, int | float):
                return False
            return (least is None or value >= least) and (most is None or value <= most)
        return str(value).lower() == str(wanted).lower()

    def amount(self, name: str) -> float | None:
        value = self.price if name == "price" else self.attributes.get(name)
        return float(value) if isinstance(value, int | float) else None


def goods_of_sample() -> dict[str, Good]:
    suppliers = json.loads(SAMPLE.read_text(encoding="utf-8"))["suppliers"]
    rows = [(row, shop) for shop in suppliers for one in (shop, *shop.get("groups", ())) for row in one["products"]]
    goods = (_good(product, shop["business_name"], shop["city"], product["stock"]) for product, shop in rows)
    return {good.name: good for good in goods}


def catalogue_rows() -> list[dict[str, str]]:
    with CATALOGUE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def goods_of_catalogue() -> dict[str, Good]:
    goods = {}
    for row in catalogue_rows():
        read = {"attributes": json.loads(row["attributes"] or "{}"), "category": row["category"].rpartition("/")[2]}
        goods[row["name"]] = _good({**row, **read}, row["shop"], row["city"], int(row["stock"]))
    return goods


def _good(product: Mapping[str, Any], shop: str, city: str, stock: int) -> Good:
    texts = [product[key] for key in ("name", "description", "brand", "category", "tags")]
    texts += [f"{key} {value}" for key, value in product["attributes"].items()]
    return Good(
        name=product["name"],
        brand=product["brand"],
        price=int(product["price"]),
        stock=stock,
        category=product["category"],
        condition=product["condition"],
        shop=shop,
        city=city,
        attributes=product["attributes"],
        text=" | ".join(texts),
    )


_TESTS: dict[str, Callable[[Good, Any], bool]] = {
    "name": lambda good, pattern: _has(good.name, pattern),
    "not_name": lambda good, pattern: not _has(good.name, pattern),
    "text": lambda good, pattern: _has(good.text, pattern),
    "not_text": lambda good, pattern: not _has(good.text, pattern),
    "brand": lambda good, brands: good.brand in brands,
    "not_brand": lambda good, brands: good.brand not in brands,
    "category": lambda good, names: good.category in names,
    "city": lambda good, names: good.city in names,
    "condition": lambda good, condition: good.condition == condition,
    "max_price": lambda good, price: good.price <= price,
    "min_price": lambda good, price: good.price >= price,
    "min_stock": lambda good, stock: good.stock >= stock,
    "attributes": lambda good, wanted: all(good.has_attribute(name, one) for name, one in wanted.items()),
    "attributes_if_any": lambda good, wanted: all(
        name not in good.attributes or good.has_attribute(name, one) for name, one in wanted.items()
    ),
}


def fits(good: Good, predicate: Mapping[str, Any]) -> bool:
    return all(_TESTS[name](good, wanted) for name, wanted in predicate.items())


def _has(text: str, pattern: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


@dataclass
class TalkJudge:
    """Judges the answers of one talk in their order, and remembers what was shown."""

    goods: Mapping[str, Good]
    shown: list[list[str]] = field(default_factory=list)  # the names of the products, by turn

    def problems(self, turn: Mapping[str, Any], answer: Mapping[str, Any]) -> list[str]:
        names = [product["name"] for product in answer["products"]]
        said = answer["response"]
        untrue = [
            f"shows {one['name']!r} for {one['price']}"
            for one in answer["products"]
            if one["name"] not in self.goods or self.goods[one["name"]].price != one["price"]
        ]
        found = untrue or self._broken({k: v for k, v in turn.items() if k != "query"}, names, said)
        if not said.strip():
            found.append("says nothing")
        self.shown.append(names)
        return found

    def _broken(self, rules: Mapping[str, Any], names: Sequence[str], said: str) -> list[str]:
        checks: dict[str, Callable[[Any], Iterable[str]]] = {
            "none": lambda _: (f"shows {name!r}" for name in names[:1]),
            "exactly": lambda wanted: _differences(wanted, names),
            "first": lambda wanted: () if names[:1] and names[0] in wanted else (f"first is {names[:1]}",),
            "first_is": lambda wanted: (
                () if names[:1] and fits(self.goods[names[0]], wanted) else (f"first is {names[:1]}",)
            ),
            "all_of": lambda wanted: (f"lacks {one!r}" for one in wanted if not _shows(one, names)),
            "only": lambda wanted: (f"shows {name!r}" for name in names if not fits(self.goods[name], wanted)),
            "min_products": lambda least: () if len(names) >= least else (f"shows {len(names)} products",),
            "max_products": lambda most: () if len(names) <= most else (f"shows {len(names)} products",),
            "says": lambda patterns: (f"does not say {one}" for one in patterns if not _has(said, _written_out(one))),
            "says_not": lambda patterns: (f"says {one}" for one in patterns if _has(said, _written_out(one))),
            "extreme": lambda wanted: self._not_extreme(wanted, names),
            "about": lambda wanted: self._not_about(wanted, names, said),
            "either": lambda several: self._broken_by_all(several, names, said),
        }
        return [problem for name, wanted in rules.items() for problem in checks[name](wanted)]

    def _broken_by_all(self, several: Sequence[Mapping[str, Any]], names: Sequence[str], said: str) -> Iterable[str]:
        broken = [self._broken(rules, names, said) for rules in several]
        return () if [] in broken else (" and ".join(problems) for problems in broken)

    def _not_extreme(self, wanted: Mapping[str, Any], names: Sequence[str]) -> Iterable[str]:
        """The first must be the extreme of what was shown in a turn, or of all goods that fit."""
        pick = min if wanted["order"] == "least" else max
        groups = (
            [self.goods[name] for name in self.shown[wanted["turn"]]],
            [good for good in self.goods.values() if fits(good, wanted["where"])],
        )
        amounts = [[good.amount(wanted["attribute"]) for good in group] for group in groups]
        best = {pick(known) for several in amounts if (known := [one for one in several if one is not None])}
        if not names or self.goods[names[0]].amount(wanted["attribute"]) not in best:
            yield f"first is {list(names[:1])}, {wanted['attribute']} should be one of {sorted(best)}"

    def _not_about(self, wanted: Mapping[str, Any], names: Sequence[str], said: str) -> Iterable[str]:
        """The answer is about one product, which is named or is the one at a place of a turn before."""
        if "name" in wanted:
            good = self.goods[wanted["name"]]
        else:
            before = self.shown[wanted["turn"]]
            if len(before) < wanted["place"]:
                return (f"turn {wanted['turn'] + 1} has shown {len(before)} products",)
            good = self.goods[before[wanted["place"] - 1]]
        problems = []
        if names[:1] != [good.name] and (names or good.name.lower() not in said.lower()):
            problems.append(f"is about {list(names[:1])} instead of {good.name!r}")
        facts = {"stock": str(good.stock), "price": str(good.price), "city": good.city, "shop": good.shop}
        return problems + [
            f"does not say {fact} {facts[fact]}" for fact in wanted.get("says", ()) if not _says(said, facts[fact])
        ]


def _shows(wanted: str | Sequence[str], names: Sequence[str]) -> bool:
    """A list in `all_of` means any one of it."""
    return wanted in names if isinstance(wanted, str) else any(one in names for one in wanted)


def _differences(wanted: Sequence[str], names: Sequence[str]) -> Iterable[str]:
    yield from (f"lacks {name!r}" for name in wanted if name not in names)
    yield from (f"shows {name!r}" for name in names if name not in wanted)


def _says(said: str, fact: str) -> bool:
    if fact.isdecimal():
        digits_alone = re.sub(r"(?<=\d)[.,](?=\d{3}(?!\d))", "", said)
        return re.search(rf"(?<!\d){fact}(?!\d)", digits_alone) is not None
    return fact.lower() in said.lower()


def _written_out(pattern: str) -> str:
    return re.sub(r"@([a-z_]+)", lambda found: _SENTENCES.get(found[1], found[0]), pattern)
