"""What a step of the batch costs with fused modules and native kernels, against the plain path.

    python benchmarks/decode_step.py [--rounds 9] [--dtype bfloat16] [--rows 1,16] [--keys 240,1000] [--prompts 210]
        [--calls] [--cache int8]

The model of `compare.py` (a Qwen3 of 0.44 B, random weights), twice in this process: KERNELS=off and KERNELS=auto. A
round computes a few steps with each, in turn; the table shows the medians and the best. "prompt 210" is the step that
computes a prompt of 210 tokens, or the steps of a longer one, "2 x 210" two of them. `--calls` counts the operators of
torch in a step. `--cache int8` compares KERNELS=auto with that and CACHE_DTYPE=int8 instead:

    python benchmarks/decode_step.py --cache int8 --rows 1,16 --keys 240,1000,4000 --prompts 210,2048
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from random_model import new_model  # noqa: E402

from tis.engine.batching.choose_runner import choose_runner  # noqa: E402
from tis.engine.batching.limits import BatchLimits  # noqa: E402
from tis.engine.prepared_request import PreparedRequest  # noqa: E402
from tis.engine.prompt import ChatPrompt  # noqa: E402
from tis.engine.request import Delivery, Request  # noqa: E402
from tis.engine.sampling.params import SamplingParams  # noqa: E402

_VOCABULARY = 151_936
_STEPS_PER_ROUND = 3
KINDS = {
    "kernels": {"off": {"native_kernels": False}, "auto": {}},
    "int8": {"full": {}, "int8": {"cache_dtype": "int8"}},
}
Step = Callable[[], None]
Clock = Callable[[], float]


class NumbersOnly:
    """A tokenizer for a model that says nothing."""

    eos_ids = frozenset({_VOCABULARY - 1})
    vocabulary_size = _VOCABULARY

    def encode_chat(self, prompt: ChatPrompt) -> list[int]:
        raise NotImplementedError

    def count_tokens(self, text: str, max_tokens: int) -> int:
        return len(text)

    def token_text(self, token_id: int) -> str:
        return "x"

    def token_bytes(self, token_id: int) -> bytes:
        return b"x"

    def new_detokenizer(self) -> "NumbersOnly":
        return self

    def feed(self, token_id: int) -> str:
        return "x"

    def flush(self) -> str:
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--dtype", choices=["bfloat16", "float32"], default="bfloat16")
    parser.add_argument("--rows", type=_numbers, default=[1, 16])
    parser.add_argument("--keys", type=_numbers, default=[240, 1000])
    parser.add_argument("--prompts", type=_numbers, default=[210])
    parser.add_argument("--cache", choices=["int8"], help="a cache of 8 bits against one of the type of the model")
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--cpu-time", action="store_true", help="of all threads, for a machine that is busy")
    options = parser.parse_args()
    clock = time.process_time if options.cpu_time else time.perf_counter
    kinds = KINDS[options.cache or "kernels"]
    runners = {kind: _runner(kind, limits, options) for kind, limits in kinds.items()}
    print(
        f"\n{options.dtype}, {torch.get_num_threads()} threads; ms a step, median (best)"
        f"{', of CPU time' if options.cpu_time else ''}\n"
    )
    print(f"| step | {' | '.join(kinds)} | {' / '.join(kinds)} |\n|---|---|---|---|")
    for keys in options.keys:
        for rows in options.rows:
            steps = {kind: _decode_step(runner, rows, keys) for kind, runner in runners.items()}
            _print_row(f"decode {rows} x {keys} keys", steps, options.rounds, clock)
            if options.calls:
                print("| operators | " + " | ".join(str(_operators(step)) for step in steps.values()) + " | |")
            for runner in runners.values():
                runner.drop_all()
    for length in options.prompts:
        for number in (1, 2):
            name = f"prompt {length}" if number == 1 else f"{number} x {length}"
            steps = {kind: _prompt_step(runner, number, length) for kind, runner in runners.items()}
            _print_row(name, steps, options.rounds, clock)


def _cache_tokens(options: argparse.Namespace) -> int:
    decoding = max(options.rows) * (max(options.keys) + 200)
    return int(max(decoding, 2 * max(options.prompts)) + 1024)


def _print_row(name: str, steps: dict[str, Step], rounds: int, clock: Clock) -> None:
    times: dict[str, list[float]] = {kind: [] for kind in steps}
    for _ in range(rounds):
        for kind, step in steps.items():
            for _ in range(_STEPS_PER_ROUND):
                began = clock()
                step()
                times[kind].append(clock() - began)
    medians = {kind: statistics.median(some) * 1000 for kind, some in times.items()}
    shown = " | ".join(f"{medians[kind]:.1f} ({min(times[kind]) * 1000:.1f})" for kind in steps)
    first, second = steps
    ratio = medians[first] / medians[second]
    best = min(times[first]) / min(times[second])
    print(f"| {name} | {shown} | {ratio:.2f} ({best:.2f}) |", flush=True)


def _runner(kind: str, of_kind: dict[str, Any], options: argparse.Namespace) -> Any:
    model = new_model(getattr(torch, options.dtype), layers=options.layers, vocab_size=_VOCABULARY)
    limits = BatchLimits(cache_tokens=_cache_tokens(options), prompt_lookup=False, **of_kind)
    began = time.perf_counter()
    chosen = choose_runner(model, NumbersOnly(), 8192, limits)
    print(f"{kind}: prepared in {time.perf_counter() - began:.2f} s", flush=True)
    runner: Any = chosen.new()
    _fill(runner._cache)
    return runner


_seeds = count()


def _request(num_tokens: int, max_tokens: int) -> Request:
    numbers = torch.randint(3, _VOCABULARY - 10, (num_tokens,), generator=torch.Generator().manual_seed(next(_seeds)))
    params = SamplingParams(temperature=0.0, max_tokens=max_tokens, ignore_eos=True)
    return Request(PreparedRequest("random", "r", NumbersOnly(), numbers.tolist(), params, 1))


def _ignore(deliveries: Iterable[Delivery]) -> None:
    pass


def _decode_step(runner: Any, rows: int, keys: int) -> Step:
    """Prompts are not computed: how long a step takes does not depend on the numbers in the cache."""
    forward, runner._forward = runner._forward, _pretend
    for _ in range(rows):
        runner.admit(_request(keys, 190))
    while any(not one.is_decoding for one in runner.scheduler.sequences):
        runner.step(_ignore)
    runner._forward = forward
    return lambda: runner.step(_ignore)


def _pretend(chunks: Any) -> Any:
    num_rows = sum(chunk.samples_token for chunk in chunks)
    return torch.zeros(num_rows, _VOCABULARY) if num_rows else None


def _fill(cache: Any) -> None:
    """Untouched memory is one page of zeros, which is read from the cache of the CPU."""
    for tensor in (*cache.keys, *cache.values):
        row = torch.randn(tensor.shape[0], 1, tensor.shape[2])
        tensor.copy_(30 * row.clamp(-4, 4) if tensor.dtype is torch.int8 else row)
    for scales in filter(None, cache.scales):
        for tensor in scales:
            tensor.fill_(1 / 30)


def _prompt_step(runner: Any, number: int, length: int) -> Step:
    def step() -> None:
        for _ in range(number):
            runner.admit(_request(length, 1))
        while runner.scheduler.sequences:
            runner.step(_ignore)

    return step


def _operators(step: Step) -> int:
    with torch.profiler.profile() as profile:
        step()
    return sum(event.count for event in profile.key_averages())


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
