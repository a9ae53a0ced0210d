"""What a second thread gives the attention of one answer: with one key head its keys are all that can be shared.

    python benchmarks/key_spans.py [--threads 1,2] [--keys 1000,4000,16000] [--rounds 15]

One row over so many keys, 16 query heads of 128, 1, 2 and 8 key heads, in bfloat16. Rounds alternate between numbers of
threads; the table has the medians in microseconds, and how many times as fast the last number is as the first. The
caches of eight layers are used in turn, so that the CPU's own hold few of them.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from tis.engine.kernels.build import library_path  # noqa: E402
from tis.engine.kernels.native import load_kernels  # noqa: E402

HEADS, SIZE, LAYERS = 16, 128, 8


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--keys", type=numbers, default=[1000, 4000, 16000])
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    kernels = load_kernels(library_path())
    print(f"{kernels.isa}, microseconds of one row\n")
    print("| key heads | keys | " + " | ".join(f"{one} threads" for one in arguments.threads) + " | times |")
    print("|---|---|" + "---|" * (len(arguments.threads) + 1))
    for key_heads in (1, 2, 8):
        for num_keys in arguments.keys:
            caches = [torch.randn(2, key_heads, num_keys, SIZE).bfloat16() for _ in range(LAYERS)]
            query = torch.randn(HEADS, 1, SIZE).bfloat16()
            runs = torch.tensor([[0, 1, 0, num_keys - 1]])
            seconds: dict[int, list[float]] = {one: [] for one in arguments.threads}
            for number in range(arguments.rounds + 1):
                for threads, measured in seconds.items():
                    torch.set_num_threads(threads)
                    begin = time.perf_counter()
                    for keys, values in caches:
                        kernels.attend(query, keys, values, runs, SIZE**-0.5)
                    if number:  # the first one wakes the threads
                        measured.append((time.perf_counter() - begin) / LAYERS)
            medians = [statistics.median(measured) * 1e6 for measured in seconds.values()]
            cells = " | ".join(f"{one:,.0f}" for one in medians)
            print(f"| {key_heads} | {num_keys:,} | {cells} | {medians[0] / medians[-1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
