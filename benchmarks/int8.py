"""int8 and int4 against the full weights: steps of the engine, alternating in one process; memory and its peak.

    python benchmarks/int8.py [--rounds 12] [--layers 28] [--threads 1] [--memory] [--bytes]

A random Qwen3 (hidden 1024, 16 and 8 heads of 128, intermediate 3072, 151,936 tokens), bfloat16 where the CPU computes
in it. A step is all of it: attention over the paged cache, products, the head, greedy picks. With one thread the time
is that of the CPU, which a busy machine changes little; with more it is that of the clock. `--bytes` compares a step of
one row with the time in which memory gives what it reads, which is measured in turn with it.
"""

import argparse
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

NUM_KEYS = 240
_FAR, _BYTES_OF_FAR = "memory", 2**29
KINDS: dict[str, Literal["int8", "int4"] | None] = {"full": None, "int8": "int8", "int4": "int4"}
STEPS = (("decode, 1 row", 1, 1), ("decode, 4 rows", 4, 1), ("decode, 16 rows", 16, 1), ("prompt of 210", 1, 210))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--threads", type=int, default=0, help="0: as many as torch takes")
    parser.add_argument("--memory", action="store_true", help="peak memory of loading, each in a process of its own")
    parser.add_argument("--bytes", action="store_true", help="steps of one row beside what memory gives")
    parser.add_argument("--load", nargs=3, metavar=("FOLDER", "KIND", "BF16"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        print_peak(*options.load)
    elif options.memory:
        print_memory(options.layers)
    else:
        import torch

        torch.set_num_threads(options.threads or torch.get_num_threads())
        (print_bytes if options.bytes else print_steps)(options.rounds, options.layers)


def print_steps(rounds: int, layers: int) -> None:
    import torch

    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    runners = {kind: _runner(kind, layers) for kind in KINDS}
    print(f"{torch.get_num_threads()} threads; ms: best, median\n")
    print("| step | full | int8 | int4 | full / int8 | full / int4 | int8 / int4 |\n|---|---|---|---|---|---|---|")
    for name, num_rows, length in STEPS:
        times: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for kind in KINDS if length == 1 else ():
            _admit(runners[kind], num_rows, NUM_KEYS)
            while not all(request.completions[0].token_ids for request in runners[kind].running):
                runners[kind].step(lambda _: None)
        for _ in range(rounds if length == 1 else max(2, rounds // 4)):
            for kind in KINDS:
                if length > 1:
                    runners[kind].drop_all()
                    _admit(runners[kind], num_rows, length)
                began = clock()
                runners[kind].step(lambda _: None)
                times[kind].append((clock() - began) * 1000)
        for runner in runners.values():
            runner.drop_all()
        shown = " | ".join(f"{min(one):.1f}, {statistics.median(one):.1f}" for one in times.values())
        full, int8, int4 = (min(times[kind]) for kind in KINDS)
        print(f"| {name} | {shown} | {full / int8:.2f} x | {full / int4:.2f} x | {int8 / int4:.2f} x |", flush=True)


def print_bytes(rounds: int, layers: int) -> None:
    """Of one row: all products of layers and head, and keys and values; of the embedding it reads one row."""
    import torch

    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    far = torch.ones(_BYTES_OF_FAR // 8, dtype=torch.int64)  # many times the far cache
    runners, read = {}, {}
    for kind in KINDS:
        model = _model(layers)
        runners[kind] = _runner_of(model, kind)
        read[kind] = _bytes_of_step(model)
        _admit(runners[kind], 1, NUM_KEYS)
        while not runners[kind].running[0].completions[0].token_ids:
            runners[kind].step(lambda _: None)
    times: dict[str, list[float]] = {kind: [] for kind in (_FAR, *KINDS)}
    for _ in range(rounds):
        for kind, some in times.items():
            began = clock()
            if kind == _FAR:
                far.sum()
            else:
                runners[kind].step(lambda _: None)
            some.append((clock() - began) * 1000)
    best, median = ({kind: of(some) for kind, some in times.items()} for of in (min, statistics.median))
    rate, usual = (far.nbytes / one[_FAR] / 1e6 for one in (best, median))
    print(f"{torch.get_num_threads()} threads; memory gives {rate:.1f} GB/s (median {usual:.1f})\n")
    print("| weights | MB of layers | of the head | of keys and values | ms by bytes | ms of a step: best, median |")
    print("|---|---|---|---|---|---|")
    for kind, parts in read.items():
        shown = " | ".join(f"{one / 1e6:.0f}" for one in parts)
        print(f"| {kind} | {shown} | {sum(parts) / rate / 1e6:.1f} | {best[kind]:.1f}, {median[kind]:.1f} |")


def _bytes_of_step(model: Any) -> tuple[int, int, int]:
    """Of layers, head, and keys and values of 16 bits."""
    import torch

    from tis.engine.weights.packed import weight_bytes_of

    config, embedding, head = model.config, model.get_input_embeddings(), model.lm_head.num_bytes
    beside = int(embedding.weight.nbytes) if isinstance(embedding, torch.nn.Embedding) else embedding.num_bytes
    keys_and_values = 2 * 2 * NUM_KEYS * config.num_key_value_heads * config.head_dim * config.num_hidden_layers
    return weight_bytes_of(model) - head - beside, head, keys_and_values


def _admit(runner: Any, num_rows: int, num_tokens: int) -> None:
    from tis.engine.models.echo import CharacterTokenizer
    from tis.engine.prepared_request import PreparedRequest
    from tis.engine.request import Request
    from tis.engine.sampling.params import SamplingParams

    params = SamplingParams(temperature=0.0, max_tokens=128, ignore_eos=True)
    for at in range(num_rows):
        prompt = [3 + (1000 * at + 7 * n) % 9000 for n in range(num_tokens)]
        runner.admit(Request(PreparedRequest("m", f"r{at}", CharacterTokenizer(), prompt, params, at)))


def _model(layers: int) -> Any:
    import torch
    from random_model import new_model

    return new_model(torch.bfloat16, layers=layers)


def _runner(kind: str, layers: int) -> Any:
    return _runner_of(_model(layers), kind)


def _runner_of(model: Any, kind: str) -> Any:
    from tis.engine.batching.choose_runner import choose_runner
    from tis.engine.batching.limits import BatchLimits
    from tis.engine.models.echo import CharacterTokenizer

    limits = BatchLimits(cache_tokens=16_384, quantisation=KINDS[kind])
    return choose_runner(model, CharacterTokenizer(), 8192, limits).new()


def print_memory(layers: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        _model(layers).save_pretrained(folder)
        print("MiB: weights as the server counts them, and anonymous memory, without the file, which is mapped.\n")
        print("| CPU computes in | weights | counted | before | at most | after |\n|---|---|---|---|---|---|")
        for computes in ("bfloat16", "float32"):
            for kind in KINDS:
                command = [sys.executable, __file__, "--load", folder, kind, computes]
                print(f"| {computes} | {kind} | {subprocess.check_output(command, text=True).strip()} |", flush=True)


def print_peak(folder: str, kind: str, computes: str) -> None:
    import transformers

    from tis.engine.batching import choose_runner as choosing
    from tis.engine.batching.limits import BatchLimits
    from tis.engine.models.echo import CharacterTokenizer
    from tis.engine.weights import cpu_dtype
    from tis.engine.weights.packed import weight_bytes_of

    transformers.utils.logging.disable_progress_bar()
    cpu_dtype.computes_in_bfloat16 = lambda: computes == "bfloat16"  # type: ignore[assignment]
    samples = [_anonymous_mib()]
    is_done = threading.Event()

    def sample() -> None:
        while not is_done.wait(0.01):
            samples.append(_anonymous_mib())

    sampler = threading.Thread(target=sample)
    sampler.start()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()
    limits = BatchLimits(cache_tokens=512, quantisation=KINDS[kind])
    runner = choosing.choose_runner(model, CharacterTokenizer(), 8192, limits).new()
    is_done.set()
    sampler.join()
    assert runner
    counted = weight_bytes_of(model) >> 20
    print(" | ".join(str(one) for one in (counted, samples[0], max(samples), _anonymous_mib())))


def _anonymous_mib() -> int:
    [line] = [one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("RssAnon")]
    return int(line.split()[1]) // 1024


if __name__ == "__main__":
    main()
