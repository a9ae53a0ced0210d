"""What it costs to pick a token for each row of a batch: on a CPU, beside the plain implementation for other devices.

    python benchmarks/sampling.py [--rows 16] [--rounds 8]

Peaked rows fall with the logarithm of the rank, as a language model's do; flat ones are random numbers, as those of
random weights. One thread, alternating rounds, CPU time.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

VOCABULARY = 151_936
CASES: dict[str, dict[str, Any]] = {
    "temperature 0": {"temperature": 0.0},
    "temperature 0.7": {"temperature": 0.7},
    "temperature 0.7, top_p 0.9": {"temperature": 0.7, "top_p": 0.9},
    "temperature 0.7, top_k 20, top_p 0.8": {"temperature": 0.7, "top_k": 20, "top_p": 0.8},
    "temperature 1, min_p 0.05": {"temperature": 1.0, "min_p": 0.05},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    flat = torch.randn(options.rows, VOCABULARY, generator=generator) * 2
    ranks = torch.stack([torch.randperm(VOCABULARY, generator=generator) for _ in range(options.rows)])
    peaked = 20 - 1.6 * torch.log(ranks + 1.0) + flat / 8
    print(f"| {options.rows} rows, ms | peaked: plain | on the CPU | flat: plain | on the CPU |\n|---|---|---|---|---|")
    for name, params in CASES.items():
        measured = [f"{best:.1f}" for logits in (peaked, flat) for best in _best(logits, params, options.rounds)]
        print(f"| {name} | {' | '.join(measured)} |", flush=True)


def _best(logits: Any, fields: dict[str, Any], rounds: int) -> tuple[float, float]:
    import torch

    from tis.engine.sampling.params import SamplingParams
    from tis.engine.sampling.pick import likeliest
    from tis.engine.sampling.random_stream import noise_key
    from tis.engine.sampling.sample import sample_on_device
    from tis.engine.sampling.sample_on_cpu import sample_on_cpu

    params = [SamplingParams(**fields)] * len(logits)
    keys = [noise_key(1, 0, position) for position in range(len(logits))]

    def plain() -> list[int]:
        ids = logits.max(-1)[1].tolist()
        return ids if params[0].is_greedy else sample_on_device(logits, params, keys)

    def ours() -> list[int]:
        ids, _ = likeliest(logits)
        return ids if params[0].is_greedy else sample_on_cpu(logits, params, keys)

    best = [float("inf")] * 2
    with torch.inference_mode():
        assert plain() == ours()
        for _ in range(rounds):
            for at, pick in enumerate((plain, ours)):
                began = time.thread_time()
                pick()
                best[at] = min(best[at], (time.thread_time() - began) * 1000)
    return best[0], best[1]


if __name__ == "__main__":
    main()
