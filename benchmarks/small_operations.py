"""The native kernels against what torch does without them, operation by operation.

    python benchmarks/small_operations.py [--isa avx2] [--rounds 40]

One process, both sides in alternating rounds, the best of all rounds. With OMP_NUM_THREADS=1 the CPU time of the thread
is taken, which neighbours hardly change. The tensors of several layers are used in turn, so that the caches of the CPU
hold few of them. Shapes are those of a Qwen3 of 0.4 B parameters: hidden 1024, intermediate 3072, 16 query heads, 8 key
heads of 128.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention, silu

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tis.engine.kernels.build import library_path  # noqa: E402
from tis.engine.kernels.native import load_kernels  # noqa: E402

HIDDEN, INTERMEDIATE, HEADS, KEY_HEADS, SIZE = 1024, 3072, 16, 8, 128
GROUPS = HEADS // KEY_HEADS
LAYERS = 8

Step = Callable[[int], object]


def plain_rms_norm(x: Any, weight: Any, eps: float) -> Any:
    wide = x.to(torch.float32)
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)


def plain_rotary(x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


def plain_attention(query: Any, keys: Any, values: Any, runs: list[list[int]], scale: float) -> Any:
    """As the batch attends without kernels: a call for each sequence, groups folded, a mask for several tokens."""
    out = query.new_empty(query.shape[1], HEADS, SIZE)
    for begin, length, first_slot, num_before in runs:
        visible = slice(first_slot, first_slot + num_before + length)
        folded = query[:, begin : begin + length].reshape(1, KEY_HEADS, GROUPS * length, SIZE)
        mask = None
        if length > 1:
            position = torch.arange(num_before, num_before + length)[:, None]
            mask = (torch.arange(num_before + length)[None] <= position).repeat(GROUPS, 1)
        result = scaled_dot_product_attention(
            folded, keys[None, :, visible], values[None, :, visible], attn_mask=mask, scale=scale
        )
        unfolded = result.view(KEY_HEADS, GROUPS, length, SIZE).permute(2, 0, 1, 3)
        out[begin : begin + length].view(length, KEY_HEADS, GROUPS, SIZE).copy_(unfolded)
    return out


def causal_attention(query: Any, keys: Any, values: Any, runs: list[list[int]], scale: float) -> Any:
    """The fastest way of torch for a whole prompt: no mask, and the keys repeated for their groups."""
    [[begin, length, first_slot, _]] = runs
    visible = slice(first_slot, first_slot + length)
    repeated = (tensor[None, :, visible].repeat_interleave(GROUPS, 1) for tensor in (keys, values))
    return scaled_dot_product_attention(query[None, :, begin : begin + length], *repeated, is_causal=True, scale=scale)


def compare(name: str, rounds: int, ours: Step, *plain: Step) -> None:
    best = [float("inf")] * (1 + len(plain))
    now = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    for step in (ours, *plain):
        step(0)
    for _ in range(rounds):
        for number, step in enumerate((ours, *plain)):
            began = now()
            for layer in range(LAYERS):
                step(layer)
            best[number] = min(best[number], (now() - began) / LAYERS)
    ratios = " | ".join(f"{1e6 * other:.0f} | {other / best[0]:.2f}" for other in best[1:])
    print(f"| {name} | {1e6 * best[0]:.0f} | {ratios} |")


def measure(kernels: Any, dtype: Any, rounds: int) -> None:
    print(f"\n{kernels.isa}, {dtype}, {torch.get_num_threads()} threads; microseconds\n")
    print("| operation | native | torch | ratio | torch, is_causal | ratio |\n|---|---|---|---|---|---|")
    for rows in (1, 16, 210):
        x, gate_up = torch.randn(LAYERS, rows, HIDDEN), torch.randn(LAYERS, rows, 2 * INTERMEDIATE)
        x, gate_up, weight = (tensor.to(dtype) for tensor in (x, gate_up, torch.randn(HIDDEN)))
        gate, up = gate_up.split(INTERMEDIATE, -1)
        angles = torch.randn(rows, SIZE // 2).repeat(1, 2)
        cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
        heads = torch.randn(LAYERS, rows, HEADS, SIZE).to(dtype).transpose(1, 2)
        cache = torch.randn(2, LAYERS, KEY_HEADS, 4096, SIZE).to(dtype)
        key = torch.randn(KEY_HEADS, rows, SIZE).to(dtype)
        slots = torch.randperm(4096)[:rows]

        def write(layer: int, cache: Any = cache, key: Any = key, slots: Any = slots) -> None:
            for tensor in cache[:, layer]:
                tensor.index_copy_(1, slots, key)

        compare(
            f"RMSNorm, {rows} rows",
            rounds,
            lambda i, x=x, weight=weight: kernels.rms_norm(x[i], weight, 1e-6),
            lambda i, x=x, weight=weight: plain_rms_norm(x[i], weight, 1e-6),
        )
        compare(
            f"SiLU and multiply, {rows} rows",
            rounds,
            lambda i, gate=gate, up=up: kernels.silu_mul(gate[i], up[i]),
            lambda i, gate=gate, up=up: silu(gate[i]) * up[i],
        )
        compare(
            f"rotary, {rows} rows",
            rounds,
            lambda i, x=heads, cos=cos, sin=sin: kernels.rotary_(x[i], cos, sin),
            lambda i, x=heads, cos=cos, sin=sin: plain_rotary(x[i], cos, sin),
        )
        compare(
            f"cache write, {rows} rows",
            rounds,
            lambda i, cache=cache, key=key, slots=slots: kernels.write_cache(*cache[:, i], key, key, slots),
            write,
        )
    for rows, before in ((1, 239), (1, 999), (16, 239), (16, 999)):
        runs = [[row, 1, row * 1024, before] for row in range(rows)]
        attention(kernels, dtype, rounds, f"attention, {rows} rows of {before + 1} keys", runs)
    for rows, before in ((1, 240), (16, 240)):
        runs = [[row * 4, 4, row * 1024, before] for row in range(rows)]
        attention(kernels, dtype, rounds, f"attention, {rows} runs of 4 tokens after 240", runs)
    for tokens in (64, 210, 256, 1024):
        attention(kernels, dtype, rounds, f"attention, prompt of {tokens}", [[0, tokens, 0, 0]], causal_attention)
    attention(kernels, dtype, rounds, "attention, 256 tokens after 768", [[0, 256, 0, 768]])


def attention(kernels: Any, dtype: Any, rounds: int, name: str, runs: list[list[int]], *more: Any) -> None:
    tokens = runs[-1][0] + runs[-1][1]
    query = torch.randn(tokens, HEADS, SIZE).to(dtype).transpose(0, 1)
    cache = torch.randn(2, LAYERS, KEY_HEADS, runs[-1][2] + 1024, SIZE).to(dtype)
    table = torch.tensor(runs)
    compare(
        name,
        max(3, rounds // 4),
        lambda i: kernels.attend(query, cache[0, i], cache[1, i], table, SIZE**-0.5, None, None),
        *(
            lambda i, way=way: way(query, cache[0, i], cache[1, i], runs, SIZE**-0.5)
            for way in (plain_attention, *more)
        ),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--isa", choices=["scalar", "avx2", "avx512", "avx512_bf16"])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--dtype", choices=["bfloat16", "float32"], action="append")
    options = parser.parse_args()
    with torch.inference_mode():
        for dtype in options.dtype or ["bfloat16", "float32"]:
            measure(load_kernels(library_path(), options.isa), getattr(torch, dtype), options.rounds)
