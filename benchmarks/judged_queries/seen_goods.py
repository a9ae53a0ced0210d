"""One product of the catalogue, one judged query, and the groups of goods that several queries ask for."""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class CatalogueProduct:
    id: str
    sku: str
    name: str
    leaf: str
    brand: str
    price: int
    used: bool
    tags: str
    description: str
    attributes: dict[str, str | int | float]
    city: str
    province: str

    def named(self, pattern: str) -> bool:
        return re.search(pattern, self.name, re.I) is not None

    def tagged(self, pattern: str) -> bool:
        """The pattern is in the name or in the tags."""
        return re.search(pattern, f"{self.name} ; {self.tags}", re.I) is not None

    def says(self, pattern: str) -> bool:
        """The pattern is in the name, the tags or the description."""
        return re.search(pattern, f"{self.name} ; {self.tags} ; {self.description}", re.I) is not None


Test = Callable[[CatalogueProduct], bool]


@dataclass(frozen=True)
class JudgedQuery:
    kind: str
    language: str
    text: str
    asked: Test
    acceptable: Test | None = None
    note: str = ""
    # "cheap" without a price: the cheaper half of what is asked for is grade 2, the rest 1.
    cheap: bool = False
    # The query names one item, so that fewer than five products may be relevant.
    one_item: bool = False


def read_catalogue(path: Path) -> list[CatalogueProduct]:
    with path.open(newline="", encoding="utf-8") as file:
        return [
            CatalogueProduct(
                id=row["id"],
                sku=row["sku"],
                name=row["name"],
                leaf=row["category"].split("/")[1],
                brand=row["brand"],
                price=int(row["price"]),
                used=row["condition"] == "used",
                tags=row["tags"],
                description=row["description"],
                attributes=json.loads(row["attributes"]),
                city=row["city"],
                province=row["province"],
            )
            for row in csv.DictReader(file)
        ]


def in_leaf(*leaves: str) -> Test:
    return lambda p: p.leaf in leaves


laptop = in_leaf("Laptop")
phone = in_leaf("Handphone")


def gaming_laptop(p: CatalogueProduct) -> bool:
    return laptop(p) and p.tagged("gaming")


def shoe(p: CatalogueProduct) -> bool:
    return p.leaf in {"Sepatu Pria", "Sepatu Wanita"} and not p.named(r"^(tali|kaos kaki|pembersih)|sandal")


def running_shoe(p: CatalogueProduct) -> bool:
    return shoe(p) and p.tagged(r"\b(lari|running)\b")


def futsal_shoe(p: CatalogueProduct) -> bool:
    return shoe(p) and p.tagged("futsal")


def formal_shoe(p: CatalogueProduct) -> bool:
    return shoe(p) and p.tagged("formal")


def headscarf(p: CatalogueProduct) -> bool:
    return p.leaf.startswith("Pakaian Wanita") and p.named("^(hijab|pashmina|kerudung)")


def power_bank(p: CatalogueProduct) -> bool:
    return p.leaf == "Aksesori HP" and p.named(r"power ?bank")


def rice(p: CatalogueProduct) -> bool:
    return p.leaf == "Bahan Pokok" and p.named("^beras")


def frying_oil(p: CatalogueProduct) -> bool:
    return p.leaf == "Bahan Pokok" and p.named("^minyak") and not p.named("zaitun")


def coffee(p: CatalogueProduct) -> bool:
    return p.leaf == "Kopi & Teh" and p.tagged("kopi") and not p.named("^(teh|krimer|matcha)")


def screen(p: CatalogueProduct) -> bool:
    return p.leaf == "Monitor" and "layar_inci" in p.attributes


def screen_of(*inches: float) -> Test:
    return lambda p: screen(p) and p.attributes["layar_inci"] in inches


def refreshes(p: CatalogueProduct) -> int:
    return int(p.attributes.get("refresh_hz", 0))


def baby_diaper(p: CatalogueProduct) -> bool:
    return p.leaf == "Perlengkapan Bayi" and p.tagged("diapers") and not p.named("dewasa")


def office_chair(p: CatalogueProduct) -> bool:
    return p.leaf == "Furnitur" and p.tagged("kursi (kantor|kerja)|office chair")


def sun_cream(p: CatalogueProduct) -> bool:
    return p.leaf == "Perawatan Kulit" and p.tagged("sunscreen|sunblock|tabir surya")


def wireless_buds(p: CatalogueProduct) -> bool:
    return p.leaf == "Audio" and p.tagged(r"\btws\b")


