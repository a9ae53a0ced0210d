"""How well and how fast identity cards are read: specimen cards of `tests/ktp`, the OCR path, one thread.

.venv/bin/python benchmarks/ktp.py [--cards 100] [--first-seed 1000] [--levels clean photo hard] [--bare]

--bare measures what rapidocr gives without our decoder, direction and checks: the baseline.
"""

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from tests.ktp.card_drawing import digits_are_ocr_a  # noqa: E402
from tests.ktp.card_photos import LEVELS, Pixels, photograph  # noqa: E402
from tests.ktp.negatives import negative  # noqa: E402
from tests.ktp.card_scores import CardScore, score_card, score_level  # noqa: E402
from tests.ktp.cards import make_card  # noqa: E402
from tis.ktp.field_parsers import FieldReading  # noqa: E402
from tis.ktp.ocr import RapidTextReader  # noqa: E402
from tis.ktp.ocr_card_reader import OcrCardReader, StripReader  # noqa: E402
from tis.ktp.regions import regions  # noqa: E402
from tis.ktp.text_lines import TextLine  # noqa: E402

TODAY = date(2026, 1, 1)
Read = Callable[[Pixels], tuple[bool, dict[str, FieldReading], str | None]]


class BareRapidReader:
    """rapidocr as it comes, but for the angle classifier, which turns NIKs upside down."""

    def __init__(self) -> None:
        from rapidocr import RapidOCR

        threads = {"EngineConfig.onnxruntime.intra_op_num_threads": 1}
        self._engine = RapidOCR(params={"Global.log_level": "critical", "Global.use_cls": False, **threads})

    def read(self, picture: Pixels) -> list[TextLine]:
        result = self._engine(picture[..., ::-1])
        if result.txts is None:
            return []
        quads = [tuple((float(x), float(y)) for x, y in box) for box in result.boxes]
        return [TextLine(*line) for line in zip(quads, result.txts, result.scores, strict=True)]

    def read_strip(self, strip: Pixels) -> TextLine | None:
        return None


def reading(texts: StripReader) -> Read:
    reader = OcrCardReader(texts, regions())

    def read(picture: Pixels) -> tuple[bool, dict[str, FieldReading], str | None]:
        card = reader.read(picture, TODAY)
        before = [repair.old for repair in card.checked.repairs if repair.field == "nik"]
        return card.is_card, card.checked.fields, before[0] if before else None

    return read


def measure(read: Read, level: str, seeds: range) -> Counter[tuple[str, str]]:
    scores: list[CardScore] = []
    seconds, refused = [], 0
    for seed in seeds:
        picture = photograph(seed, level)
        began = time.process_time()
        is_card, fields, nik = read(picture)
        seconds.append(time.process_time() - began)
        refused += not is_card
        scores.append(score_card(make_card(seed), fields, nik))
    total = score_level(scores)
    print(
        f"| {level} | {total.num_cards} | {total.field_exact:.4f} | {total.nik_exact:.3f} | {total.card_exact:.3f} | "
        f"{total.character_error_rate:.4f} | {total.confidently_wrong:.4f} | {total.niks_altered} | {refused} | "
        f"{statistics.median(seconds):.2f} |",
        flush=True,
    )
    weak = {name: f"{exact:.3f}" for name, exact in total.exact_by_field.items() if exact < 1}
    print(f"  fields below 1: {weak}", flush=True)
    return sum((score.confused_digits for score in scores), Counter())


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the reading of identity cards.")
    parser.add_argument("--cards", type=int, default=100, help="per level")
    parser.add_argument("--first-seed", type=int, default=1000, help="tune below 1000, report from there on")
    parser.add_argument("--levels", nargs="*", default=list(LEVELS))
    parser.add_argument("--bare", action="store_true")
    arguments = parser.parse_args()
    read = reading(BareRapidReader() if arguments.bare else RapidTextReader(1))
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.cards)
    print(f"NIK digits: {'OCR-A' if digits_are_ocr_a() else 'drawn, as no OCR-A font is installed'}")
    print(
        "| level | cards | field exact | NIK exact | card exact | CER | confident, wrong | altered | refused | CPU s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    confused: Counter[tuple[str, str]] = Counter()
    for level in arguments.levels:
        confused += measure(read, level, seeds)
    print(f"digits of the NIK, printed and read: {dict(confused)}")
    accepted = [negative(seed)[0] for seed in seeds if read(negative(seed)[1])[0]]
    print(f"negatives accepted: {len(accepted)} of {len(seeds)} {sorted(set(accepted))}")


if __name__ == "__main__":
    main()
