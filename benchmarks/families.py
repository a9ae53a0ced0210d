"""How fast models of other families are in the batch, against one request at a time through `generate()`.

    python benchmarks/families.py [--families Qwen3-30B-A3B,OLMoE-1B-7B] [--rounds 3] [--clients 8] [--steps 1,8,16]
        [--dtype float32] [--layers 2] [--cpu-time]

Random weights in bfloat16, with the shapes of real models but fewer layers, and as much smaller a vocabulary, so that
the head has its share. The last layer computes all rows of a prompt, as the others do: it would be too large a part of
what is saved. A round computes, in turn, one request by `generate()` and one of each client in a batch, with
KERNELS=off and KERNELS=auto; then some steps of the batches alone. Shown are medians of the rounds. The models share
the weights that they do not pack: the experts are in memory twice. A CPU that does not multiply in bfloat16 needs
`--dtype float32`: `generate()` would be many times slower there than what it is compared with.
"""

import argparse
import copy
import gc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import transformers  # noqa: E402
from compare import machine  # noqa: E402
from decode_step import NumbersOnly  # noqa: E402

from tis.engine.batching.batch_runner import BatchRunner  # noqa: E402
from tis.engine.batching.choose_runner import choose_runner  # noqa: E402
from tis.engine.batching.fused_layers import FusedFront, FusedLayers  # noqa: E402
from tis.engine.batching.limits import BatchLimits  # noqa: E402
from tis.engine.prepared_request import PreparedRequest  # noqa: E402
from tis.engine.request import Request  # noqa: E402
from tis.engine.sampling.params import SamplingParams  # noqa: E402

_STEPS_PER_ROUND = 3
KERNELS = ("off", "auto")


@dataclass(frozen=True, slots=True)
class CutShape:
    kind: str  # the name of the config class without "Config"
    layers: int  # that are computed
    of_layers: int  # that the real model has
    vocabulary: int
    sizes: dict[str, Any] = field(default_factory=dict)


SHAPES = {
    "Qwen3-30B-A3B": CutShape(
        "Qwen3Moe", 4, 48, 151_936,
        {"hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
         "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": True},
    ),
    "Mixtral-8x7B": CutShape(
        "Mixtral", 1, 32, 32_000,
        {"hidden_size": 4096, "intermediate_size": 14_336, "num_attention_heads": 32, "num_key_value_heads": 8},
    ),
    "OLMoE-1B-7B": CutShape(
        "Olmoe", 4, 16, 50_304,
        {"hidden_size": 2048, "intermediate_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 16,
         "num_experts": 64, "num_experts_per_tok": 8},
    ),
    "ERNIE-4.5-21B-A3B": CutShape(
        "Ernie4_5_Moe", 3, 28, 103_424,
        {"hidden_size": 2560, "intermediate_size": 12_288, "num_attention_heads": 20, "num_key_value_heads": 4,
         "moe_num_experts": 64, "moe_k": 6, "moe_intermediate_size": 1536, "moe_num_shared_experts": 2,
         "moe_layer_start_index": 1},
    ),
    "gpt-oss-20b": CutShape(
        "GptOss", 4, 24, 201_088,
        {"hidden_size": 2880, "intermediate_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8,
         "head_dim": 64, "num_local_experts": 32, "num_experts_per_tok": 4},
    ),
    "Qwen3-Next": CutShape(
        "Qwen3Next", 4, 48, 151_936,
        {"hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "num_experts": 64,
         "num_experts_per_tok": 10, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512},
    ),
    "LFM2-1.2B": CutShape(
        "Lfm2", 8, 16, 65_536,
        {"hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 8, "block_ff_dim": 12_288,
         "full_attn_idxs": [2, 5, 7]},
    ),
    "DeepSeek-V2-Lite": CutShape(
        "DeepseekV2", 4, 27, 102_400,
        {"hidden_size": 2048, "intermediate_size": 10_944, "num_attention_heads": 16, "num_key_value_heads": 16,
         "q_lora_rank": None, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
         "n_routed_experts": 64, "num_experts_per_tok": 6, "moe_intermediate_size": 1408, "n_shared_experts": 2,
         "first_k_dense_replace": 1, "topk_method": "greedy"},
    ),
    "Gemma-3-4B": CutShape(
        "Gemma3Text", 9, 34, 262_208,
        {"hidden_size": 2560, "intermediate_size": 10_240, "num_attention_heads": 8, "num_key_value_heads": 4,
         "head_dim": 256, "sliding_window": 1024, "query_pre_attn_scalar": 256},
    ),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", type=lambda text: text.split(","), default=[*SHAPES])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--prompt-tokens", type=int, default=210)
    parser.add_argument("--max-tokens", type=int, default=32)
    parser.add_argument("--steps", type=lambda text: [int(part) for part in text.split(",")], default=[1, 8, 16])
    parser.add_argument("--layers", type=int, help="instead of the number that each shape has")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16", help="of all three models")
    parser.add_argument("--cpu-time", action="store_true", help="of all threads, for a machine that is busy")
    options = parser.parse_args()
    clock = time.process_time if options.cpu_time else time.perf_counter
    print(
        f"{machine()}, {torch.get_num_threads()} threads, {options.dtype}{', CPU time' if options.cpu_time else ''}\n"
    )
    for name in options.families:
        shape = SHAPES[name]
        family = MeasuredFamily(replace(shape, layers=options.layers or shape.layers), options)
        print(f"{name}: {family.shape.layers} of {family.shape.of_layers} layers", flush=True)
        family.measure_answers(options.rounds, clock)
        family.measure_steps(options.rounds, clock)
        print(flush=True)
        del family
        gc.collect()


