"""Blocks of GGUF files, kept as they are, against other weights: one layer, all kinds alternating in one process.

    python benchmarks/k_quants.py [--rounds 10] [--copies 24] [--rows 1,4,16,64,210] [--isa avx2] [--only Q5_0,Q8_0]

Copies of the weights are read in turn, so that they come from memory as in a model. Times are milliseconds of CPU of
one thread, the best of all rounds, which a busy machine changes little. Before that: what weights take, and what is
lost of a product of float32 rows with the numbers that the file has.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

OUTPUTS, INPUTS = 3072, 1024
_MIN_ROWS_FOR_8_BITS = 64  # as `Int8Linear` has it; fewer rounds are enough then


@dataclass(frozen=True, slots=True)
class Way:
    make: Callable[[], Any]
    of_file: Any | None = None  # the numbers that it should multiply with


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--copies", type=int, default=24)
    parser.add_argument("--rows", default="1,4,16,64,210")
    parser.add_argument("--isa", default=None, help="hold the kernels to a lower level, avx2 for example")
    parser.add_argument("--only", default="", help="weights whose names begin so, separated by commas")
    options = parser.parse_args()

    import torch

    from tis.engine.kernels.native import NativeKernels, native_kernels

    torch.set_num_threads(1)
    kernels = native_kernels()
    if kernels is None:
        sys.exit("the native kernels are not here")
    ways = ways_of(NativeKernels(kernels.library, options.isa) if options.isa else kernels)
    ways = {name: way for name, way in ways.items() if name.startswith(tuple(options.only.split(",")))}
    print_sizes(ways)
    print_times(ways, options.copies, options.rounds, [int(one) for one in options.rows.split(",")])


def ways_of(kernels: Any) -> Mapping[str, Way]:
    import torch
    from gguf import GGMLQuantizationType as Kind

    from tests.engine.gguf_files import quantised
    from tis.engine.kernels.gguf_blocks import BlockRows, GgufKernels
    from tis.engine.kernels.grouped_product import product_of
    from tis.engine.kernels.int8_spans import Int6Product
    from tis.engine.kernels.integer_product import Int8Product
    from tis.engine.kernels.product import NativeProduct, takes_products
    from tis.engine.weights.block_tensor import BlockTensor

    torch.manual_seed(0)
    weight = torch.randn(OUTPUTS, INPUTS) * 0.05

    def in_file(*kinds: Kind) -> Any:
        some = weight.split(OUTPUTS // len(kinds))
        raw = [torch.from_numpy(quantised(one.numpy(), kind)) for kind, one in zip(kinds, some, strict=True)]
        native = GgufKernels(kernels)
        parts = [BlockRows(one, int(kind), native) for kind, one in zip(kinds, raw, strict=True)]
        return BlockTensor(parts, torch.float32)

    def kept(*kinds: Kind, bits: Any = 8) -> Way:
        tensor = in_file(*kinds)
        return Way(lambda: product_of(tensor, None, kernels, bits), tensor.numbers())

    q6, q5 = in_file(Kind.Q6_K), in_file(Kind.Q5_0)
    ways = {
        "Q6_K, a scale for each output (before)": Way(lambda: Int8Product(q6, None, kernels), q6.numbers()),
        "Q6_K": kept(Kind.Q6_K),
        "Q5_K": kept(Kind.Q5_K),
        "Q4_K beside Q6_K": kept(Kind.Q4_K, Kind.Q6_K),
        "Q5_0, a scale for each output (before)": Way(lambda: Int8Product(q5, None, kernels), q5.numbers()),
        "Q5_0": kept(Kind.Q5_0),
        "Q5_1": kept(Kind.Q5_1),
        "Q5_0 beside Q8_0": kept(Kind.Q5_0, Kind.Q8_0),
        "Q8_0": kept(Kind.Q8_0),
        "Q4_K, 4 bits": kept(Kind.Q4_K, bits=4),
        "6 bits, groups of 128": Way(lambda: Int6Product(weight, None, kernels)),
    }
    if takes_products(kernels, torch.bfloat16):
        ways = {"bfloat16": Way(lambda: NativeProduct(weight.bfloat16(), None, kernels))} | ways
    return ways


def print_sizes(ways: Mapping[str, Way]) -> None:
    import torch

    x = torch.randn(64, INPUTS)
    print("| weights | bits | a product loses |\n|---|---|---|")
    for name, way in ways.items():
        if way.of_file is None:
            continue
        product, exact = way.make(), x.double() @ way.of_file.double().T
        lost = float((product(x).double() - exact).norm() / exact.norm())
        bits = 8 * sum(one.nbytes for one in product.tensors) / (OUTPUTS * INPUTS)
        print(f"| {name} | {bits:.2f} | {100 * lost:.4f} % |")


def print_times(ways: Mapping[str, Way], copies: int, rounds: int, rows: list[int]) -> None:
    import torch

    products = {name: [way.make() for _ in range(copies)] for name, way in ways.items()}
    shown: dict[str, list[str]] = {name: [] for name in ways}
    for count in rows:
        is_many = count >= _MIN_ROWS_FOR_8_BITS
        x = torch.randn(count, INPUTS).to(torch.bfloat16)
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(max(3, rounds // 3) if is_many else rounds):
            for name, some in products.items():
                more = {"bits": 8} if is_many and hasattr(some[0], "tensors") else {}
                began = time.thread_time()
                for product in some:
                    product(x, **more)
                best[name] = min(best[name], (time.thread_time() - began) / copies * 1000)
        for name, ms in best.items():
            shown[name].append(f"{ms:.3f}")
    print(f"\n| rows | {' | '.join(map(str, rows))} |\n|---|{'---|' * len(rows)}")
    for name, times in shown.items():
        print(f"| {name} | {' | '.join(times)} |")


if __name__ == "__main__":
    main()
