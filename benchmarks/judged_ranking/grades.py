"""Write graded.jsonl: for each request the products of the judged catalogue with grades 1 to 3, and its hard limits.

Run: python benchmarks/judged_ranking/grades.py [--show 5]
The requests and their rules are in requests_*.py; README.md says what the grades mean.
"""

import argparse
import csv
import json
import math
from pathlib import Path
from typing import Any

from ranked_request import JudgedProduct, RankedRequest
from requests_computers import COMPUTERS
from requests_home import HOME_AND_TOOLS
from requests_phones import PHONES
from requests_wear_and_food import WEAR_AND_FOOD

HERE = Path(__file__).parent
CATALOGUE = HERE.parent / "judged_queries" / "catalogue.csv"
PLACES = HERE.parents[1] / "tis" / "marketplace" / "places" / "places.csv"
OFFICIAL = {"Solo": "Surakarta", "Takengon": "Aceh Tengah"}  # names of the catalogue that places.csv does not have
NEAR_KM, FARTHER_KM = 15, 60
COMFORTABLE = 0.95  # of the highest price
ABOUT_THE_SAME = 1.25
GOOD_RATING, FAIR_RATING = 4.5, 4.0
LIMITS = "brands exclude_brands exclude_terms min_price max_price cities exclude_cities".split()
LIMITS += "radius_km min_rating condition".split()
REQUESTS = [*COMPUTERS, *PHONES, *HOME_AND_TOOLS, *WEAR_AND_FOOD]


class OfferedProduct(JudgedProduct):
    def __init__(self, row: dict[str, str], points: dict[str, tuple[float, float]]) -> None:
        super().__init__(row)
        self.rating = float(row["rating"])
        self.stock = int(row["stock"])
        self.point = points[OFFICIAL.get(self.city, self.city)]


def read_points() -> dict[str, tuple[float, float]]:
    """Where cities lie; a shop is taken to be at the point of its city. A city goes before a regency of its name."""
    found = {}
    with PLACES.open(encoding="utf-8", newline="") as file:
        for row in sorted(csv.DictReader(file), key=lambda row: row["kind"] == "city"):
            found[row["name"]] = (float(row["latitude"]), float(row["longitude"]))
    return found


def read_products() -> list[OfferedProduct]:
    points = read_points()
    with CATALOGUE.open(encoding="utf-8", newline="") as file:
        return [OfferedProduct(row, points) for row in csv.DictReader(file)]


def km_between(here: tuple[float, float], there: tuple[float, float]) -> float:
    lat_1, lon_1, lat_2, lon_2 = map(math.radians, (*here, *there))
    chord = math.sin((lat_2 - lat_1) / 2) ** 2 + math.cos(lat_1) * math.cos(lat_2) * math.sin((lon_2 - lon_1) / 2) ** 2
    return 2 * 6371.0 * math.asin(math.sqrt(chord))


def hard_limits(structured: dict[str, Any], products: list[OfferedProduct]) -> dict[str, Any]:
    """The limits of a request, with cities as the catalogue writes them."""
    limits = {key: structured[key] for key in LIMITS if key in structured}
    for key in ("cities", "exclude_cities"):
        if key in limits:
            every = sorted({product.city for product in products})
            limits[key] = [
                city for city in every if any(city == name or city.startswith(f"{name} ") for name in limits[key])
            ]
    return limits | {"in_stock": True}


def distance(product: OfferedProduct, origin: dict[str, Any] | None) -> float | None:
    return None if origin is None else km_between((origin["lat"], origin["lon"]), product.point)


def breaks_a_limit(product: OfferedProduct, limits: dict[str, Any], origin: dict[str, Any] | None) -> bool:
    """`limits` and `origin` are the fields `hard` and `origin` of a line of graded.jsonl."""
    words = f"{product.name} {product.tags}".casefold()
    km = distance(product, origin)
    return (
        product.stock < 1
        or product.price > limits.get("max_price", math.inf)
        or product.price < limits.get("min_price", 0)
        or product.rating < limits.get("min_rating", 0)
        or ("cities" in limits and product.city not in limits["cities"])
        or product.city in limits.get("exclude_cities", ())
        or ("brands" in limits and product.brand.casefold() not in limits["brands"])
        or product.brand.casefold() in limits.get("exclude_brands", ())
        or any(term in words for term in limits.get("exclude_terms", ()))
        or ("condition" in limits and product.used != (limits["condition"] == "used"))
        or (km is not None and km > limits.get("radius_km", math.inf))
    )


def price_steps(asked: list[OfferedProduct]) -> dict[str, int]:
    """0 for the cheapest of what is asked and what costs about the same, 1 up to its double, 2 beyond."""
    least = min((product.price for product in asked), default=0)
    return {product.id: (product.price > ABOUT_THE_SAME * least) + (product.price > 2 * least) for product in asked}


def steps_down(request: RankedRequest, product: OfferedProduct) -> int:
    """How far a product that is asked for stays behind the best, apart from the order of prices."""
    wish = request.structured
    steps = 0
    if "max_price" in wish and "min_price" not in wish and product.price > COMFORTABLE * wish["max_price"]:
        steps += 1
    if wish.get("near_user") or wish.get("fulfilment") == "pickup":
        km = distance(product, request.origin)
        assert km is not None, request.query
        steps += (km > NEAR_KM) + (km > FARTHER_KM)
    if wish.get("sort") == "rating":
        steps += (product.rating < GOOD_RATING) + (product.rating < FAIR_RATING)
    return steps + request.weaker(product)


def grades_of(request: RankedRequest, products: list[OfferedProduct], limits: dict[str, Any]) -> dict[str, int]:
    allowed = [product for product in products if not breaks_a_limit(product, limits, request.origin)]
    asked = [product for product in allowed if request.asked(product)]
    by_price = price_steps(asked) if request.structured.get("sort") == "price_asc" else {}
    found = {product.id: 1 for product in allowed if request.substitute(product)}
    for product in asked:
        enough = product.stock >= request.structured.get("quantity", 1)
        found[product.id] = max(1, 3 - steps_down(request, product) - by_price.get(product.id, 0)) if enough else 1
    return dict(sorted(found.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print the names behind the grades")
    options = parser.parse_args()
    products = read_products()
    by_id = {product.id: product for product in products}
    lines = []
    for number, request in enumerate(REQUESTS, start=1):
        limits = hard_limits(request.structured, products)
        grades = grades_of(request, products, limits)
        if max(grades.values(), default=0) < 2:
            raise ValueError(f"nothing fits well: {request.query}")
        line = {
            "id": f"r{number:03}",
            "query": request.query,
            "structured": request.structured,
            "origin": request.origin,
        }
        lines.append(line | {"rule": request.rule, "grades": grades, "hard": limits})
        if options.show:
            print(f"\nr{number:03} {request.query} | {limits}")
            for key, grade in sorted(grades.items(), key=lambda item: -item[1]):
                product = by_id[key]
                print(f"  {grade} {key} {product.name} | {product.price:,} | {product.city} | {product.rating}")
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (HERE / "graded.jsonl").write_text(text, encoding="utf-8")
    print(len(lines), "requests,", sum(len(line["grades"]) for line in lines), "graded products")


if __name__ == "__main__":
    main()
