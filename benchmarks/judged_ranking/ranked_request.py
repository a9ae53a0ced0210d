"""A request that a ranking is judged on, and the words of the rules that say which products it asks for.

A rule speaks of the product; limits (price, place, brand to avoid) come from `structured` and are kept by grades.py.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "judged_queries"))
from judging_rules import JudgedProduct, Rule, attribute, brand, leaf, name, tagged

__all__ = ["JudgedProduct", "attribute", "brand", "tagged"]

JAKARTA_BARAT = {"lat": -6.184, "lon": 106.737, "city": "Jakarta Barat"}
JAKARTA_PUSAT = {"lat": -6.173, "lon": 106.819, "city": "Jakarta Pusat"}
JAKARTA_SELATAN = {"lat": -6.248, "lon": 106.808, "city": "Jakarta Selatan"}
JAKARTA_UTARA = {"lat": -6.120, "lon": 106.893, "city": "Jakarta Utara"}
BANDUNG = {"lat": -6.911, "lon": 107.610, "city": "Bandung"}
BEKASI = {"lat": -6.236, "lon": 106.994, "city": "Bekasi"}
MAKASSAR = {"lat": -5.133, "lon": 119.408, "city": "Makassar"}
SURABAYA = {"lat": -7.259, "lon": 112.747, "city": "Surabaya"}
YOGYAKARTA = {"lat": -7.800, "lon": 110.391, "city": "Yogyakarta"}

LAPTOP, PHONE, MONITOR = leaf("Laptop"), leaf("Handphone"), leaf("Monitor")
CASES, PRINTING, HOME = leaf("Aksesori HP"), leaf("Printer & Tinta"), leaf("Elektronik Rumah")
SCREEN = MONITOR & ~name("bracket|lampu|portable")
BUILDING, SPORT, RICE_ETC = leaf("Bahan Bangunan"), leaf("Alat Olahraga & Outdoor"), leaf("Bahan Pokok")
COFFEE, MOTOR, BAGS = leaf("Kopi & Teh"), leaf("Motor"), leaf("Tas")
NOTHING = Rule(lambda product: False)


@dataclass(frozen=True)
class RankedRequest:
    query: str
    structured: dict[str, Any]
    origin: dict[str, Any] | None
    asked: Rule
    rule: str
    weaker: Rule = NOTHING  # among what is asked, fits less
    substitute: Rule = NOTHING


def request(query: str, text: str, asked: Rule, rule: str, **more: Any) -> RankedRequest:
    own = {key: more.pop(key) for key in ("origin", "weaker", "substitute") if key in more}
    return RankedRequest(query, {"text": text, **more}, own.pop("origin", None), asked, rule, **own)
