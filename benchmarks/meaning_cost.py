"""What a search by meaning costs beside one by words, in a generated catalogue.

    python benchmarks/meaning_cost.py [--products 20000] [--embedding models/demo-embedding] [--numbers 384]

Sentences that name no goods, each in turn. `--numbers`: the comparison alone is also timed for vectors of so many
numbers, as larger models make them.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

import numpy  # noqa: E402

from benchmarks.engine_in_thread import pooling_of  # noqa: E402
from tis.database.database import Database  # noqa: E402
from tis.marketplace.market import Market, MarketRules  # noqa: E402
from tis.marketplace.search.meaning.meaning_search import MeaningLimits  # noqa: E402
from tis.marketplace.search.meaning.vector_renewal import VectorRenewal  # noqa: E402
from tis.marketplace.search.query import PageRequest, ProductQuery, SearchResults  # noqa: E402
from tis.marketplace.seed.large_catalogue import insert_catalogue  # noqa: E402

WISHES = ("sesuatu untuk menghangatkan kopi", "biar kamar tidak gerah", "something to block out noise", "mencetak resi")
_PAGE = PageRequest(limit=20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--products", type=int, default=20_000)
    parser.add_argument("--embedding", type=Path, default=REPOSITORY / "models" / "demo-embedding")
    parser.add_argument("--numbers", type=int, default=384)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, pooling_of(options.embedding) as models:
        rules = MarketRules(jwt_secret="a secret of a benchmark, long enough", meaning=MeaningLimits(60.0))
        market = Market(Database(f"sqlite:///{folder}/market.db"), rules, text_models=models)
        with market.writing() as session:
            insert_catalogue(session, market.search, options.products)
        assert market.meaning
        renewal = VectorRenewal(market.reading, market.writing, models, market.meaning.matrix)
        began = time.perf_counter()
        while renewal.renew_some():
            pass
        seconds = time.perf_counter() - began
        print(f"{market.meaning.matrix.num_vectors} vectors in {seconds:.0f} s; medians in ms of CPU (wall):")
        for wish in WISHES:
            query = ProductQuery(text=wish)
            found = words_only(market, query)
            print(
                f"  {wish:34} by words {timed(partial(words_only, market, query)):>14}"
                f"   with meaning {timed(partial(with_meaning, market, query)):>14}"
                f"   matching all words: {'few' if found.has_few_matches else 'enough'}"
            )
        market.close()
    matrix = numpy.random.default_rng(0).random((options.products, options.numbers), numpy.float32)
    vector = matrix[0].copy()
    print(f"  comparing with {options.products} vectors of {options.numbers}: {timed(lambda: matrix @ vector)}")


def words_only(market: Market, query: ProductQuery) -> SearchResults:
    with market.reading() as session:
        return market.search.find(session, query, _PAGE)


def with_meaning(market: Market, query: ProductQuery) -> SearchResults:
    found = words_only(market, query)
    assert market.meaning
    if fused := market.meaning.beside(query, found):
        with market.reading() as session:
            return market.search.find(session, query, _PAGE, fused)
    return found


def timed(work: Callable[[], object], turns: int = 15) -> str:
    cpu, wall = list[float](), list[float]()
    for _ in range(turns):
        began = time.process_time(), time.perf_counter()
        work()
        cpu.append(1000 * (time.process_time() - began[0]))
        wall.append(1000 * (time.perf_counter() - began[1]))
    return f"{statistics.median(cpu):.1f} ({statistics.median(wall):.1f})"


if __name__ == "__main__":
    main()