class MeasuredFamily:
    def __init__(self, shape: CutShape, options: argparse.Namespace) -> None:
        self.shape, self._options = shape, options
        self._seed = 0
        vocabulary = shape.vocabulary * shape.layers // shape.of_layers
        self._tokenizer = _Numbers(vocabulary)
        plain = _new_model(shape, vocabulary).to(getattr(torch, options.dtype))
        longest = options.prompt_tokens + options.max_tokens + 200
        cache_tokens = longest * max(*options.steps, options.clients)
        self._plain = plain
        self._batched: dict[str, Any] = {}
        for kernels in KERNELS:
            model = copy.deepcopy(plain, {id(one): one for one in plain.parameters()})
            limits = BatchLimits(cache_tokens=cache_tokens, prompt_lookup=False, native_kernels=kernels == "auto")
            runner = choose_runner(model, self._tokenizer, 4096, limits).new()
            if isinstance(runner, BatchRunner):
                _compute_all_rows(model)
                _fill(runner)
                self._batched[kernels] = runner

    def measure_answers(self, rounds: int, clock: Callable[[], float]) -> None:
        runners: dict[str, tuple[Any, int]] = {"generate()": (None, 1)}
        runners |= {f"batch, {kernels}": (one, self._options.clients) for kernels, one in self._batched.items()}
        speeds: dict[str, list[float]] = {name: [] for name in runners}
        for _ in range(rounds):
            for name, (runner, clients) in runners.items():
                began = clock()
                if runner is None:
                    self._generate()
                else:
                    self._answer(runner, clients)
                speeds[name].append(clients * self._options.max_tokens / (clock() - began))
        medians = {name: statistics.median(some) for name, some in speeds.items()}
        for name, speed in medians.items():
            more = "" if name == "generate()" else f", {speed / medians['generate()']:.2f} x generate()"
            clients = runners[name][1]
            print(f"  {name}, {clients} client{'s' if clients > 1 else ''}: {speed:.1f} tok/s{more}", flush=True)

    def measure_steps(self, rounds: int, clock: Callable[[], float]) -> None:
        if len(self._batched) < len(KERNELS):
            return
        for rows in self._options.steps:
            for runner in self._batched.values():
                self._begin(runner, rows)
            _print_steps(f"step of {rows}", {k: _one_step(one) for k, one in self._batched.items()}, rounds, clock)
            for runner in self._batched.values():
                runner.drop_all()
        steps = {kernels: lambda one=one: self._answer(one, 1, 1) for kernels, one in self._batched.items()}
        _print_steps(f"prompt of {self._options.prompt_tokens}", steps, rounds, clock)

    def _generate(self) -> None:
        length = self._options.max_tokens
        prompt = torch.tensor([self._request(length).prompt_ids])
        config = transformers.GenerationConfig(min_new_tokens=length, max_new_tokens=length, pad_token_id=0)
        with torch.inference_mode():
            self._plain.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=config)

    def _answer(self, runner: Any, clients: int, max_tokens: int | None = None) -> None:
        for _ in range(clients):
            runner.admit(self._request(max_tokens or self._options.max_tokens))
        while runner.running:
            runner.step(_check)

    def _begin(self, runner: Any, rows: int) -> None:
        """Sequences behind prompts that are not computed, with different last tokens: they choose different experts."""
        forward, runner._forward = runner._forward, self._pretend
        for _ in range(rows):
            runner.admit(self._request(190))
        while any(not one.is_decoding for one in runner.scheduler.sequences):
            runner.step(_check)
        runner._forward = forward

    def _pretend(self, chunks: Any) -> Any:
        num_rows = sum(chunk.samples_token for chunk in chunks)
        return torch.randn(num_rows, self._tokenizer.vocabulary_size) if num_rows else None

    def _request(self, max_tokens: int) -> Request:
        self._seed += 1
        size = (self._options.prompt_tokens,)
        highest = self._tokenizer.vocabulary_size - 10
        numbers = torch.randint(3, highest, size, generator=torch.Generator().manual_seed(self._seed))
        params = SamplingParams(temperature=0.0, max_tokens=max_tokens, ignore_eos=True)
        return Request(PreparedRequest("random", "r", self._tokenizer, numbers.tolist(), params, 1))


