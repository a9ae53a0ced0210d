"""Codes and names of Indonesia's provinces, regencies and districts, with the codes of the Ministry of Home Affairs.

Names are in capitals as cards print them: PROVINSI DKI JAKARTA, JAKARTA BARAT, KABUPATEN BOGOR.
"""

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rapidfuzz import fuzz

_FILE = Path(__file__).with_name("regions.csv")

# Cards print an older name than today's table, or one of several.
_PRINTED_PROVINCES = {
    "31": ("DKI JAKARTA", "DAERAH KHUSUS IBUKOTA JAKARTA", "DAERAH KHUSUS JAKARTA"),
    "34": ("DAERAH ISTIMEWA YOGYAKARTA", "DI YOGYAKARTA"),
    "11": ("ACEH", "NANGGROE ACEH DARUSSALAM"),
    "19": ("KEPULAUAN BANGKA BELITUNG", "BANGKA BELITUNG"),
}

# Codes that moved to a new province. NIKs with the old code stay valid. Not complete: older ones are in no free table.
_RETIRED_REGENCIES = {
    # North Kalimantan left East Kalimantan in 2012.
    **{"6404": "6501", "6405": "6503", "6406": "6502", "6410": "6504", "6473": "6571"},
    # South Papua, Central Papua and Highland Papua left Papua in 2022.
    **{"9101": "9301", "9116": "9302", "9117": "9303", "9118": "9304"},
    **{"9104": "9401", "9107": "9402", "9108": "9403", "9109": "9404"},
    **{"9125": "9405", "9126": "9406", "9127": "9407", "9128": "9408"},
    **{"9102": "9501", "9112": "9502", "9113": "9503", "9114": "9504"},
    **{"9121": "9505", "9122": "9506", "9123": "9507", "9124": "9508"},
    # Southwest Papua left West Papua in 2022.
    **{"9201": "9601", "9204": "9602", "9205": "9603", "9209": "9604", "9210": "9605", "9271": "9671"},
}


@dataclass(frozen=True)
class CodedRegion:
    """What the first six digits of a NIK say. A name is None where the table does not have the code."""

    province: str | None
    regency: str | None
    district: str | None
    retired: bool = False

    @property
    def known(self) -> bool:
        """A district may be unknown: many were merged or renumbered."""
        return self.regency is not None


@dataclass(frozen=True)
class RegionMatch:
    code: str
    name: str
    ratio: float  # 0 to 1


@dataclass(frozen=True)
class _Spelling:
    code: str
    name: str
    letters: str


class RegionTable:
    """Lookups by code and by name. The table holds about 8,000 names and never grows."""

    def __init__(self, rows: Iterable[tuple[str, str]]) -> None:
        self._names = {code: _printed(code, name) for code, name in rows}
        self._spellings: dict[str, list[_Spelling]] = {}  # by the code of the region above
        for code, name in self._names.items():
            above = code[:-2]
            for spelling in {name, *_aliases(code, name)}:
                self._spellings.setdefault(above, []).append(_Spelling(code, name, letters_of(spelling)))

    def __len__(self) -> int:
        return len(self._names)

    def name(self, code: str) -> str | None:
        return self._names.get(code)

    def below(self, code: str) -> list[str]:
        """Codes of the regions directly inside this one; "" gives the provinces."""
        return sorted({spelling.code for spelling in self._spellings.get(code, [])})

    def current_code(self, code: str) -> str:
        """The code of the same regency today, where a retired code is in our table."""
        return _RETIRED_REGENCIES.get(code[:4], code[:4])

    def region(self, code: str) -> CodedRegion:
        """Of the six digits that a NIK begins with."""
        province, regency = self.name(code[:2]), self.name(code[:4])
        if regency is None and code[:4] in _RETIRED_REGENCIES:
            return CodedRegion(province, self.name(_RETIRED_REGENCIES[code[:4]]), None, retired=True)
        return CodedRegion(province, regency, self.name(code[:6]) if regency else None)

    def match_province(self, text: str, min_ratio: float = 0.8) -> RegionMatch | None:
        return _best(re.sub(r"^\W*PR[O0]V[I1L|]NS[I1L|]\W*", "", text.upper()), self._spellings[""], min_ratio)

    def match_regency(self, text: str, province: str | None = None, min_ratio: float = 0.8) -> RegionMatch | None:
        """`province` is a code; None searches all of them."""
        provinces = [province] if province else self.below("")
        return _best(text, (s for code in provinces for s in self._spellings.get(code, [])), min_ratio)

    def match_district(self, text: str, regency: str, min_ratio: float = 0.8) -> RegionMatch | None:
        return _best(text, self._spellings.get(regency, []), min_ratio)


def letters_of(text: str) -> str:
    """What two spellings of one name have in common: OCR loses blanks, and prints differ in hyphens."""
    return re.sub(r"[^A-Z0-9]", "", text.upper())


def _printed(code: str, name: str) -> str:
    name = name.upper()
    if len(code) == 2:
        return _PRINTED_PROVINCES.get(code, (name,))[0]
    if len(code) == 4:
        return re.sub(r"^(KOTA|KABUPATEN) ADMINISTRASI ", lambda m: "" if m[1] == "KOTA" else "KABUPATEN ", name)
    return name


def _aliases(code: str, name: str) -> Iterable[str]:
    if len(code) == 2:
        return _PRINTED_PROVINCES.get(code, ())
    if len(code) == 4 and code.startswith("31"):
        bare = name.removeprefix("KABUPATEN ")
        return (f"KOTA {bare}", f"KOTA ADMINISTRASI {bare}") if bare == name else (f"KABUPATEN ADMINISTRASI {bare}",)
    return ()


def _best(text: str, spellings: Iterable[_Spelling], min_ratio: float) -> RegionMatch | None:
    """The nearest name; None when it is too far, or when two names are equally near."""
    letters = letters_of(text)
    found: dict[str, RegionMatch] = {}
    for spelling in spellings if letters else ():
        ratio = fuzz.ratio(letters, spelling.letters) / 100
        if ratio >= min_ratio and (spelling.code not in found or found[spelling.code].ratio < ratio):
            found[spelling.code] = RegionMatch(spelling.code, spelling.name, ratio)
    best = sorted(found.values(), key=lambda match: -match.ratio)[:2]
    if not best or (len(best) == 2 and best[0].ratio == best[1].ratio):
        return None
    return best[0]


@cache
def regions() -> RegionTable:
    """Read once, at the first use (about 20 ms)."""
    with _FILE.open(encoding="utf-8", newline="") as lines:
        return RegionTable((row["code"], row["name"]) for row in csv.DictReader(lines))
