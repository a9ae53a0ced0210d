"""A Qwen3 that learns the documents of this repository, so that perplexity means something where no model can be had.

It has the demo model's tokenizer, and sizes that llama.cpp's formats take (multiples of 256). A few minutes on two
cores are some rounds through the documents: it knows those that it has read better than those that were held back.
A large one learns some windows by heart instead, in bfloat16 and with Adam.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from random_model import copy_tokenizer, demo_tokenizer

ROOT = Path(__file__).resolve().parent.parent
WINDOW = 256  # tokens that the model reads at once
_WINDOWS_PER_STEP = 8
_ONE_OF = 12  # so many documents is held back
_MUON_RATE, _ADAM_RATE = 2e-2, 3e-3
# Muon's products of a large model take longer than the model; a fast rate is not for it either.
_MANY_PARAMETERS, _SLOW_ADAM_RATE, _FEW_WINDOWS_PER_STEP = 50e6, 2e-4, 4
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


def windows(text: str, at_most: int) -> list[list[int]]:
    """Token ids."""
    ids = demo_tokenizer().encode(text).ids
    return spread([ids[begin : begin + WINDOW] for begin in range(0, len(ids) - WINDOW + 1, WINDOW)], at_most)


def spread(every: list[list[int]], at_most: int) -> list[list[int]]:
    """Some of them, from beginning to end."""
    return every[:: max(1, len(every) // at_most)][:at_most]


def build_text_model(folder: Path, size: TextModelSize, minutes: float, learned: Sequence[list[int]]) -> None:
    """Saves it in bfloat16, as models are published. No minutes: its weights are random."""
    if (folder / "model.safetensors").exists():
        return
    import torch
    import transformers

    torch.manual_seed(0)
    model = transformers.Qwen3ForCausalLM(size.config())
    num_parameters = sum(one.numel() for one in model.parameters())
    print(f"training {num_parameters / 1e6:.1f} million parameters for {minutes:g} minutes into {folder}", flush=True)
    _train(model.train(), learned, minutes * 60)
    model.eval().to(torch.bfloat16).save_pretrained(folder)
    copy_tokenizer(folder)


def _train(model: Any, learned: Sequence[list[int]], seconds: float) -> None:
    import torch
    from torch.nn.functional import cross_entropy

    is_large = sum(one.numel() for one in model.parameters()) > _MANY_PARAMETERS
    per_step = _FEW_WINDOWS_PER_STEP if is_large else _WINDOWS_PER_STEP
    step_of = _adam_of(model) if is_large else _muon_of(model)
    began = reported = time.monotonic()
    for step, ids in enumerate(_batches(learned, per_step)):
        elapsed = time.monotonic() - began
        if elapsed >= seconds:
            break
        with torch.autocast("cpu", torch.bfloat16, enabled=is_large):
            logits = model(input_ids=ids[:, :-1], use_cache=False).logits
        loss = cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        step_of(min(1.0, (step + 1) / _WARMUP_STEPS) * (0.02 + 0.98 * (1 + math.cos(math.pi * elapsed / seconds)) / 2))
        model.zero_grad()
        if time.monotonic() - reported > 20:
            reported = time.monotonic()
            rounds = step * per_step / len(learned)
            print(f"  {elapsed:.0f} s, step {step}, {rounds:.1f} rounds, loss {loss.item():.3f}", flush=True)


def _muon_of(model: Any) -> Callable[[float], None]:
    """One step of learning, at this share of the full rate."""
    import torch

    from scripts.demo_model.muon import Muon

    named = list(model.named_parameters())
    matrices = Muon(value for name, value in named if value.ndim == 2 and "embed" not in name)
    others = torch.optim.AdamW([value for name, value in named if value.ndim != 2 or "embed" in name], weight_decay=0.0)

    def step(share: float) -> None:
        matrices.step(_MUON_RATE * share)
        others.param_groups[0]["lr"] = _ADAM_RATE * share
        others.step()

    return step


def _adam_of(model: Any) -> Callable[[float], None]:
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.0, fused=True)

    def step(share: float) -> None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.param_groups[0]["lr"] = _SLOW_ADAM_RATE * share
        optimizer.step()

    return step


def _batches(learned: Sequence[list[int]], per_step: int) -> Iterator[Any]:
    import torch

    every = torch.tensor(learned)
    while True:
        order = torch.randperm(len(every))
        for begin in range(0, len(every) - per_step + 1, per_step):
            yield every[order[begin : begin + per_step]]
