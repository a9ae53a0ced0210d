"""A Qwen3 that learns the documents of this repository, so that perplexity means something where no model can be had.

It has the demo model's tokenizer, and sizes that llama.cpp's formats take (multiples of 256). A few minutes on two
cores are some rounds through the documents: it knows those that it has read better than those that were held back.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from random_model import copy_tokenizer, demo_tokenizer

ROOT = Path(__file__).resolve().parent.parent
WINDOW = 256  # tokens that the model reads at once
_WINDOWS_PER_STEP = 8
_ONE_OF = 12  # so many documents is held back
_MUON_RATE, _ADAM_RATE = 2e-2, 3e-3
_WARMUP_STEPS = 10


@dataclass(frozen=True, slots=True)
class TextModelSize:
    hidden: int = 256
    layers: int = 6
    inner: int = 768

    def config(self) -> Any:
        import transformers

        return transformers.Qwen3Config(
            vocab_size=2048,
            hidden_size=self.hidden,
            intermediate_size=self.inner,
            num_hidden_layers=self.layers,
            num_attention_heads=self.hidden // 64,
            num_key_value_heads=self.hidden // 128,
            head_dim=64,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
        )


def documents() -> tuple[str, str]:
    """What is learned, and what is held back."""
    paths = sorted(path for pattern in ("*.md", "docs/**/*.md", "benchmarks/*.md") for path in ROOT.glob(pattern))
    parts: tuple[list[str], list[str]] = ([], [])
    for number, path in enumerate(paths):
        parts[number % _ONE_OF == _ONE_OF // 2].append(path.read_text(encoding="utf-8"))
    return "\n\n".join(parts[0]), "\n\n".join(parts[1])


def windows(text: str, at_most: int | None = None) -> list[list[int]]:
    """Token ids; spread over the whole text where not all are wanted."""
    ids = demo_tokenizer().encode(text).ids
    all_of_them = [ids[begin : begin + WINDOW] for begin in range(0, len(ids) - WINDOW + 1, WINDOW)]
    step = 1 if at_most is None else max(1, len(all_of_them) // at_most)
    return all_of_them[::step][:at_most]


def build_text_model(folder: Path, size: TextModelSize, minutes: float) -> None:
    """Saves it in bfloat16, as models are published. No minutes: its weights are random."""
    if (folder / "model.safetensors").exists():
        return
    import torch
    import transformers

    torch.manual_seed(0)
    model = transformers.Qwen3ForCausalLM(size.config())
    num_parameters = sum(one.numel() for one in model.parameters())
    print(f"training {num_parameters / 1e6:.1f} million parameters for {minutes:g} minutes into {folder}", flush=True)
    learned, _ = documents()
    _train(model.train(), windows(learned), minutes * 60)
    model.eval().to(torch.bfloat16).save_pretrained(folder)
    copy_tokenizer(folder)


def _train(model: Any, learned: Sequence[list[int]], seconds: float) -> None:
    import torch
    from torch.nn.functional import cross_entropy

    from scripts.demo_model.muon import Muon

    named = list(model.named_parameters())
    matrices = Muon(value for name, value in named if value.ndim == 2 and "embed" not in name)
    others = torch.optim.AdamW([value for name, value in named if value.ndim != 2 or "embed" in name], weight_decay=0.0)
    began = reported = time.monotonic()
    for step, ids in enumerate(_batches(learned)):
        elapsed = time.monotonic() - began
        if elapsed >= seconds:
            break
        logits = model(input_ids=ids[:, :-1], use_cache=False).logits
        loss = cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        factor = min(1.0, (step + 1) / _WARMUP_STEPS) * (0.02 + 0.98 * (1 + math.cos(math.pi * elapsed / seconds)) / 2)
        matrices.step(_MUON_RATE * factor)
        others.param_groups[0]["lr"] = _ADAM_RATE * factor
        others.step()
        model.zero_grad()
        if time.monotonic() - reported > 20:
            reported = time.monotonic()
            rounds = step * _WINDOWS_PER_STEP / len(learned)
            print(f"  {elapsed:.0f} s, step {step}, {rounds:.1f} rounds, loss {loss.item():.3f}", flush=True)


def _batches(learned: Sequence[list[int]]) -> Iterator[Any]:
    import torch

    every = torch.tensor(learned)
    while True:
        order = torch.randperm(len(every))
        for begin in range(0, len(every) - _WINDOWS_PER_STEP + 1, _WINDOWS_PER_STEP):
            yield every[order[begin : begin + _WINDOWS_PER_STEP]]
