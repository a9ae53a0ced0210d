"""What a search costs: `ProductSearch.find` and `facets` in this process, without HTTP, beside bare SQL for the same.

    python benchmarks/marketplace.py --products 10000,100000 [--database sqlite|postgresql] [--folder FOLDER]
    python benchmarks/marketplace.py --reserve|--typos [--database sqlite|postgresql]

The catalogue is `seed_data.py --many`; a FOLDER keeps it (SQLite) for the next run. Ours and the bare SQL take turns,
warm, `--rounds` times each. CPU is that of this process, which is SQLite's too; of PostgreSQL that of this process and
of its backend together, as a mean, because Linux counts other processes in hundredths of a second. `--results FILE`
collects the numbers of several runs, and `--plot FILE` draws how they grow.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import bare_market as bare  # noqa: E402
from market_costs import (  # noqa: E402
    CPU_TARGETS_MS,
    CaseResult,
    SearchCase,
    markdown_table,
    measure_costs,
    merge_results,
)
from market_growth import draw_growth  # noqa: E402
from sqlalchemy import func, select  # noqa: E402
from sqlalchemy.orm import Session  # noqa: E402

from tests.marketplace.postgres import programs_of_postgres, running_postgres  # noqa: E402
from tis.database.database import Database  # noqa: E402
from tis.marketplace.kit.geo import Point  # noqa: E402
from tis.marketplace.market import Market, MarketRules  # noqa: E402
from tis.marketplace.search.query import PageRequest, ProductQuery  # noqa: E402
from tis.marketplace.seed import commands as seed_commands  # noqa: E402
from tis.marketplace.tables import Product  # noqa: E402

_HERE = Point(bare.LATITUDE, bare.LONGITUDE)
_FIRST_PAGE = PageRequest(limit=20, with_total=False)


def main() -> None:
    given = _arguments()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))  # and not without ending its PostgreSQL
    if given.folder:
        given.folder.mkdir(parents=True, exist_ok=True)
    with _url(given.database, given.database_url) as url_for:
        if given.reserve:
            from market_stock import reserve_together

            print(reserve_together(url_for("stock", None), given.threads, given.seconds))
            return
        if given.typos:
            from market_typos import look_up_typos

            print(look_up_typos(url_for("typos", None)))
            return
        results = []
        for products in given.products:
            results += _measure(url_for(f"market_{products}", given.folder), products, given.rounds)
            print(markdown_table(results[-len(CPU_TARGETS_MS) :]), flush=True)
    if given.results:
        results = merge_results(given.results, results)
    if given.plot:
        given.plot.write_text(draw_growth([asdict(result) for result in results]), encoding="utf-8")


def _measure(url: str, products: int, rounds: int) -> list[CaseResult]:
    market = Market(Database(url), MarketRules(jwt_secret="benchmarks sign nothing, but need a key"))
    _fill(market, products)
    results = [
        CaseResult(market.database.dialect, products, case.name, *measure_costs(case, market, rounds))
        for case in _cases(market)
    ]
    market.close()
    return results


def _fill(market: Market, products: int) -> None:
    seed_commands.bring_up_to_date(market.database)
    with market.reading() as session:
        is_full = bool(session.scalar(select(func.count()).select_from(Product)))
        has_bare = bare.is_built(session)
    if not is_full:
        print(f"\n{seed_commands.add_large_catalogue(market.database, products)}")
    if not has_bare:
        with market.writing() as session:
            bare.build(session, market.database.dialect)


def _cases(market: Market) -> Iterator[SearchCase]:
    dialect = market.database.dialect

    def find(page: PageRequest = _FIRST_PAGE, **query: Any) -> Callable[[Session], int]:
        return lambda session: len(market.search.find(session, ProductQuery(**query), page).hits)

    def facets(session: Session) -> int:
        return len(market.search.facets(session, ProductQuery(text="gaming"), ["category"]).facets["category"])

    near: dict[str, Any] = {"origin": _HERE, "radius_km": bare.RADIUS_KM, "sort": "distance"}
    cheapest = ProductQuery(category="laptop", sort="price_asc")
    with market.reading() as session:
        first = market.search.find(session, cheapest, _FIRST_PAGE)
    last = first.hits[-1].product
    following = PageRequest(limit=20, with_total=False, cursor=first.next_cursor)
    broad, broadest = "murah garansi baru", "murah"
    yield SearchCase("text ranked", find(text="laptop gaming"), bare.ranked(dialect, "laptop gaming"))
    yield SearchCase("text + 25 km + nearest", find(text="laptop gaming", **near), bare.near(dialect, "laptop gaming"))
    yield SearchCase("category + 25 km", find(category="laptop", **near), bare.category_near(dialect, "laptop"))
    yield SearchCase("facets", facets, bare.counted(dialect, "gaming"))
    yield SearchCase(
        "page by cursor",
        find(following, category="laptop", sort="price_asc"),
        bare.page(dialect, "laptop", last.price, last.id),
    )
    yield SearchCase("broad words", find(text=broad), bare.ranked(dialect, broad))
    yield SearchCase("the broadest word", find(text=broadest), bare.ranked(dialect, broadest))


@contextmanager
def _url(database: str, given: str | None) -> Iterator[Callable[[str, Path | None], str]]:
    """A name → an empty database, or the one that a folder keeps under this name."""
    if given:
        yield lambda name, folder: given
    elif database == "postgresql":
        programs = programs_of_postgres()
        if programs is None:
            sys.exit("no PostgreSQL here: `apt-get install postgresql`, or --database-url")
        with running_postgres(programs) as postgres:
            yield lambda name, folder: postgres.new_database(name)
    else:
        with tempfile.TemporaryDirectory(prefix="tis-bench-") as temporary:
            yield lambda name, folder: f"sqlite:///{folder or temporary}/{name}.db"


def _arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--products", type=lambda text: [int(one) for one in text.split(",")], default=[100_000])
    arguments.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    arguments.add_argument("--database-url", help="an empty database of yours")
    arguments.add_argument("--folder", type=Path, help="keep the SQLite catalogues here")
    arguments.add_argument("--rounds", type=int, default=30)
    arguments.add_argument("--results", type=Path, help="collect the numbers of several runs here")
    arguments.add_argument("--plot", type=Path, help="draw all collected numbers here, as SVG")
    arguments.add_argument("--reserve", action="store_true", help="reservations per second instead")
    arguments.add_argument("--typos", action="store_true", help="what a misspelt word costs instead")
    arguments.add_argument("--threads", type=int, default=16)
    arguments.add_argument("--seconds", type=float, default=10)
    return arguments.parse_args()


if __name__ == "__main__":
    main()
