"""Steps of a model in a GGUF file whose blocks are kept as they are, and with a scale for each output, in one process.

    python benchmarks/k_quant_steps.py [--layers 6] [--rounds 8] [--only Q5_0]

A random Qwen3 (hidden 1024, 16 and 8 heads of 128, intermediate 3072), written as Q6_K and mixed as llama.cpp mixes
Q4_K_M and Q5_K_M, but with more bits in all layers, not in half of them: so differences are larger than in a file; as
Q5_0; and as Q4_K_M of rows that are no whole super-blocks, which has Q5_0 and Q8_0.
Times are milliseconds of CPU of one thread, the best of alternating rounds. The last column is how far the logarithms
of the ten likeliest tokens are from those of Transformers with the numbers of the file, at most, in float32.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SIZES = {"hidden_size": 1024, "intermediate_size": 3072, "num_attention_heads": 16, "num_key_value_heads": 8}
STEPS = (("decode, 1 row", 1, 1), ("4 rows", 4, 1), ("16 rows", 16, 1), ("prompt of 210", 1, 210))
NUM_KEYS = 200
WITH_MORE_BITS = ("attn_v", "ffn_down", "output.weight")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--only", default="", help="files whose names begin so")
    options = parser.parse_args()

    import torch

    torch.set_num_threads(1)
    shown = " | ".join(name for name, *_ in STEPS)
    print(f"| file | weights | MiB | {shown} | logarithms differ by |\n|---|---|---|{'---|' * (len(STEPS) + 1)}")
    for name, choose in _mixes().items():
        with tempfile.TemporaryDirectory() as folder:
            if name.startswith(options.only):
                _print_file(name, choose, Path(folder) / "a.gguf", options.layers, options.rounds)


def _mixes() -> dict[str, Callable[[str], Any]]:
    from gguf import GGMLQuantizationType as Kind

    def mixed(kind: Any, more: Any = Kind.Q6_K) -> Callable[[str], Any]:
        return lambda name: more if any(part in name for part in WITH_MORE_BITS) else kind

    return {
        **{"Q6_K": mixed(Kind.Q6_K), "Q5_K_M": mixed(Kind.Q5_K), "Q4_K_M": mixed(Kind.Q4_K)},
        **{"Q5_0": mixed(Kind.Q5_0, Kind.Q5_0), "Q5_0 and Q8_0": mixed(Kind.Q5_0, Kind.Q8_0)},
    }


def _print_file(name: str, choose: Callable[[str], Any], path: Path, layers: int, rounds: int) -> None:
    import transformers

    from tests.engine.conftest import DEMO
    from tests.engine.gguf_files import tiny_model, write_gguf

    tokenizer = transformers.AutoTokenizer.from_pretrained(DEMO)
    more = {**SIZES, "head_dim": 128, "num_hidden_layers": layers, "initializer_range": 0.03}
    model = tiny_model(transformers, "Qwen3", len(tokenizer), **more)
    model.load_state_dict(write_gguf(path, model, tokenizer, choose), strict=False)
    prompt = tokenizer.encode("A sentence of the shop: how much are twelve bags of rice?")
    differences = {keeps: _difference(_load(path, "float32", keeps=keeps), model, prompt) for keeps in (True, False)}
    del model
    loaded = {keeps: _load(path, "auto", keeps=keeps) for keeps in (True, False)}
    times = _times({keeps: one.new_runner() for keeps, one in loaded.items()}, rounds)
    for keeps, of in times.items():
        weights = "as they are" if keeps else "a scale for each output"
        shown = " | ".join(f"{ms:.2f}" for ms in of)
        mib = loaded[keeps].footprint.weight_bytes / 2**20
        print(f"| {name} | {weights} | {mib:.1f} | {shown} | {differences[keeps]:.5f} |", flush=True)


def _load(path: Path, dtype: Any, *, keeps: bool) -> Any:
    from tis.engine.batching.limits import BatchLimits
    from tis.engine.kernels import grouped_product
    from tis.engine.models.loading import LoadOptions, load_model

    are_k_quants, bits_with_offsets = grouped_product.are_k_quants, grouped_product.bits_with_offsets
    if not keeps:
        grouped_product.are_k_quants = lambda matrices: False
        grouped_product.bits_with_offsets = lambda matrices: None
    try:
        limits = BatchLimits(cache_tokens=8192)
        return load_model(
            str(path), LoadOptions(device_map="cpu", dtype=dtype, batch=limits), lambda stage, share: None
        )
    finally:
        grouped_product.are_k_quants, grouped_product.bits_with_offsets = are_k_quants, bits_with_offsets


def _difference(loaded: Any, model: Any, prompt: list[int]) -> float:
    import torch

    from tests.engine.models.test_gguf_models import likeliest

    context, largest = list(prompt), 0.0
    for token, ours in likeliest(loaded, prompt, 8):
        with torch.inference_mode():
            theirs = model(input_ids=torch.tensor([context])).logits[0, -1].log_softmax(-1)
        largest = max(largest, *(abs(logprob - float(theirs[one])) for one, logprob in ours.items()))
        context.append(token)
    return largest


def _times(runners: dict[bool, Any], rounds: int) -> dict[bool, list[float]]:
    best: dict[bool, list[float]] = {keeps: [] for keeps in runners}
    for _, num_rows, length in STEPS:
        least = dict.fromkeys(runners, float("inf"))
        for runner in runners.values() if length == 1 else ():
            _admit(runner, num_rows, NUM_KEYS)
            while not all(request.completions[0].token_ids for request in runner.running):
                runner.step(lambda _: None)
        for _ in range(rounds if length == 1 else max(2, rounds // 3)):
            for keeps, runner in runners.items():
                if length > 1:
                    runner.drop_all()
                    _admit(runner, num_rows, length)
                began = time.thread_time()
                runner.step(lambda _: None)
                least[keeps] = min(least[keeps], (time.thread_time() - began) * 1000)
        for keeps, runner in runners.items():
            runner.drop_all()
            best[keeps].append(least[keeps])
    return best


def _admit(runner: Any, num_rows: int, num_tokens: int) -> None:
    from tis.engine.models.echo import CharacterTokenizer
    from tis.engine.prepared_request import PreparedRequest
    from tis.engine.request import Request
    from tis.engine.sampling.params import SamplingParams

    params = SamplingParams(temperature=0.0, max_tokens=128, ignore_eos=True)
    for at in range(num_rows):
        prompt = [3 + (1000 * at + 7 * n) % 900 for n in range(num_tokens)]
        runner.admit(Request(PreparedRequest("m", f"r{at}", CharacterTokenizer(), prompt, params, at)))


if __name__ == "__main__":
    main()
