"""What LoRA adapters cost in a step of the batch, and what the batch gains over one adapter at a time by PEFT.

    python benchmarks/adapters.py [--rounds 5] [--layers 28] [--rank 16] [--rows 1,8] [--adapters 4]

The model of `compare.py`, bfloat16, with random adapters on all seven matrices of each layer. Columns: the model as it
is served without adapters (whole layers in one native call); rows of the base where adapters lie beside it; all rows of
one adapter; rows of all adapters in turn. The last line is PEFT's own `generate()`, one request at a time.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import peft  # noqa: E402
import torch  # noqa: E402
from compare import machine  # noqa: E402
from decode_step import NumbersOnly, _fill, _ignore, _numbers, _pretend, _request  # noqa: E402
from random_model import new_model  # noqa: E402

from tis.engine.batching.choose_runner import choose_runner  # noqa: E402
from tis.engine.batching.limits import BatchLimits  # noqa: E402
from tis.engine.weights.lora_files import LoraAdapter, read_adapter  # noqa: E402

_MATRICES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
_VOCABULARY, _KEYS, _PEFT_TOKENS = 151_936, 240, 12
_STEPS_PER_ROUND = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--rows", type=_numbers, default=[1, 8])
    parser.add_argument("--adapters", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        adapted = _with_adapters(options, Path(folder))
        names = [f"adapter{number}" for number in range(options.adapters)]
        adapters = [read_adapter(name, Path(folder) / name) for name in names]
        peft_seconds = _seconds_a_token(adapted)
        del adapted
    plain, beside = _runner(options.layers, []), _runner(options.layers, adapters)
    print(f"\n{machine()}; {options.layers} layers, {options.adapters} adapters of rank {options.rank}; ms a step\n")
    print("| rows | served without | base beside adapters | one adapter | all in turn |\n|---|---|---|---|---|")
    for rows in options.rows:
        steps = {
            "without": _decode_step(plain, rows, [""]),
            "base": _decode_step(beside, rows, [""]),
            "one": _decode_step(beside, rows, names[:1]),
            "all": _decode_step(beside, rows, names),
        }
        times = _timed(steps, options.rounds)
        print(f"| {rows} | " + " | ".join(f"{1000 * times[kind]:.1f}" for kind in steps) + " |")
        print(f"| tokens of PEFT in that time | | | | {times['all'] / peft_seconds:.2f} of {rows} |", flush=True)


def _with_adapters(options: argparse.Namespace, folder: Path) -> Any:
    model = new_model(torch.bfloat16, layers=options.layers, vocab_size=_VOCABULARY)
    for number in range(options.adapters):
        config = peft.LoraConfig(r=options.rank, lora_alpha=options.rank, target_modules=_MATRICES)
        name = f"adapter{number}"
        if number == 0:
            adapted = peft.get_peft_model(model, config, name)
        else:
            adapted.add_adapter(name, config)
        for parameter_name, parameter in adapted.named_parameters():
            if f"lora_B.{name}" in parameter_name:
                torch.nn.init.normal_(parameter, std=0.02)
    adapted.save_pretrained(folder)  # each in a folder of its name
    return adapted.eval()


def _seconds_a_token(adapted: Any) -> float:
    ids = torch.randint(3, _VOCABULARY, (1, _KEYS))
    how = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "do_sample": False, "pad_token_id": 0}
    seconds = []
    for length in (1, 1 + _PEFT_TOKENS) * 2:
        began = time.perf_counter()
        adapted.generate(**how, min_new_tokens=length, max_new_tokens=length)
        seconds.append(time.perf_counter() - began)
    return (min(seconds[1], seconds[3]) - min(seconds[0], seconds[2])) / _PEFT_TOKENS


def _runner(layers: int, adapters: list[LoraAdapter]) -> Any:
    model = new_model(torch.bfloat16, layers=layers, vocab_size=_VOCABULARY)
    limits = BatchLimits(cache_tokens=32 * (_KEYS + 200), prompt_lookup=False)
    runner: Any = choose_runner(model, NumbersOnly(), 8192, limits, adapters=adapters).new()
    _fill(runner._cache)
    return runner


def _decode_step(runner: Any, rows: int, names: list[str]) -> Callable[[int], list[float]]:
    """Prompts are not computed, as in `decode_step.py`."""

    def timed(number: int) -> list[float]:
        forward, runner._forward = runner._forward, _pretend
        for row in range(rows):
            request = _request(_KEYS, 190)
            request.prepared = replace(request.prepared, adapter=names[row % len(names)])
            runner.admit(request)
        while any(not one.is_decoding for one in runner.scheduler.sequences):
            runner.step(_ignore)
        runner._forward = forward
        seconds = []
        for _ in range(number):
            began = time.perf_counter()
            runner.step(_ignore)
            seconds.append(time.perf_counter() - began)
        runner.drop_all()
        return seconds

    return timed


def _timed(steps: dict[str, Callable[[int], list[float]]], rounds: int) -> dict[str, float]:
    seconds: dict[str, list[float]] = {kind: [] for kind in steps}
    for _ in range(rounds):
        for kind, step in steps.items():
            seconds[kind] += step(_STEPS_PER_ROUND)
    return {kind: statistics.median(some) for kind, some in seconds.items()}


if __name__ == "__main__":
    main()
