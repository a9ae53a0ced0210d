"""Source lists of the large catalogue: places, kinds of products, words. The files lie in this folder."""

import csv
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class SampleCity:
    city: str
    province: str
    latitude: float
    longitude: float
    thousands: int  # of inhabitants, roughly


@dataclass(frozen=True)
class ProductKind:
    category: str
    share: int  # relative frequency
    price: int  # rupiah; the median
    spread: float  # of the logarithm of the price
    brands: list[str]
    names: list[str]
    words: list[str]  # most common first


def read_places() -> list[SampleCity]:
    with (_HERE / "places.csv").open(encoding="utf-8", newline="") as lines:
        return [
            SampleCity(
                row["city"],
                row["province"],
                float(row["latitude"]),
                float(row["longitude"]),
                int(row["thousands"]),
            )
            for row in csv.DictReader(lines)
        ]


def read_product_kinds() -> list[ProductKind]:
    with (_HERE / "products.csv").open(encoding="utf-8", newline="") as lines:
        return [
            ProductKind(
                row["category"],
                int(row["share"]),
                int(row["price"]),
                float(row["spread"]),
                row["brands"].split("|"),
                row["names"].split("|"),
                row["words"].split(),
            )
            for row in csv.DictReader(lines)
        ]


def read_common_words() -> list[str]:
    """Words that fit any product, most common first."""
    return (_HERE / "common_words.txt").read_text(encoding="utf-8").split()
