"""What the assistant costs end to end, and whether what it says is so: each answer is checked against the database.

    python benchmarks/assistant.py [--questions 100] [--no-model]

The judged catalogue in a SQLite file, one client over HTTP, `POST /api/chat/search` with sentences of
`judged_understanding/seen.jsonl`: first with rules alone, then with the demo model. `query_understanding.py` and
`assistant_ranking.py` have the tables of understanding and ranking.

An answer is grounded if every product that it names or cites is in the database with this price and stock, and each
amount and distance in its text belongs to one of them, to the question or to a search that was counted.
"""

import argparse
import json
import os
import re
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from benchmarks.search_quality import Ours, read_catalogue  # noqa: E402

_SENTENCES = REPOSITORY / "benchmarks/judged_understanding/seen.jsonl"
_START_SECONDS = 120
_USER = {
    "name": "Budi",
    "email": "budi@example.com",
    "city": "Jakarta Selatan",
    "latitude": -6.248,
    "longitude": 106.808,
    "ai_access_enabled": True,
}


@dataclass
class MeasuredAnswers:
    seconds: list[float] = field(default_factory=list)
    ungrounded: list[str] = field(default_factory=list)
    by_model: int = 0
    with_products: int = 0


class Facts:
    """What the database says, read beside the server."""

    def __init__(self, path: str) -> None:
        self._database = sqlite3.connect(path)

    def problems(self, question: str, answer: Mapping[str, Any]) -> list[str]:
        found = []
        for product in answer["products"]:
            row = self._row(product["id"])
            if row != (product["name"], product["price"], product["available_quantity"]):
                found.append(f"product {product['id']} is {row}")
        ids = {product["id"] for product in answer["products"]}
        found += [f"cites {one['product_id']}" for one in answer["citations"] if one["product_id"] not in ids]
        said = answer["response"]
        found += [f"says {amount}" for amount in _amounts(said) - self._amounts_that_are_so(answer)]
        found += [f"says {km} km" for km in _kilometres(said) - self._kilometres_that_are_so(question, answer)]
        return found

    def _row(self, product_id: int) -> tuple[Any, ...] | None:
        sql = "SELECT name, price, on_hand - reserved FROM products WHERE id = ? AND deleted_at IS NULL"
        row: tuple[Any, ...] | None = self._database.execute(sql, [product_id]).fetchone()
        return row

    @staticmethod
    def _amounts_that_are_so(answer: Mapping[str, Any]) -> set[int]:
        queries = [answer["interpreted"]["query"], *(one["query"] for one in answer["relaxations"])]
        limits = {query.get(name) for query in queries for name in ("min_price", "max_price")}
        return {product["price"] for product in answer["products"]} | (limits - {None})

    @staticmethod
    def _kilometres_that_are_so(question: str, answer: Mapping[str, Any]) -> set[str]:
        queries = [answer["interpreted"]["query"], *(one["query"] for one in answer["relaxations"])]
        radii = {query.get("radius_km") for query in queries} - {None}
        distances = {product["distance_km"] for product in answer["products"]} - {None}
        reasons = [product["fulfilment"]["reason"] for product in answer["products"] if product["fulfilment"]]
        plain = {_plain(number) for number in radii | distances}
        return plain | {km for reason in reasons for km in _kilometres(reason)}


def _amounts(text: str) -> set[int]:
    return {int(re.sub(r"\D", "", number)) for number in re.findall(r"Rp\s?(\d[\d.,]*\d|\d)", text)}


def _kilometres(text: str) -> set[str]:
    return {_plain(float(number.replace(",", "."))) for number in re.findall(r"(\d+(?:[.,]\d+)?) ?km", text)}


def _plain(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def questions(count: int) -> list[str]:
    """Those that stand alone, spread over the kinds."""
    lines = [json.loads(line) for line in _SENTENCES.read_text(encoding="utf-8").splitlines()]
    alone = [line["query"] for line in lines if "context" not in line]
    step = max(1, len(alone) // count)
    return alone[::step][:count]


def ask_all(url: str, asked: Sequence[str], facts: Facts) -> MeasuredAnswers:
    measured = MeasuredAnswers()
    for question in asked:
        began = time.perf_counter()
        answer = _post(f"{url}/api/chat/search", {"user_id": 1, "query": question})
        measured.seconds.append(time.perf_counter() - began)
        measured.by_model += answer["answered_by"] == "model"
        measured.with_products += bool(answer["products"])
        if problems := facts.problems(question, answer):
            measured.ungrounded.append(f"{question!r}: {'; '.join(problems)}")
    return measured


@contextmanager
def running(**variables: str) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    environment = {**os.environ, **variables, "PORT": str(port), "LOG_LEVEL": "error"}
    environment |= {"MARKETPLACE_AUTH": "open", "CHATS_PER_MINUTE": "0", "CHAT_TOKENS_PER_DAY": "0"}
    server = subprocess.Popen([sys.executable, "main.py"], cwd=REPOSITORY, env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + _START_SECONDS
        while not _is_ready(url):
            if server.poll() is not None or time.monotonic() > end:
                raise SystemExit("The server does not start.")
            time.sleep(0.05)
        yield url
    finally:
        server.terminate()
        server.wait()


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/ready", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _post(url: str, body: Mapping[str, Any]) -> dict[str, Any]:
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return dict(json.loads(answer.read()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--no-model", action="store_true", help="rules alone")
    options = parser.parse_args()
    asked = questions(options.questions)
    kinds = {"rules alone": {"MODEL_REPO_ID": "echo", "ASSISTANT_MODEL": "off"}}
    if not options.no_model:
        kinds["demo model"] = {"MODEL_REPO_ID": "models/demo", "ASSISTANT_MODEL": "demo", "EAGER_LOAD_MODEL": "1"}
    print("| answers | p50 ms | p95 ms | with products | picked by the model | grounded |\n|---|---|---|---|---|---|")
    ungrounded = []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/market.db"
        Ours(read_catalogue(), f"sqlite:///{path}")
        for number, (name, variables) in enumerate(kinds.items()):
            with running(DATABASE_URL=f"sqlite:///{path}", **variables) as url:
                if number == 0:
                    _post(f"{url}/api/users/register", _USER)
                ask_all(url, asked[:3], Facts(path))  # warm
                measured = ask_all(url, asked, Facts(path))
            p50, p95 = statistics.median(measured.seconds), statistics.quantiles(measured.seconds, n=20)[-1]
            grounded = 1 - len(measured.ungrounded) / len(asked)
            print(
                f"| {name} | {p50 * 1000:.0f} | {p95 * 1000:.0f} | {measured.with_products} of {len(asked)} "
                f"| {measured.by_model} | {grounded:.1%} |"
            )
            ungrounded += measured.ungrounded
    print(*ungrounded, sep="\n")


if __name__ == "__main__":
    main()
