"""What a model thinks of texts, and how far another with rounded weights thinks otherwise."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Text:
    ids: Sequence[int]
    begin: int = 1  # the tokens from here on are counted; those before are read


@dataclass(frozen=True, slots=True)
class Agreement:
    perplexity: float
    same: float  # share of tokens where the likeliest is that of the exact model
    divergence: float  # of Kullback and Leibler, nats for each token

    def cells(self) -> str:
        return f"{self.perplexity:.4f} | {self.same:.2%} | {self.divergence:.1e}"


def readings(model: Any, texts: Sequence[Text], compute: "Callable[[Any, Sequence[int]], Any] | None" = None) -> Any:
    """The logits [tokens, vocabulary] for the tokens that are counted, of each text."""
    import torch

    with torch.inference_mode():
        return [(compute or at_once)(model, text.ids)[text.begin - 1 : -1] for text in texts]


def agreement(texts: Sequence[Text], logits: Sequence[Any], exact: Sequence[Any]) -> Agreement:
    import torch

    loss, divergence, same, count = 0.0, 0.0, 0, 0
    for text, ours, theirs in zip(texts, logits, exact, strict=True):
        expected = torch.tensor(text.ids[text.begin :])
        loss += float(torch.nn.functional.cross_entropy(ours, expected, reduction="sum"))
        same += int((ours.argmax(-1) == theirs.argmax(-1)).sum())
        count += len(expected)
        true = theirs.log_softmax(-1)
        divergence += float((true.exp() * (true - ours.log_softmax(-1))).sum())
    return Agreement(math.exp(loss / count), same / count, divergence / count)


def at_once(model: Any, ids: Sequence[int]) -> Any:
    import torch

    return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float()


def one_by_one(model: Any, ids: Sequence[int]) -> Any:
    import torch
    from transformers import DynamicCache

    cache, rows = DynamicCache(), []
    for position, token in enumerate(ids):
        out = model(
            input_ids=torch.tensor([[token]]),
            position_ids=torch.tensor([[position]]),
            past_key_values=cache,
            use_cache=True,
        )
        rows.append(out.logits[0, -1].float())
    return torch.stack(rows)
