"""How well and how fast identity cards are read: specimen cards of `tests/ktp`, the OCR path, one thread a worker.

.venv/bin/python benchmarks/ktp.py [--cards 100] [--first-seed 1000] [--styles first second] [--levels clean photo hard]
    [--workers 2] [--bare]

--bare measures rapidocr with the nearest value beside each label: the baseline. Tune below seed 1000 and on the first
style alone; report above, on both.
"""

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

from ktp_baseline import BareRapidReader, nearest_values  # noqa: E402

from tests.ktp.card_drawing import digits_are_ocr_a  # noqa: E402
from tests.ktp.card_photos import LEVELS, OTHER_LEVELS, Photograph, Pixels, photograph, take_photograph  # noqa: E402
from tests.ktp.card_scores import CardScore, score_card, score_level  # noqa: E402
from tests.ktp.cards import SpecimenCard, make_card  # noqa: E402
from tests.ktp.negatives import negative  # noqa: E402
from tests.ktp.second_style.second_people import make_second_card  # noqa: E402
from tests.ktp.second_style.second_photos import take_second_photograph  # noqa: E402
from tis.ktp.field_parsers import FieldReading  # noqa: E402
from tis.ktp.lexicons import FIELDS  # noqa: E402
from tis.ktp.ocr import RapidTextReader  # noqa: E402
from tis.ktp.ocr_card_reader import OcrCardReader  # noqa: E402
from tis.ktp.regions import regions  # noqa: E402

TODAY = date(2026, 1, 1)
COLUMNS = [
    "style, level", "cards", "field exact", "of readable", "NIK exact", "of readable", "card exact", "CER",
    "confident, wrong", "right, confident", "overclaimed", "NIKs altered", "refused", "CPU s", "x bare call",
]  # fmt: skip


@dataclass(frozen=True)
class Style:
    card: Callable[[int], SpecimenCard]
    photo: Callable[[int, str], Photograph]
    levels: tuple[str, ...]


STYLES = {
    "first": Style(make_card, take_photograph, (*LEVELS, *OTHER_LEVELS)),
    "second": Style(make_second_card, take_second_photograph, LEVELS),
}


@dataclass(frozen=True)
class Measured:
    seed: int
    score: CardScore
    seconds: float  # of the processor
    is_card: bool
    confident_mistakes: tuple[str, ...]


@cache
def reader() -> OcrCardReader:
    """One for a process: it holds the weights."""
    return OcrCardReader(RapidTextReader(1), regions())


@cache
def bare() -> BareRapidReader:
    return BareRapidReader()


def read(picture: Pixels, with_bare: bool) -> tuple[bool, dict[str, FieldReading], str | None]:
    if with_bare:
        fields = nearest_values(bare().read(picture), regions())
        return sum(field.value is not None for field in fields.values()) >= 5, fields, None
    card = reader().read(picture, TODAY)
    before = [repair.old for repair in card.checked.repairs if repair.field == "nik"]
    return card.is_card, card.checked.fields, before[0] if before else None


def measure(with_bare: bool, style: str, level: str, seed: int) -> Measured:
    photo = STYLES[style].photo(seed, level)
    began = time.process_time()
    is_card, fields, nik = read(photo.picture, with_bare)
    seconds = time.process_time() - began
    card = STYLES[style].card(seed)
    score = score_card(card, fields, nik, photo.obscured)
    mistakes = tuple(f"{n}: {card.fields[n]!r} as {fields[n].value!r}" for n in sorted(score.confidently_wrong))
    return Measured(seed, score, seconds, is_card, mistakes)


def is_accepted(with_bare: bool, seed: int) -> str | None:
    name, picture = negative(seed)
    return name if read(picture, with_bare)[0] else None


def seconds_of_bare_call(style: str, level: str, seed: int) -> float:
    picture = STYLES[style].photo(seed, level).picture
    began = time.process_time()
    bare().call(picture)
    return time.process_time() - began


def read_one(level: str, seed: int) -> None:
    reader().read(photograph(seed, level), TODAY)


@contextmanager
def workers(count: int) -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        yield pool


