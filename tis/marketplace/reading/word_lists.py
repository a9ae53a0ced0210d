"""Lists of words, from the CSV files beside this module: data, which the rules of reading and searching look at."""

import csv
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent


def read_rows(name: str) -> list[dict[str, str]]:
    with (_FOLDER / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@cache
def _rows_of_words() -> dict[str, str]:
    lists = dict[str, str]()
    for row in read_rows("words.csv"):
        lists[row["list"]] = f"{lists.get(row['list'], '')} {row['words']}"
    return lists


@cache
def word_list(*names: str) -> frozenset[str]:
    """All words of the lists with these names in `words.csv`, which says what each is for."""
    return frozenset(word for name in names for word in _rows_of_words()[name].split())
