"""How well the rules understand the sentences of buyers: judged queries of `benchmarks/judged_understanding`.

    python benchmarks/query_understanding.py [--queries seen.jsonl] [--show KIND|all]

A sentence is fully right if every field is. Wrong in price, place, category or exclusion is worse than wrong in the
order of the list: these are counted apart. The brands are those of the catalogue in `benchmarks/judged_queries`.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from benchmarks.judged_understanding import scoring  # noqa: E402
from benchmarks.search_quality import Ours, read_catalogue  # noqa: E402
from tis.marketplace.reading.parse import parse_query  # noqa: E402
from tis.marketplace.reading.structured_query import QueryContext  # noqa: E402
from tis.marketplace.reading.vocabulary import Vocabulary  # noqa: E402

FOLDER = Path(__file__).parent / "judged_understanding"
NUM_TIMES = 5  # each sentence is parsed; the quickest counts, as other programs run beside
Parse = Callable[[str, QueryContext], dict[str, Any]]


@dataclass(frozen=True)
class UnderstoodLine:
    """A judged sentence, and what was made of it."""

    line: scoring.UnderstandingLine
    found: dict[str, Any]
    milliseconds: float


def catalogue_vocabulary() -> Vocabulary:
    with tempfile.TemporaryDirectory() as folder:
        market = Ours(read_catalogue(), f"sqlite:///{folder}/market.db")
        try:
            return market.vocabulary()
        finally:
            market.close()


def by_rules(vocabulary: Vocabulary) -> Parse:
    return lambda text, context: parse_query(text, context, vocabulary).query.model_dump()


def understand_lines(lines: Sequence[scoring.UnderstandingLine], parse: Parse) -> list[UnderstoodLine]:
    parse("laptop di bandung", QueryContext())  # reads the gazetteer
    return [_understand(line, parse) for line in lines]


def _understand(line: scoring.UnderstandingLine, parse: Parse) -> UnderstoodLine:
    context, seconds, found = QueryContext.model_validate(line.context or {}), list[float](), dict[str, Any]()
    for _ in range(NUM_TIMES):
        start = time.perf_counter()
        found = parse(line.query, context)
        seconds.append(time.perf_counter() - start)
    return UnderstoodLine(line, found, min(seconds) * 1000)


def print_table(understood: Sequence[UnderstoodLine]) -> None:
    result = scoring.score((one.line, one.found) for one in understood)
    print(f"{result.lines} sentences: {result.right_share:.1%} fully right, {result.grave_share:.1%} wrong in")
    print("  " + ", ".join(f"{group} {result.grave_groups[group]}" for group in scoring.GRAVE))
    for kind, num in sorted(result.lines_by_kind.items()):
        print(f"  {kind:12} {result.right_by_kind[kind]:3} of {num}")
    times = sorted(one.milliseconds for one in understood)
    print(f"parse: p50 {statistics.median(times):.2f} ms, p95 {times[int(0.95 * len(times))]:.2f} ms")


def print_wrong(understood: Sequence[UnderstoodLine], kind: str) -> None:
    for one in understood:
        wrong = scoring.wrong_fields(one.line, one.found)
        if not wrong or kind not in ("all", one.line.kind):
            continue
        print(f"{one.line.id} {one.line.kind}: {one.line.query}")
        for name in sorted(wrong):
            expected = one.line.expected.get(name, scoring.DEFAULTS[name]) if name != "text" else one.line.text_has
            print(f"    {name}: {json.dumps(one.found[name])}, not {json.dumps(expected)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", default="seen.jsonl", help="a file of benchmarks/judged_understanding")
    parser.add_argument("--show", metavar="KIND", help="print what is wrong: of this kind, or all")
    arguments = parser.parse_args()
    lines = scoring.load_lines(FOLDER / arguments.queries)
    understood = understand_lines(lines, by_rules(catalogue_vocabulary()))
    if arguments.show:
        print_wrong(understood, arguments.show)
    print_table(understood)


if __name__ == "__main__":
    main()
