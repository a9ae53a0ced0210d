"""How well the assistant ranks: nDCG@10 and broken limits on judged requests, beside plain search and price order.

    python benchmarks/assistant_ranking.py [--show] [--sentences]

The requests and their grades are in `benchmarks/judged_ranking`; its README says how they were graded. Each request
comes as the StructuredQuery that a careful human makes of it, so that the ranking is judged apart from the parser; with
`--sentences` it is what the rules make of the sentence.
"""

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDER = REPOSITORY / "benchmarks" / "judged_ranking"
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks"), str(FOLDER)]

from grades import OFFICIAL, OfferedProduct, breaks_a_limit, read_points, read_products  # noqa: E402
from search_quality import Ours, read_catalogue  # noqa: E402
from sqlalchemy import select  # noqa: E402
from sqlalchemy.orm import Session  # noqa: E402

from tis.marketplace.assistant.best_goods import best_goods  # noqa: E402
from tis.marketplace.assistant.goods_search import GoodsSearch  # noqa: E402
from tis.marketplace.assistant.viewers import Viewer  # noqa: E402
from tis.marketplace.kit.geo import Point  # noqa: E402
from tis.marketplace.market import Market  # noqa: E402
from tis.marketplace.reading.parse import parse_query  # noqa: E402
from tis.marketplace.reading.structured_query import KnownUser, QueryContext, StructuredQuery  # noqa: E402
from tis.marketplace.search.query import PageRequest  # noqa: E402
from tis.marketplace.tables import Product, Supplier  # noqa: E402

TOP = 10
Ranking = list[str]
Rank = Callable[[Session, StructuredQuery, Viewer], list[int]]


@dataclass(frozen=True)
class JudgedRequest:
    id: str
    query: str
    structured: StructuredQuery
    origin: dict[str, Any] | None
    grades: dict[str, int]
    hard: dict[str, Any]

    @property
    def viewer(self) -> Viewer:
        return Viewer(origin=Point(self.origin["lat"], self.origin["lon"]) if self.origin else None)

    def ndcg(self, ranking: Sequence[str]) -> float:
        best = gain(sorted(self.grades.values(), reverse=True))
        return gain([self.grades.get(one, 0) for one in ranking]) / best


def gain(grades: Sequence[int]) -> float:
    return float(sum((2**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades[:TOP])))


def read_requests() -> list[JudgedRequest]:
    lines = (FOLDER / "graded.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        JudgedRequest(
            row["id"],
            row["query"],
            StructuredQuery(**row["structured"]),
            row["origin"],
            row["grades"],
            row["hard"],
        )
        for row in map(json.loads, lines)
    ]


@contextmanager
def judged_market() -> Iterator[tuple[Market, dict[int, str]]]:
    """The judged catalogue, each shop at the point of its city. With the catalogue's name of each product."""
    with tempfile.TemporaryDirectory() as folder:
        rows = read_catalogue()
        ours = Ours(rows, f"sqlite:///{folder}/market.db")
        points = read_points()
        with ours._market.writing() as session:
            for shop in session.scalars(select(Supplier)):
                shop.latitude, shop.longitude = points[OFFICIAL.get(shop.city, shop.city)]
                shop.shows_place = True
            stock = {row["id"]: int(row["stock"]) for row in rows}
            for product in session.scalars(select(Product)):
                product.on_hand = stock[ours._id_of[product.id]]
            session.flush()
            ours._market.search.refresh(session, list(ours._id_of))
            for shop in session.scalars(select(Supplier)):
                ours._market.search.refresh_supplier(session, shop.id)
        yield ours._market, ours._id_of
        ours._market.close()


def understood(market: Market, session: Session, request: JudgedRequest) -> StructuredQuery:
    user = KnownUser(city=request.origin["city"]) if request.origin else None
    return parse_query(request.query, QueryContext(user=user), market.search.vocabulary(session)).query


def ranks(market: Market) -> dict[str, Rank]:
    search = market.search

    def assistant(session: Session, query: StructuredQuery, viewer: Viewer) -> list[int]:
        return best_goods(GoodsSearch(search, session, viewer), query).ids

    def searched(session: Session, query: StructuredQuery, viewer: Viewer) -> list[int]:
        wanted = replace(GoodsSearch(search, session, viewer).product_query(query), sort=None)
        return [hit.product.id for hit in search.find(session, wanted, PageRequest(limit=TOP)).hits]

    def by_price(session: Session, query: StructuredQuery, viewer: Viewer) -> list[int]:
        wanted = replace(GoodsSearch(search, session, viewer).product_query(query), sort="price_asc")
        return [hit.product.id for hit in search.find(session, wanted, PageRequest(limit=TOP)).hits]

    return {"assistant": assistant, "plain search": searched, "by price": by_price}


def show(
    request: JudgedRequest, ranking: Sequence[str], products: dict[str, OfferedProduct], query: StructuredQuery
) -> None:
    print(f"\n{request.id} {request.ndcg(ranking):.3f} {request.query}")
    print("  ", query.model_dump(exclude_defaults=True))
    for one in ranking[:TOP]:
        product = products[one]
        facts = f"{product.price:,} | {product.city} | {product.rating} | {product.stock}"
        print(f"   {request.grades.get(one, 0)} {one} {product.name} | {facts}")
    missing = [one for one, grade in request.grades.items() if grade > 1 and one not in ranking[:TOP]]
    print("   missing:", ", ".join(f"{products[one].name} ({request.grades[one]})" for one in missing[:5]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print the rankings of the assistant below 0.9")
    parser.add_argument("--sentences", action="store_true", help="what the rules make of the sentences is searched")
    options = parser.parse_args()
    products = {product.id: product for product in read_products()}
    requests = read_requests()
    with judged_market() as (market, id_of):
        print(f"| {len(requests)} requests | nDCG@{TOP} | at least 0.9 | violations |\n|---|---|---|---|")
        for name, rank in ranks(market).items():
            scores, num_broken = list[float](), 0
            for request in requests:
                with market.reading() as session:  # a transaction may read for five seconds
                    structured = understood(market, session, request) if options.sentences else request.structured
                    query = GoodsSearch(market.search, session, request.viewer).with_known_category(structured)
                    ranking = [id_of[one] for one in rank(session, query, request.viewer)[:TOP]]
                scores.append(request.ndcg(ranking))
                num_broken += sum(breaks_a_limit(products[one], request.hard, request.origin) for one in ranking)
                if options.show and name == "assistant" and scores[-1] < 0.9:
                    show(request, ranking, products, query)
            mean, num_good = sum(scores) / len(scores), sum(score >= 0.9 for score in scores)
            print(f"| {name} | {mean:.3f} | {num_good} of {len(scores)} | {num_broken} |")


if __name__ == "__main__":
    main()