def headset(p: CatalogueProduct) -> bool:
    """What sits on the ears: no plugs in the ear, no set for one ear."""
    return p.leaf == "Audio" and p.named("headset|headphone") and not p.named("telinga satu")


def mouse(p: CatalogueProduct) -> bool:
    return p.leaf == "Periferal" and p.named("mouse") and not p.tagged("mouse ?pad|alas mouse|combo")


def wireless_mouse(p: CatalogueProduct) -> bool:
    return mouse(p) and p.attributes.get("koneksi") == "nirkabel"


def drill(p: CatalogueProduct) -> bool:
    return p.leaf == "Perkakas Listrik" and p.named(r"\bbor\b") and not p.named("mata bor")


def cordless_drill(p: CatalogueProduct) -> bool:
    return drill(p) and "tegangan_v" in p.attributes


def laptop_charger(p: CatalogueProduct) -> bool:
    return p.leaf == "Aksesori Laptop" and p.named("charger")


def strong_phone_charger(p: CatalogueProduct) -> bool:
    """A charger for phones with the power that a laptop with USB-C needs."""
    return p.leaf == "Aksesori HP" and p.named("charger") and int(p.attributes.get("daya_watt", 0)) >= 65


def hammer(p: CatalogueProduct) -> bool:
    return p.leaf == "Perkakas Tangan" and p.named("palu|hammer")


def frying_pan(p: CatalogueProduct) -> bool:
    return p.leaf == "Dapur" and p.tagged("wajan|penggorengan|kuali")


def graphics_card(p: CatalogueProduct) -> bool:
    return p.leaf == "Komponen Komputer" and p.tagged(r"\bvga\b|kartu grafis")


def rice_cooker(p: CatalogueProduct) -> bool:
    return p.leaf == "Elektronik Rumah" and p.tagged("rice cooker|magic com")


def coffee_table(p: CatalogueProduct) -> bool:
    return p.leaf == "Furnitur" and p.named("meja kopi|meja tamu|coffee table")


def tumbler(p: CatalogueProduct) -> bool:
    return p.leaf == "Dapur" and p.tagged("tumbler")


def phone_case(p: CatalogueProduct) -> bool:
    return p.leaf == "Aksesori HP" and p.tagged(r"\bcas(e|ing)\b")


def child_helmet(p: CatalogueProduct) -> bool:
    return p.leaf == "Motor" and p.named("^helm anak")


def motorcycle_helmet(p: CatalogueProduct) -> bool:
    return p.leaf == "Motor" and p.named("^helm") and not p.named("sepeda")


def tent(p: CatalogueProduct) -> bool:
    return p.leaf == "Alat Olahraga & Outdoor" and p.named("^tenda") and not p.named("mainan")


def t_shirt(p: CatalogueProduct) -> bool:
    return p.leaf == "Pakaian Pria" and p.named("^kaos") and not p.named("olahraga")


def face_wash(p: CatalogueProduct) -> bool:
    return p.leaf == "Perawatan Kulit" and p.tagged("sabun muka|facial wash")


def moisturizer(p: CatalogueProduct) -> bool:
    return p.leaf == "Perawatan Kulit" and p.tagged("pelembab|moisturizer")


def body_care(p: CatalogueProduct) -> bool:
    return p.leaf == "Perawatan Kulit" and p.named("lulur|sabun sereh|body")


def engine_oil(p: CatalogueProduct) -> bool:
    return p.leaf == "Motor" and p.named("^oli") and not p.named("gardan")


def shoe_rack(p: CatalogueProduct) -> bool:
    return p.leaf == "Furnitur" and p.named("^rak sepatu")


def memory_of(gb: int) -> Test:
    return lambda p: p.leaf == "Komponen Komputer" and p.tagged("memor[iy]") and p.attributes.get("kapasitas_gb") == gb


def internal_drive(p: CatalogueProduct) -> bool:
    return p.leaf == "Komponen Komputer" and p.named(r"\bssd\b") and not p.named("eksternal")


def one_terabyte(p: CatalogueProduct) -> bool:
    return p.named(r"\b1 ?tb\b")


def litres(p: CatalogueProduct) -> float:
    return float(p.attributes.get("isi_l", float(p.attributes.get("isi_ml", 0)) / 1000))


def kilos(p: CatalogueProduct) -> float:
    return float(p.attributes.get("berat_kg", float(p.attributes.get("berat_g", 0)) / 1000))
