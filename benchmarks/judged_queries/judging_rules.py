"""The vocabulary of the judgements: a product, and rules about it that combine with & | and ~."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass


class JudgedProduct:
    def __init__(self, row: dict[str, str]) -> None:
        self.id = row["id"]
        self.sku = row["sku"]
        self.name = row["name"]
        self.leaf = row["category"].split("/")[1]
        self.brand = row["brand"]
        self.price = int(row["price"])
        self.used = row["condition"] == "used"
        self.tags = row["tags"]
        self.description = row["description"]
        self.attributes: dict[str, str | int | float] = json.loads(row["attributes"])
        self.city = row["city"]


@dataclass(frozen=True)
class Rule:
    test: Callable[[JudgedProduct], bool]

    def __call__(self, product: JudgedProduct) -> bool:
        return self.test(product)

    def __and__(self, other: "Rule") -> "Rule":
        return Rule(lambda product: self(product) and other(product))

    def __or__(self, other: "Rule") -> "Rule":
        return Rule(lambda product: self(product) or other(product))

    def __invert__(self) -> "Rule":
        return Rule(lambda product: not self(product))


@dataclass(frozen=True)
class Query:
    kind: str
    language: str
    text: str
    asked: Rule
    acceptable: Rule | None
    note: str
    known_item: bool


def leaf(*names: str) -> Rule:
    return Rule(lambda product: product.leaf in names)


def name(pattern: str) -> Rule:
    return Rule(lambda product: re.search(pattern, product.name, re.I) is not None)


def tagged(pattern: str) -> Rule:
    """The pattern is in the name or the tags."""
    return Rule(lambda product: re.search(pattern, f"{product.name} , {product.tags}", re.I) is not None)


def told(pattern: str) -> Rule:
    """The pattern is in the name, the tags or the description."""
    text = re.compile(pattern, re.I)
    return Rule(lambda product: text.search(f"{product.name} , {product.tags} , {product.description}") is not None)


def brand(*names: str) -> Rule:
    return Rule(lambda product: product.brand in names)


def attribute(key: str, *values: str | int | float) -> Rule:
    return Rule(lambda product: product.attributes.get(key) in values)


def price(lowest: float, highest: float) -> Rule:
    """In thousands of rupiah, both ends included."""
    return Rule(lambda product: lowest * 1000 <= product.price <= highest * 1000)


def city(*names: str) -> Rule:
    return Rule(lambda product: product.city in names)


used = Rule(lambda product: product.used)
