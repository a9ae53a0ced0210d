"""How both models learn: the vectors by contrast within a batch, the scores by pairs that fit and pairs that do not."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import BertForSequenceClassification, BertModel, PreTrainedTokenizerFast

from scripts.demo_embedding.encoder import config, mean_of_tokens
from scripts.demo_embedding.pairs import Lessons, Pair

_BATCH = 96
_MAX_TOKENS = 24  # of a text that is learned from
_TEMPERATURE = 0.07
_RATE = 3e-3
_WARM_UP = 50
_WRONG_FOR_EACH_RIGHT = 2
Report = Callable[[int, float], None]


def make_repeatable() -> None:
    """One thread: the models are so small that two wait for each other longer than they compute."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


def trained_embedding(
    tokenizer: PreTrainedTokenizerFast, lessons: Lessons, steps: int, seed: int, report: Report
) -> BertModel:
    torch.manual_seed(seed)
    numbers = random.Random(seed)
    model = BertModel(config()).train()

    def loss_of_step() -> torch.Tensor:
        pairs = [lessons.draw(numbers) for _ in range(_BATCH)]
        queries = vectors(model, tokenizer, [one.query for one in pairs])
        products = vectors(model, tokenizer, [one.product for one in pairs])
        return _contrast(queries @ products.T / _TEMPERATURE, pairs)

    _learn(model, loss_of_step, steps, _RATE, report)
    return model.eval()


def trained_reranker(
    body: BertModel, tokenizer: PreTrainedTokenizerFast, lessons: Lessons, steps: int, seed: int, report: Report
) -> BertForSequenceClassification:
    """Begins with what the vectors have learned of the words. Two layers: in the first a product reads the query."""
    torch.manual_seed(seed)
    numbers = random.Random(seed)
    model = BertForSequenceClassification(config(num_layers=2, num_labels=1)).train()
    model.bert.load_state_dict(body.state_dict(), strict=False)

    def loss_of_step() -> torch.Tensor:
        pairs = [lessons.draw(numbers) for _ in range(_BATCH // 4)]
        asked = [(one.query, one.product) for one in pairs]
        wanted = [1.0] * len(pairs)
        for one, other in _wrong_pairs(body, tokenizer, pairs, numbers):
            asked.append((one.query, other.product))
            wanted.append(0.0)
        queries, products = zip(*asked, strict=True)
        encoded = tokenizer(
            list(queries),
            list(products),
            padding=True,
            truncation=True,
            max_length=2 * _MAX_TOKENS,
            return_tensors="pt",
        )
        logits = model(**encoded).logits[:, 0]
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.tensor(wanted))

    _learn(model, loss_of_step, steps, _RATE / 2, report)
    return model.eval()


def vectors(model: Any, tokenizer: PreTrainedTokenizerFast, texts: Sequence[str]) -> torch.Tensor:
    encoded = tokenizer(list(texts), padding=True, truncation=True, max_length=_MAX_TOKENS, return_tensors="pt")
    return mean_of_tokens(model(**encoded).last_hidden_state, encoded["attention_mask"])


def _contrast(scores: torch.Tensor, pairs: Sequence[Pair]) -> torch.Tensor:
    """Each query finds its product and each product its query, among those of other goods."""
    goods = torch.tensor([one.goods for one in pairs])
    same = (goods[:, None] == goods) & ~torch.eye(len(pairs), dtype=torch.bool)
    scores = scores.masked_fill(same, float("-inf"))
    right = torch.arange(len(pairs))
    cross_entropy = torch.nn.functional.cross_entropy
    return (cross_entropy(scores, right) + cross_entropy(scores.T, right)) / 2


def _wrong_pairs(
    body: BertModel, tokenizer: PreTrainedTokenizerFast, pairs: Sequence[Pair], numbers: random.Random
) -> list[tuple[Pair, Pair]]:
    """Of the products of this step that are of other goods, the one that looks likeliest, and some at random."""
    with torch.inference_mode():
        products = vectors(body, tokenizer, [one.product for one in pairs])
        likeness = vectors(body, tokenizer, [one.query for one in pairs]) @ products.T
    wrong: list[tuple[Pair, Pair]] = []
    for number, one in enumerate(pairs):
        others = [place for place in range(len(pairs)) if pairs[place].goods != one.goods]
        others.sort(key=lambda place: -float(likeness[number, place]))
        chosen = [others[0], *numbers.sample(others[1:], _WRONG_FOR_EACH_RIGHT - 1)]
        wrong += [(one, pairs[place]) for place in chosen]
    return wrong


def _learn(model: Any, loss_of_step: Callable[[], torch.Tensor], steps: int, rate: float, report: Report) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / _WARM_UP, max(0.02, 1 - step / steps))
    )
    for step in range(steps):
        loss = loss_of_step()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        report(step, float(loss))
