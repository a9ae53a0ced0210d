"""What integer weights give a single client: whole servers, each kind of weights in turn, over rounds.

    python benchmarks/quantised.py --model-folder FOLDER [--rounds 3] [--requests 2]

The model of `random_model.py` is built into FOLDER if it is not there. Steps of the engine: `int8.py`; what the weights
lose: `quality.py`.
"""

import argparse
import math
import statistics
import sys
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from chat import Load, measure  # noqa: E402
from contenders import started, this_server  # noqa: E402
from random_model import build_model, words_for  # noqa: E402

KINDS = (None, "int8", "int4")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-folder", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=2)
    options = parser.parse_args()
    print_speed(options.model_folder.resolve(), options.rounds, options.requests)


def print_speed(folder: Path, rounds: int, requests: int) -> None:
    build_model(folder)
    load = Load(requests_each=requests, prompt_tokens=words_for(folder, 210), max_tokens=32, extra={"temperature": 0})
    ours = this_server(folder)
    speeds: dict[str | None, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for _ in range(rounds):
        for kind in KINDS:
            weights = replace(ours, variables={**ours.variables, "QUANTIZE": kind or ""})
            with started(weights, folder / "ours.log") as server:
                result = measure(server.url, ours.model, 1, load)
            gap = result.inter_token_ms.p50
            speeds[kind].append((result.tokens_per_second, gap if gap is not None else math.nan))
    print("\n| weights, 1 client | tok/s end to end | ms per token (p50) |\n|---|---|---|")
    full = statistics.median(gap for _, gap in speeds[None])
    for kind, measured in speeds.items():
        speed, gap = (statistics.median(column) for column in zip(*measured, strict=True))
        # Random weights may answer with tokens that have no text: then nothing is streamed between first and last.
        shown = "no text to time" if math.isnan(gap) else f"{gap:.0f} ({full / gap:.2f} x)"
        print(f"| {kind or 'full'} | {speed:.1f} | {shown} |")


if __name__ == "__main__":
    main()
