"""A model, not a measurement: what a step of one server would take with more cores and sockets than this machine has.

    python benchmarks/more_cores.py [--cores 2,8,16,32,64] [--rows 1,16] [--prompt 512] [--keys 1000] [--rounds 5]
        [--socket-bandwidth 200] [--link-bandwidth 60] [--wait-per-core 0.06] [--wait-of-two 3]

Measured here, with the native kernels: bytes a second that one thread reads of weights, products a second of one
thread, and, on a quiet machine, how long two threads wait for each other at a barrier of `tis_layers` (else
`--wait-of-two`, in microseconds). Assumed, by flags: what the memory of
a socket and the link between two sockets give (GB/s), and by how many microseconds each further core makes a barrier
longer. From the code: how many parts threads share in each operation, and how many barriers a layer has. A step takes,
for each operation, as long as its bytes or its products do, of the cores that have a part; and then the barriers.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

BYTES = {"bfloat16": 2.0, "int8": 1.0, "int4": 4.5 / 8}
WIDTH, SPAN_KEYS, MAX_FEW_ROWS = 64, 512, 8  # outputs of a block, and kernels.h
ROWS_OF_A_PART = {"bfloat16": 6, "int8": 48, "int4": 48}  # at least
BARRIERS = {"bfloat16": 8, "int8": 10, "int4": 10}  # of a layer in decoder_layers.c
MANY_ROWS = 384


@dataclass(frozen=True, slots=True)
class ModelShape:
    name: str
    layers: int
    hidden: int
    inner: int
    heads: int
    key_heads: int
    size: int = 128
    vocabulary: int = 151_936

    def products(self) -> list[tuple[int, int]]:
        """Outputs and inputs of a layer."""
        attended = self.heads * self.size
        qkv = attended + 2 * self.key_heads * self.size
        return [(qkv, self.hidden), (self.hidden, attended), (2 * self.inner, self.hidden), (self.hidden, self.inner)]


SHAPES = (ModelShape("0.45 B", 28, 1024, 3072, 16, 8), ModelShape("8 B", 36, 4096, 12_288, 32, 8))


@dataclass(frozen=True, slots=True)
class OneThread:
    """What one thread does, and two."""

    bytes_per_second: dict[str, float]
    products_per_second: dict[str, float]
    wait_of_two: float


@dataclass(frozen=True, slots=True)
class ManyCores:
    core: OneThread
    cores: int
    sockets: int
    socket_bandwidth: float
    link_bandwidth: float
    wait_per_core: float
    placement: str = "near"  # to whoever reads it; "one": all at one socket; "in turn": interleaved

    @property
    def bandwidth(self) -> float:
        """Of the memory, for all cores together."""
        if self.sockets == 1:
            return self.socket_bandwidth
        if self.placement == "one":  # half of the readers are behind the link, and all at one memory
            return min(self.socket_bandwidth, 2 * self.link_bandwidth)
        if self.placement == "in turn":  # half of all bytes cross the link, in both directions
            return min(self.sockets * self.socket_bandwidth, 4 * self.link_bandwidth)
        return self.sockets * self.socket_bandwidth

    @property
    def wait(self) -> float:
        return 0.0 if self.cores == 1 else self.core.wait_of_two + (self.cores - 2) * self.wait_per_core

    def product(self, kind: str, outputs: int, inputs: int, rows: int) -> float:
        blocks, groups = ceil(outputs / WIDTH), max(1, rows // ROWS_OF_A_PART[kind])
        return self.operation(
            blocks * (min(groups, ceil(4 * self.cores / blocks)) if self.cores > 1 else 1),
            outputs * inputs * BYTES[kind] / self.core.bytes_per_second[kind],
            outputs * inputs * BYTES[kind],
            outputs * inputs * rows / self.core.products_per_second[kind],
        )

    def operation(self, parts: int, reading: float, num_bytes: float, computing: float) -> float:
        """`reading` and `computing`: the seconds of one thread."""
        turns = ceil(parts / self.cores) / parts  # of the whole work, what the slowest core has
        return max(turns * max(reading, computing), num_bytes / self.bandwidth)

    def attention(self, shape: ModelShape, rows: int, keys: int) -> float:
        num_bytes = 4.0 * rows * keys * shape.key_heads * shape.size
        reading = num_bytes / self.core.bytes_per_second["bfloat16"]
        return self.operation(rows * shape.key_heads * ceil(keys / SPAN_KEYS), reading, num_bytes, 0.0)

    def step(self, shape: ModelShape, kind: str, rows: int, keys: int) -> tuple[float, float]:
        """Seconds of a decode step, and the share of it that is waiting at barriers."""
        layer = sum(self.product(kind, *sizes, rows) for sizes in shape.products())
        if keys:
            layer += self.attention(shape, rows, keys)
        waiting = shape.layers * BARRIERS[kind] * self.wait
        head = self.product("int8" if kind == "int4" else kind, shape.vocabulary, shape.hidden, rows if keys else 1)
        return shape.layers * layer + waiting + head, waiting


def main() -> None:
    options = _options()
    for name, value in (("OMP_WAIT_POLICY", "PASSIVE"), ("GOMP_SPINCOUNT", "2000")):  # as `tis serve` does
        os.environ.setdefault(name, value)
    core = measured_core(options.rounds, options.wait_of_two)
    print("Measured here, of one thread: " + "; ".join(_said(core, kind) for kind in BYTES), end=". ")
    how = "measured" if options.wait_of_two is None else "assumed"
    print(f"A barrier of two threads with what it makes idle: {core.wait_of_two * 1e6:.1f} us ({how}).\n")
    print(
        f"Assumed: {options.socket_bandwidth:g} GB/s a socket, {options.link_bandwidth:g} GB/s each way between two, "
        f"{options.wait_per_core:g} us more at a barrier for each further core. **All below is a model.**"
    )
    for shape in SHAPES:
        print(f"\n{shape.name}, ms of a step (of that at barriers)\n")
        names = [f"{rows} x {options.keys} keys" for rows in options.rows] + [f"prompt of {options.prompt}"]
        print(f"| cores, sockets, where weights lie | weights | {' | '.join(names)} |")
        print("|---" * (len(names) + 2) + "|")
        for machine, named in machines(core, options):
            for kind in BYTES:
                steps = [machine.step(shape, kind, rows, options.keys) for rows in options.rows]
                steps.append(machine.step(shape, kind, options.prompt, 0))
                shown = " | ".join(f"{1000 * whole:.1f} ({1000 * waiting:.1f})" for whole, waiting in steps)
                print(f"| {named} | {kind} | {shown} |")


def machines(core: OneThread, options: argparse.Namespace) -> list[tuple[ManyCores, str]]:
    def new(cores: int, sockets: int, placement: str = "near") -> ManyCores:
        gigabytes = (options.socket_bandwidth * 1e9, options.link_bandwidth * 1e9)
        return ManyCores(core, cores, sockets, *gigabytes, options.wait_per_core * 1e-6, placement)

    found = [(new(cores, 1), f"{cores}, 1") for cores in options.cores]
    most = max(options.cores)
    for placement, said in (("one", "at one socket"), ("in turn", "in turn"), ("near", "near their reader")):
        found.append((new(most, 2, placement), f"{most}, 2, {said}"))
    return found


def measured_core(rounds: int, wait_of_two: float | None) -> OneThread:
    import torch

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        reading, computing = {}, {}
        for kind in BYTES:
            outputs, inputs, products = _products(kind)
            size = outputs * inputs * len(products)
            reading[kind] = size * BYTES[kind] / _seconds(products, 1, inputs, rounds)
            computing[kind] = size * MANY_ROWS / _seconds(products[:4], MANY_ROWS, inputs, 2) * 4 / len(products)
        wait = _wait_of_two(rounds) if wait_of_two is None else wait_of_two * 1e-6
        return OneThread(reading, computing, wait)
    finally:
        torch.set_num_threads(before)


def _products(kind: str) -> tuple[int, int, list[Callable[[Any], Any]]]:
    """More weights than any cache holds."""
    import torch

    from tis.engine.kernels.integer_product import Int4Product, Int8Product
    from tis.engine.kernels.native import native_kernels
    from tis.engine.kernels.product import NativeProduct

    kernels = native_kernels()
    if kernels is None:
        raise SystemExit("the native kernels are not built: make setup builds them")
    outputs, inputs, count = 3072, 2048, ceil(160e6 / (3072 * 2048 * BYTES[kind]))
    weight = torch.randn(outputs, inputs).bfloat16()
    made: dict[str, Any] = {"bfloat16": NativeProduct, "int8": Int8Product, "int4": Int4Product}
    products = [made[kind](weight, None, kernels) for _ in range(count)]
    if kind == "int8":
        return outputs, inputs, [lambda x, one=one: one(x, bits=8 if len(x) >= 64 else 16) for one in products]
    return outputs, inputs, products


def _seconds(products: list[Callable[[Any], Any]], rows: int, inputs: int, rounds: int) -> float:
    """CPU time of this thread, which a busy machine changes little; the best of the rounds."""
    import torch

    x, times = torch.randn(rows, inputs).bfloat16(), []
    for _ in range(rounds):
        began = time.thread_time()
        for product in products:
            product(x)
        times.append(time.thread_time() - began)
    return min(times)


def _wait_of_two(rounds: int) -> float:
    """Layers that lie in the near caches: what two threads take longer than half of what one takes, by barrier."""
    import torch
    import transformers
    from int8 import _admit

    from tis.engine.batching.choose_runner import choose_runner
    from tis.engine.batching.limits import BatchLimits
    from tis.engine.models.echo import CharacterTokenizer

    sizes = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 8, "vocab_size": 16_384}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64}
    model = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**sizes, **heads)).bfloat16().eval()
    runner = choose_runner(model, CharacterTokenizer(), 512, BatchLimits(cache_tokens=512)).new()
    [layers] = [one for one in model.get_decoder().layers if hasattr(one, "_layers")]
    times: dict[int, list[float]] = {1: [], 2: []}
    compute = layers._layers.compute_

    def timed(*arguments: Any) -> Any:
        began = time.perf_counter()
        result = compute(*arguments)
        times[torch.get_num_threads()].append(time.perf_counter() - began)
        return result

    layers._layers.compute_ = timed
    _admit(runner, 1, 32)
    for number in range(20 * rounds):
        torch.set_num_threads(1 + number % 2)
        runner.step(lambda _: None)
    one, two = (min(times[threads][1:]) for threads in (1, 2))
    return max(0.0, (two - one / 2) / (8 * BARRIERS["bfloat16"]))


def _said(core: OneThread, kind: str) -> str:
    reading, computing = core.bytes_per_second[kind] / 1e9, 2 * core.products_per_second[kind] / 1e9
    return f"{kind} {reading:.1f} GB/s at one row, {computing:.0f} GOP/s at {MANY_ROWS}"


def _options() -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=numbers, default=[1, 2, 8, 32, 64])
    parser.add_argument("--rows", type=numbers, default=[1, 16])
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--prompt", type=int, default=512, help="tokens of a step that computes a prompt")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--socket-bandwidth", type=float, default=200)
    parser.add_argument("--link-bandwidth", type=float, default=60)
    parser.add_argument("--wait-per-core", type=float, default=0.06)
    parser.add_argument("--wait-of-two", type=float)
    return parser.parse_args()


if __name__ == "__main__":
    main()
