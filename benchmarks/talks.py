"""Whether the shopping assistant answers as a buyer expects: talks of two to four turns, judged by rules in the data.

    python benchmarks/talks.py [--halves seen unseen] [--show seen]

A real server for each market, without a model. `judged_talks/README.md` says who wrote the talks, and how a turn is
judged. `--show` prints the wrong turns of a half. Do not show the unseen half: it is unseen only once.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from benchmarks.assistant import running  # noqa: E402
from benchmarks.judged_talks.expectations import (  # noqa: E402
    Good,
    TalkJudge,
    catalogue_rows,
    goods_of_catalogue,
    goods_of_sample,
)

_FOLDER = REPOSITORY / "benchmarks/judged_talks"
_HALVES = ("seen", "unseen")
_BUYER = {
    "name": "Sari",
    "email": "sari@example.com",
    "city": "Jakarta",
    "latitude": -6.195,
    "longitude": 106.823,
    "ai_access_enabled": True,
}
# The catalogue names cities and no coordinates: a shop stands at the centre of its city.
_CENTRES = {
    "Bandung": (-6.917, 107.619),
    "Bekasi": (-6.238, 106.976),
    "Bogor": (-6.597, 106.806),
    "Denpasar": (-8.65, 115.217),
    "Depok": (-6.402, 106.794),
    "Garut": (-7.214, 107.908),
    "Jakarta Barat": (-6.168, 106.759),
    "Jakarta Pusat": (-6.186, 106.834),
    "Jakarta Selatan": (-6.261, 106.811),
    "Jakarta Utara": (-6.138, 106.864),
    "Jepara": (-6.588, 110.668),
    "Makassar": (-5.148, 119.432),
    "Malang": (-7.98, 112.63),
    "Medan": (3.595, 98.672),
    "Palembang": (-2.976, 104.775),
    "Palu": (-0.9, 119.878),
    "Pekalongan": (-6.889, 109.675),
    "Semarang": (-6.967, 110.417),
    "Solo": (-7.576, 110.824),
    "Surabaya": (-7.257, 112.752),
    "Takengon": (4.631, 96.838),
    "Tangerang": (-6.178, 106.63),
    "Yogyakarta": (-7.796, 110.369),
}


@dataclass(frozen=True)
class Talk:
    name: str
    market: str
    turns: Sequence[Mapping[str, Any]]

    @staticmethod
    def read(half: str) -> "list[Talk]":
        lines = (_FOLDER / f"talks_{half}.jsonl").read_text(encoding="utf-8").splitlines()
        return [Talk(row["talk"], row["market"], row["turns"]) for row in map(json.loads, lines)]


@dataclass(frozen=True)
class JudgedTurn:
    half: str
    talk: Talk
    number: int
    answer: Mapping[str, Any]
    problems: Sequence[str]


def hold(url: str, half: str, talk: Talk, goods: Mapping[str, Good]) -> list[JudgedTurn]:
    judge, judged = TalkJudge(goods), list[JudgedTurn]()
    conversation: dict[str, str] = {}
    for number, turn in enumerate(talk.turns, 1):
        try:
            answer = _post(f"{url}/api/chat/search", {"user_id": 1, "query": turn["query"], **conversation})
        except urllib.error.HTTPError as error:  # the talk goes on
            answer = {"products": [], "response": ""}
            problems = [f"HTTP {error.code}", *judge.problems(turn, answer)]
        else:
            conversation = {"conversation_id": answer["conversation_id"]}
            problems = judge.problems(turn, answer)
        judged.append(JudgedTurn(half, talk, number, answer, problems))
    return judged


def _fill_with_sample(url: str, database: str) -> None:
    environment = {**os.environ, "DATABASE_URL": database}
    subprocess.run([sys.executable, "seed_data.py"], cwd=REPOSITORY, env=environment, check=True, capture_output=True)


def _fill_with_catalogue(url: str, database: str) -> None:
    _post(f"{url}/api/users/register", _BUYER)
    shops: dict[str, int] = {}
    for row in catalogue_rows():
        if row["shop"] not in shops:
            latitude, longitude = _CENTRES[row["city"]]
            shop = {"name": row["shop"], "business_name": row["shop"], "email": f"shop{len(shops)}@example.com"}
            place = {"city": row["city"], "province": row["province"], "latitude": latitude, "longitude": longitude}
            shops[row["shop"]] = _post(f"{url}/api/suppliers/register", {**shop, **place})["id"]
        product = {
            "name": row["name"],
            "description": row["description"],
            "price": int(row["price"]),
            "stock_quantity": int(row["stock"]),
            "category": row["category"].rpartition("/")[2],
            "tags": row["tags"],
            "sku": row["sku"],
            "brand": row["brand"] or None,
            "condition": row["condition"],
            "attributes": json.loads(row["attributes"] or "{}"),
        }
        _post(f"{url}/api/suppliers/{shops[row['shop']]}/products", product)


@dataclass(frozen=True)
class TalkMarket:
    goods: Callable[[], dict[str, Good]]
    fill: Callable[[str, str], None]


_MARKETS = {
    "sample": TalkMarket(goods_of_sample, _fill_with_sample),
    "catalogue": TalkMarket(goods_of_catalogue, _fill_with_catalogue),
}


def hold_all(halves: Sequence[str]) -> list[JudgedTurn]:
    judged = []
    for name, market in _MARKETS.items():
        with tempfile.TemporaryDirectory() as folder:
            database = f"sqlite:///{folder}/market.db"
            variables = {"DATABASE_URL": database, "MODEL_REPO_ID": "echo", "ASSISTANT_MODEL": "off"}
            with running(**variables, REGISTRATIONS_PER_HOUR="0") as url:
                market.fill(url, database)
                goods = market.goods()
                for half in halves:
                    for talk in Talk.read(half):
                        if talk.market == name:
                            judged += hold(url, half, talk, goods)
    return judged


def print_shares(judged: Sequence[JudgedTurn], halves: Sequence[str]) -> None:
    print("| half | sample, turns right | catalogue, turns right | all turns | whole talks |\n|---|---|---|---|---|")
    for half in halves:
        own = [one for one in judged if one.half == half]
        cells = [_share([not one.problems for one in own if one.talk.market == name]) for name in _MARKETS]
        talks: dict[str, bool] = {}
        for one in own:
            talks[one.talk.name] = talks.get(one.talk.name, True) and not one.problems
        cells += [_share([not one.problems for one in own]), _share([*talks.values()])]
        print(f"| {half} | {' | '.join(cells)} |")


def _share(right: Sequence[bool]) -> str:
    return f"{sum(right)} of {len(right)} ({sum(right) / len(right):.1%})"


def print_wrong(judged: Sequence[JudgedTurn]) -> None:
    for one in judged:
        if one.problems:
            turn = one.talk.turns[one.number - 1]
            before = " / ".join(earlier["query"] for earlier in one.talk.turns[: one.number - 1])
            print(f"\n{one.talk.name} ({one.talk.market}), turn {one.number}: {turn['query']!r}")
            print(f"   after: {before or '-'}")
            print(f"   wrong: {'; '.join(one.problems)}")
            print(f"   expected: {json.dumps({**turn, 'query': '...'}, ensure_ascii=False)}")
            shown = [(product["name"], product["price"], product["city"]) for product in one.answer["products"]]
            print(f"   shown: {shown}")
            print(f"   said: {one.answer['response']!r}")


def _post(url: str, body: Mapping[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return dict(json.loads(answer.read()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--halves", nargs="+", choices=_HALVES, default=list(_HALVES))
    parser.add_argument("--show", choices=_HALVES, help="print the wrong turns of this half")
    options = parser.parse_args()
    judged = hold_all(options.halves)
    print_shares(judged, options.halves)
    if options.show:
        print_wrong([one for one in judged if one.half == options.show])


if __name__ == "__main__":
    main()
