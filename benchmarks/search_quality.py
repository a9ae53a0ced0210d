"""How well product search finds what is meant: judged queries, beside bare FTS5 (bm25) and tantivy.

    python benchmarks/search_quality.py [--queries unseen.jsonl ...] [--show KIND] [--no-tantivy]
        [--embedding models/demo-embedding [--reranker models/demo-reranker]] [--min-similarity 0.5]

With an embedding model there is a column more: the same search, which also finds by meaning.

Precision of the top five: relevant ones among the first five, divided by five or by the number of relevant ones, if it
is smaller. Known items: the share in which the item is first, and among the first five. The judged queries are in
`benchmarks/judged_queries`; its README says who wrote which half, and when the unseen half was opened.
"""

import argparse
import csv
import json
import re
import sqlite3
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from benchmarks.engine_in_thread import pooling_of  # noqa: E402
from tis.database.database import Database  # noqa: E402
from tis.marketplace.kit.fields import key_of  # noqa: E402
from tis.marketplace.market import Market, MarketRules  # noqa: E402
from tis.marketplace.reading.vocabulary import Vocabulary  # noqa: E402
from tis.marketplace.search.meaning.meaning_search import MeaningLimits  # noqa: E402
from tis.marketplace.search.meaning.text_models import TextModels  # noqa: E402
from tis.marketplace.search.meaning.vector_renewal import VectorRenewal  # noqa: E402
from tis.marketplace.search.query import PageRequest, ProductQuery  # noqa: E402
from tis.marketplace.search.supplier_index import index_new_suppliers  # noqa: E402
from tis.marketplace.tables import Product, Supplier  # noqa: E402

FOLDER = Path(__file__).parent / "judged_queries"
TOP = 5
Find = Callable[[str], list[str]]  # the ids of the first products


@dataclass(frozen=True)
class Judged:
    query: str
    kind: str
    relevant: frozenset[str]
    is_known_item: bool

    @staticmethod
    def read(path: Path) -> "list[Judged]":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        return [
            Judged(row["query"], row["kind"], frozenset(row["relevant"]), bool(row.get("known_item"))) for row in rows
        ]

    def precision(self, found: Sequence[str]) -> float:
        return sum(one in self.relevant for one in found[:TOP]) / min(TOP, len(self.relevant))