def show_level(level: str, measured: list[Measured], bare_call: float) -> Counter[tuple[str, str]]:
    total = score_level(one.score for one in measured)
    median = statistics.median(one.seconds for one in measured)
    cells = [
        level, f"{total.num_cards}", f"{total.field_exact:.4f}", f"{total.readable_exact:.4f}",
        f"{total.nik_exact:.3f}", f"{total.readable_nik_exact:.3f}", f"{total.card_exact:.3f}",
        f"{total.character_error_rate:.4f}",
        f"{total.confidently_wrong:.4f}", f"{total.right_and_confident:.3f}",
        f"{total.num_overclaimed} of {total.num_obscured}", f"{total.niks_altered}",
        f"{sum(not one.is_card for one in measured)}", f"{median:.2f}",
        f"{median / bare_call:.2f}" if bare_call else "",
    ]  # fmt: skip
    print(f"| {' | '.join(cells)} |", flush=True)
    weak = {name: f"{exact:.3f}" for name, exact in total.exact_by_field.items() if exact < 1}
    print(f"  fields below 1: {weak}")
    for one in measured:
        for mistake in one.confident_mistakes:
            print(f"  confident and wrong, seed {one.seed}: {mistake}")
    return sum((one.score.confused_digits for one in measured), Counter())


def show_throughput(num_cards: int, first_seed: int, cpus: int) -> None:
    """Wall time of a card where the workers have a processor each; on a busy machine it says little."""
    for count in range(1, cpus + 1):
        with workers(count) as pool:
            task: Callable[[int], None] = partial(read_one, "photo")
            list(pool.map(task, range(first_seed, first_seed + 2 * count)))  # loads the weights
            began = time.perf_counter()
            list(pool.map(task, range(first_seed, first_seed + num_cards)))
            each = (time.perf_counter() - began) / num_cards
        print(f"{count} worker(s): {each:.2f} s of wall time a card, over {num_cards} photos", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the reading of identity cards.")
    parser.add_argument("--cards", type=int, default=100, help="per level")
    parser.add_argument("--first-seed", type=int, default=1000, help="tune below 1000, report from there on")
    parser.add_argument("--levels", nargs="*", default=list(LEVELS), choices=[*LEVELS, *OTHER_LEVELS])
    parser.add_argument("--styles", nargs="*", default=list(STYLES), choices=list(STYLES))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--negatives", type=int, help="as many as cards, if not given")
    parser.add_argument("--bare-calls", type=int, default=10, help="per level, to compare the time with")
    parser.add_argument("--throughput", type=int, default=0, help="photos to time at 1 and 2 workers")
    parser.add_argument("--bare", action="store_true")
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.cards)
    print(f"NIK digits: {'OCR-A' if digits_are_ocr_a() else 'drawn, as no OCR-A font is installed'}")
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    confused: Counter[tuple[str, str]] = Counter()
    by_field: dict[str, list[str]] = {name: [] for name in FIELDS}
    with workers(arguments.workers) as pool:
        runs = [(style, level) for style in arguments.styles for level in arguments.levels]
        runs = [(style, level) for style, level in runs if level in STYLES[style].levels]
        for style, level in runs:
            measured = list(pool.map(partial(measure, arguments.bare, style, level), seeds))
            calls = list(pool.map(partial(seconds_of_bare_call, style, level), seeds[: arguments.bare_calls]))
            confused += show_level(f"{style}, {level}", measured, statistics.median(calls) if calls else 0.0)
            for name, exact in score_level(one.score for one in measured).exact_by_field.items():
                by_field[name].append(f"{exact:.3f}")
        print(f"digits of the NIK, printed and read: {dict(confused)}")
        print(f"| field | {' | '.join(map(', '.join, runs))} |\n|" + "---|" * (1 + len(runs)))
        for name, shares in by_field.items():
            print(f"| {name} | {' | '.join(shares)} |")
        count = arguments.cards if arguments.negatives is None else arguments.negatives
        others = range(arguments.first_seed, arguments.first_seed + count)
        accepted = [name for name in pool.map(partial(is_accepted, arguments.bare), others) if name]
        print(f"negatives accepted: {len(accepted)} of {len(others)} {sorted(set(accepted))}", flush=True)
    if arguments.throughput:
        show_throughput(arguments.throughput, arguments.first_seed, 2)


if __name__ == "__main__":
    main()
