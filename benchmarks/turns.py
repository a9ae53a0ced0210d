"""What turns change, as for a model that cannot be batched: 8 clients token by token, against one after the other.

    python benchmarks/turns.py [--family mamba2|mamba|bamba] [--clients 8] [--tokens 64] [--prompt 210] [--rounds 3]

The model has random weights. The first client wants four times as many tokens as the others. "One after the other" is
`model.generate()` of the same weights with the same prompts. Both are measured in each round, in turn, in this process.
With one thread, seconds are those of the CPU, so that others on the machine do not count.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import transformers  # noqa: E402

from tis.engine.batching.stepped_model import SteppedModel  # noqa: E402
from tis.engine.batching.turn_runner import TurnRunner  # noqa: E402
from tis.engine.prepared_request import PreparedRequest  # noqa: E402
from tis.engine.request import Request  # noqa: E402
from tis.engine.runner import Runner  # noqa: E402
from tis.engine.sampling.params import SamplingParams  # noqa: E402
from tis.engine.text.hf_tokenizer import HfTokenizer  # noqa: E402

_SIZES: dict[str, Any] = {"vocab_size": 8192, "hidden_size": 512, "num_hidden_layers": 12}
_CONFIGS: dict[str, Any] = {
    "mamba": lambda: transformers.MambaConfig(**_SIZES),
    "mamba2": lambda: transformers.Mamba2Config(**_SIZES, num_heads=16, head_dim=64, state_size=64, n_groups=1),
    "bamba": lambda: transformers.BambaConfig(
        **_SIZES, intermediate_size=1024, num_attention_heads=8, num_key_value_heads=4, attn_layer_indices=[3, 7, 11],
        mamba_n_heads=16, mamba_d_head=64, mamba_d_state=64,
    ),
}  # fmt: skip


_clock = time.perf_counter


def main() -> None:
    global _clock
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=[*_CONFIGS], default="mamba2")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--prompt", type=int, default=210)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="1 on a machine that others use")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    _clock = time.process_time if options.threads == 1 else time.perf_counter
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(_CONFIGS[options.family]()).eval()
    plain = transformers.AutoTokenizer.from_pretrained(ROOT / "models" / "demo")
    tokenizer = HfTokenizer(plain, [], _SIZES["vocab_size"])
    runner = TurnRunner(SteppedModel(model), tokenizer, 2**30, step_seconds=0.25)
    shares: list[tuple[float, ...]] = []
    for number in range(options.rounds):
        generator = torch.Generator().manual_seed(number)
        prompts = torch.randint(3, 2000, (options.clients, options.prompt), generator=generator).tolist()
        lengths = [options.tokens * (1 if client else 4) for client in range(options.clients)]
        one_by_one = _one_by_one(model, prompts, lengths)
        in_turns = _in_turns(runner, tokenizer, prompts, lengths)
        shares.append(tuple(ours / theirs for ours, theirs in zip(in_turns, one_by_one, strict=True)))
        for name, (first, last_first, short, whole) in (("one by one", one_by_one), ("in turns", in_turns)):
            print(
                f"round {number + 1}, {name}: first token {first:.2f} s (median), {last_first:.2f} s (last client); a "
                f"short answer {short:.2f} s (median); {sum(lengths) / whole:.1f} tok/s",
                flush=True,
            )
    medians = [statistics.median(one) for one in zip(*shares, strict=True)]
    print(
        "in turns / one by one: first token {:.2f}, of the last {:.2f}, short answer {:.2f}, all {:.2f}".format(
            *medians
        )
    )


def _one_by_one(model: Any, prompts: Sequence[Sequence[int]], lengths: Sequence[int]) -> tuple[float, ...]:
    began, firsts, ends = _clock(), [], []
    for prompt, length in zip(prompts, lengths, strict=True):
        row, times = torch.tensor([prompt]), _Times()
        config = transformers.GenerationConfig(min_new_tokens=length, max_new_tokens=length, pad_token_id=0)
        with torch.inference_mode():
            model.generate(row, attention_mask=torch.ones_like(row), generation_config=config, streamer=times)
        firsts.append(times.first - began)
        ends.append(_clock() - began)
    return statistics.median(firsts), max(firsts), statistics.median(ends[1:]), max(ends)


class _Times(transformers.generation.BaseStreamer):  # type: ignore[misc]
    def __init__(self) -> None:
        self.first = 0.0
        self._num_puts = 0

    def put(self, value: Any) -> None:
        self._num_puts += 1
        if self._num_puts == 2:  # the first one is the prompt
            self.first = _clock()

    def end(self) -> None:
        pass


def _in_turns(
    runner: Runner, tokenizer: HfTokenizer, prompts: Sequence[list[int]], lengths: Sequence[int]
) -> tuple[float, ...]:
    requests = []
    for prompt, length in zip(prompts, lengths, strict=True):
        params = SamplingParams(temperature=0.0, max_tokens=length, ignore_eos=True)
        requests.append(Request(PreparedRequest("m", "r", tokenizer, prompt, params, 1)))
    firsts: dict[Request, float] = {}
    ends: dict[Request, float] = {}
    began = _clock()

    def hand_out(deliveries: Any) -> None:
        for request, piece in deliveries:
            firsts.setdefault(request, _clock() - began)
            if piece.finish:
                ends[request] = _clock() - began

    for request in requests:
        runner.admit(request)
    while runner.running:
        runner.step(hand_out)
    short = statistics.median(ends[request] for request in requests[1:])
    return statistics.median(firsts.values()), max(firsts.values()), short, max(ends.values())


if __name__ == "__main__":
    main()
