"""The types that tensors of a GGUF file may have, by the number that ggml gives them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GgufType:
    name: str
    numbers: int  # of a block
    num_bytes: int  # of a block


F32, F16, BF16, Q8_0 = 0, 1, 30, 8
Q4_0, Q4_1, Q5_0, Q5_1 = 2, 3, 6, 7
Q4_K, Q5_K, Q6_K = 12, 13, 14
TYPES_OF_GGUF: Mapping[int, GgufType] = {
    F32: GgufType("F32", 1, 4),
    F16: GgufType("F16", 1, 2),
    BF16: GgufType("BF16", 1, 2),
    Q4_0: GgufType("Q4_0", 32, 18),
    Q4_1: GgufType("Q4_1", 32, 20),
    Q5_0: GgufType("Q5_0", 32, 22),
    Q5_1: GgufType("Q5_1", 32, 24),
    Q8_0: GgufType("Q8_0", 32, 34),
    10: GgufType("Q2_K", 256, 84),
    11: GgufType("Q3_K", 256, 110),
    Q4_K: GgufType("Q4_K", 256, 144),
    Q5_K: GgufType("Q5_K", 256, 176),
    Q6_K: GgufType("Q6_K", 256, 210),
    16: GgufType("IQ2_XXS", 256, 66),
    17: GgufType("IQ2_XS", 256, 74),
    18: GgufType("IQ3_XXS", 256, 98),
    19: GgufType("IQ1_S", 256, 50),
    20: GgufType("IQ4_NL", 32, 18),
    21: GgufType("IQ3_S", 256, 110),
    22: GgufType("IQ2_S", 256, 82),
    23: GgufType("IQ4_XS", 256, 136),
    29: GgufType("IQ1_M", 256, 56),
}
FLOAT_TYPES = frozenset({F32, F16, BF16})
FOUR_BIT_TYPES = frozenset({Q4_0, Q4_1, Q4_K})  # numbers of 4 bits with a scale and an offset for each 32
SMALL_BLOCKS = frozenset({Q4_0, Q4_1, Q5_0, Q5_1})  # 32 numbers of 4 or 5 bits with a scale, and a minimum or none
K_QUANTS = frozenset({Q4_K, Q5_K, Q6_K})  # those that a `KQuantProduct` keeps


def name_of(kind: int) -> str:
    known = TYPES_OF_GGUF.get(kind)
    return known.name if known else f"number {kind}"