class _Numbers(NumbersOnly):
    def __init__(self, vocabulary: int) -> None:
        self.vocabulary_size = vocabulary
        self.eos_ids = frozenset({vocabulary - 1})


def _one_step(runner: Any) -> Callable[[], None]:
    return lambda: runner.step(_check)


def _print_steps(name: str, steps: dict[str, Callable[[], None]], rounds: int, clock: Callable[[], float]) -> None:
    times: dict[str, list[float]] = {kernels: [] for kernels in steps}
    for _ in range(rounds):
        for kernels, step in steps.items():
            for _ in range(_STEPS_PER_ROUND):
                began = clock()
                step()
                times[kernels].append(1000 * (clock() - began))
    medians = {kernels: statistics.median(some) for kernels, some in times.items()}
    shown = ", ".join(f"{kernels} {medians[kernels]:.0f} ms (best {min(times[kernels]):.0f})" for kernels in steps)
    print(f"  {name}: {shown}, {medians['off'] / medians['auto']:.2f} x", flush=True)


def _new_model(shape: CutShape, vocabulary: int) -> Any:
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    try:
        config = getattr(transformers, f"{shape.kind}Config")(
            **shape.sizes,
            vocab_size=vocabulary,
            num_hidden_layers=shape.layers,
            max_position_embeddings=4096,
            tie_word_embeddings=False,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=vocabulary - 1,
        )
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    finally:
        torch.set_default_dtype(torch.float32)
    model.generation_config = transformers.GenerationConfig(pad_token_id=0)
    return model


def _compute_all_rows(model: Any) -> None:
    for module in model.modules():
        if isinstance(module, FusedFront | FusedLayers):
            module.is_last = False


def _fill(runner: Any) -> None:
    """Untouched memory is one page of zeros, which is read from the cache of the CPU."""
    cache = runner._cache
    for tensor in (*cache.keys, *cache.values):
        tensor.copy_(torch.randn(tensor.shape[0], 1, tensor.shape[2]))
    for states in cache.states.values():
        for tensor in (states.convolved, states.recurrent):
            if tensor is not None:
                tensor.normal_()


def _check(deliveries: Any) -> None:
    for _, item in deliveries:
        if isinstance(item, Exception):
            raise item


if __name__ == "__main__":
    main()