def read_catalogue() -> list[dict[str, str]]:
    with (FOLDER / "catalogue.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class Ours:
    name = "this server"

    def __init__(
        self,
        catalogue: Sequence[dict[str, str]],
        url: str,
        models: TextModels | None = None,
        min_similarity: float = 0.5,
    ) -> None:
        """`models`: goods are found by meaning, too; a search waits for the models as long as it takes."""
        rules = MarketRules(
            jwt_secret="a secret of a benchmark, long enough", meaning=MeaningLimits(60.0, min_similarity)
        )
        self._market = Market(Database(url), rules, text_models=models)
        with self._market.writing() as session:
            shops = {row["shop"]: _supplier(row) for row in catalogue}
            session.add_all(shops.values())
            session.flush()
            self._id_of = dict[int, str]()
            products = [(row["id"], _product(row, shops[row["shop"]].id)) for row in catalogue]
            session.add_all(product for _, product in products)
            session.flush()
            self._id_of = {product.id: own for own, product in products}
            self._market.search.refresh(session, list(self._id_of))
            index_new_suppliers(session)
        if models and self._market.meaning:
            self.name = "and by meaning"
            market = self._market
            renewal = VectorRenewal(market.reading, market.writing, models, self._market.meaning.matrix)
            while renewal.renew_some():
                pass

    def vocabulary(self) -> Vocabulary:
        with self._market.reading() as session:
            return self._market.search.vocabulary(session)

    def close(self) -> None:
        self._market.close()

    def __call__(self, query: str) -> list[str]:
        with self._market.reading() as session:
            search = self._market.search
            read = search.read(session, ProductQuery(text=query)).query
            found = search.find(session, read, PageRequest(limit=TOP))
        if self._market.meaning and (fused := self._market.meaning.beside(read, found)):
            with self._market.reading() as session:
                found = search.find(session, read, PageRequest(limit=TOP), fused)
        return [self._id_of[hit.product.id] for hit in found.hits]


def _supplier(row: dict[str, str]) -> Supplier:
    email = key_of(row["shop"]).replace(" ", ".") + "@example.com"
    place = {"city": row["city"], "city_key": key_of(row["city"]), "province": row["province"]}
    return Supplier(
        name=row["shop"], business_name=row["shop"], email=email, email_key=email, latitude=0.0, longitude=0.0, **place
    )


def _product(row: dict[str, str], supplier_id: int) -> Product:
    category, rating = row["category"].rpartition("/")[2], float(row["rating"] or 0)
    return Product(
        supplier_id=supplier_id,
        sku=row["sku"],
        name=row["name"],
        description=row["description"],
        brand=row["brand"] or None,
        price=int(row["price"]),
        condition=row["condition"],
        tags=row["tags"],
        category=category,
        category_key=key_of(category),
        attributes=json.loads(row["attributes"] or "{}"),
        on_hand=max(1, int(row["stock"] or 1)),
        granted_rating=rating,
        rating_rank=rating,
    )


class BareFts:
    """All words, then any word, by bm25: what one writes in an hour. Only what a search box sends is known to it."""

    name = "bare FTS5"

    def __init__(self, catalogue: Sequence[dict[str, str]]) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute(
            "CREATE VIRTUAL TABLE f USING fts5 (id UNINDEXED, name, brand, tags, category, sku, shop, description,"
            " tokenize='unicode61 remove_diacritics 2')"
        )
        columns = "id name brand tags category sku shop description".split()
        rows = ([row[column] for column in columns] for row in catalogue)
        self._db.executemany("INSERT INTO f VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def __call__(self, query: str) -> list[str]:
        words = [f'"{word}"' for word in re.findall(r"\w+", query)]
        if not words:
            return []
        sql = f"SELECT id FROM f WHERE f MATCH ? ORDER BY bm25(f, 0, 10, 6, 5, 5, 5, 2, 1) LIMIT {TOP}"
        found = [one for [one] in self._db.execute(sql, [" AND ".join(words)])]
        if len(found) < TOP:
            more = [one for [one] in self._db.execute(sql, [" OR ".join(words)])]
            found += [one for one in more if one not in found]
        return found[:TOP]


class Tantivy:
    name = "tantivy"

    def __init__(self, catalogue: Sequence[dict[str, str]]) -> None:
        import tantivy

        columns = "name brand tags category sku shop description".split()
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("id", stored=True, tokenizer_name="raw")
        for column in columns:
            builder.add_text_field(column)
        self._index = tantivy.Index(builder.build())
        writer = self._index.writer()
        for row in catalogue:
            writer.add_document(tantivy.Document(id=row["id"], **{column: row[column] for column in columns}))
        writer.commit()
        self._index.reload()
        self._columns = columns

    def __call__(self, query: str) -> list[str]:
        words = " ".join(re.findall(r"\w+", query)).lower()
        weights = dict(zip(self._columns, (10.0, 6.0, 5.0, 5.0, 5.0, 2.0, 1.0), strict=True))
        parsed = self._index.parse_query(words, self._columns, field_boosts=weights)
        searcher = self._index.searcher()
        return [searcher.doc(address)["id"][0] for _, address in searcher.search(parsed, TOP).hits]


@dataclass
class Scores:
    of_kind: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    first: list[bool] = field(default_factory=list)
    among_top: list[bool] = field(default_factory=list)


def score(find: Find, judged: Sequence[Judged], known: Sequence[Judged]) -> Scores:
    scores = Scores()
    for one in judged:
        scores.of_kind[one.kind].append(one.precision(find(one.query)))
    for one in known:
        found = find(one.query)
        scores.first.append(found[:1] != [] and found[0] in one.relevant)
        scores.among_top.append(any(item in one.relevant for item in found))
    return scores


def print_table(scores: dict[str, Scores], num_judged: int) -> None:
    kinds = sorted({kind for one in scores.values() for kind in one.of_kind})
    print(f"| precision of the top five, {num_judged} queries | {' | '.join(scores)} |")
    print("|---|" + "---|" * len(scores))
    for kind in kinds:
        cells = (f"{statistics.mean(one.of_kind[kind]):.2f}" for one in scores.values())
        print(f"| {kind} ({len(next(iter(scores.values())).of_kind[kind])}) | {' | '.join(cells)} |")
    means = (statistics.mean(x for values in one.of_kind.values() for x in values) for one in scores.values())
    print(f"| **all** | {' | '.join(f'**{mean:.3f}**' for mean in means)} |")
    for title, name in (("known items, first", "first"), ("known items, among five", "among_top")):
        if all(getattr(one, name) for one in scores.values()):
            cells = (f"{statistics.mean(getattr(one, name)):.3f}" for one in scores.values())
            print(f"| {title} | {' | '.join(cells)} |")


def show_misses(find: Find, judged: Sequence[Judged], kind: str, names: dict[str, str]) -> None:
    for one in judged:
        found = find(one.query)
        if one.kind == kind or (kind == "all" and one.precision(found) < 1):
            print(f"\n{one.precision(found):.2f} {one.kind}: {one.query[:160]!r} ({len(one.relevant)} relevant)")
            for item in found:
                print(f"   {'+' if item in one.relevant else '-'} {names[item][:110]}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", nargs="+", default=["seen.jsonl", "known_items.jsonl"])
    parser.add_argument("--show", metavar="KIND", help="print what is found for each query of it; `all`: all misses")
    parser.add_argument("--no-tantivy", action="store_true")
    parser.add_argument("--embedding", type=Path, metavar="FOLDER", help="of an embedding model")
    parser.add_argument("--reranker", type=Path, metavar="FOLDER")
    parser.add_argument("--min-similarity", type=float, default=0.5)
    options = parser.parse_args()
    catalogue = read_catalogue()
    every = [one for name in options.queries for one in Judged.read(FOLDER / name)]
    judged = [one for one in every if not one.is_known_item]
    known = [one for one in every if one.is_known_item]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as models:
        finders: list[Any] = [Ours(catalogue, f"sqlite:///{folder}/market.db"), BareFts(catalogue)]
        if options.embedding:
            pooling = models.enter_context(pooling_of(options.embedding, options.reranker))
            url = f"sqlite:///{folder}/by_meaning.db"
            finders.insert(0 if options.show else 1, Ours(catalogue, url, pooling, options.min_similarity))
        if not options.no_tantivy:
            finders.append(Tantivy(catalogue))
        if options.show:
            show_misses(finders[0], every, options.show, {row["id"]: row["name"] for row in catalogue})
        else:
            print_table({one.name: score(one, judged, known) for one in finders}, len(judged))


if __name__ == "__main__":
    main()
