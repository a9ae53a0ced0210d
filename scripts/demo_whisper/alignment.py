"""Which heads of the decoder look where a word is spoken, and the times of words that follow from them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch import Tensor
from transformers.models.whisper.generation_whisper import _dynamic_time_warping, _median_filter

from scripts.demo_whisper.folder import DemoWhisper
from scripts.demo_whisper.sentences import SAMPLE_RATE, Spoken

Head = tuple[int, int]  # layer, number
_MAX_HEADS = 2
_NEAR_SECONDS = 0.1
_MAX_LATE = 0.02  # of all words
_WORTH = 0.9  # of the best head's share


@dataclass(frozen=True)
class Looks:
    """Where each head looked while it wrote each token of a sentence, and the end."""

    weights: Tensor  # (layers, heads, tokens + 1, positions)
    word_starts: tuple[int, ...]  # numbers of the tokens that begin a word
    spoken: Spoken


def looks(demo: DemoWhisper, spoken: Spoken) -> Looks:
    """The model must compute its attention in the `eager` way, which alone gives the weights."""
    tokenizer = demo.tokenizer
    ids: list[int] = []
    starts: list[int] = []
    for word in spoken.sentence.text.split():
        starts.append(len(ids))
        ids += tokenizer.encode(f" {word}", add_special_tokens=False)
    prefix = ("<|startoftranscript|>", f"<|{spoken.sentence.language}|>", "<|transcribe|>", "<|notimestamps|>")
    tokens = [*tokenizer.convert_tokens_to_ids(list(prefix)), *ids]
    features = demo.extractor(spoken.samples, sampling_rate=SAMPLE_RATE, return_tensors="pt").input_features
    with torch.inference_mode():
        made = demo.model(
            input_features=features, decoder_input_ids=torch.tensor([tokens]), output_attentions=True, use_cache=False
        )
    positions = round(len(spoken.samples) / SAMPLE_RATE * 50)
    weights = torch.stack([layer[0, :, len(prefix) - 1 :, :positions] for layer in made.cross_attentions])
    return Looks(weights, tuple(starts), spoken)


def alignment_heads(demo: DemoWhisper, spoken: Sequence[Spoken]) -> dict[Head, float]:
    """Of the last layer, the heads whose look is nearest to the beginning of most words, with their share of words."""
    layer = demo.model.config.decoder_layers - 1
    near = numpy.zeros(demo.model.config.decoder_attention_heads)
    words = 0
    for one in spoken:
        seen = looks(demo, one)
        peaks = seen.weights[layer][:, list(seen.word_starts)].argmax(-1).numpy() / 50
        starts, ends = (numpy.array([getattr(time, side) for time in one.words]) for side in ("start", "end"))
        near += ((peaks >= starts - _NEAR_SECONDS) & (peaks <= ends + _NEAR_SECONDS)).sum(1)
        words += len(starts)
    shares = {(layer, int(head)): float(near[head] / words) for head in near.argsort()[::-1]}
    best = max(shares.values())
    return {head: share for head, share in list(shares.items())[:_MAX_HEADS] if share >= _WORTH * best}


def word_starts(demo: DemoWhisper, spoken: Spoken) -> list[float]:
    """In seconds, by Whisper's own way: a path through the looks of the alignment heads, in the order of the tokens."""
    seen = looks(demo, spoken)
    weights = torch.stack([seen.weights[layer, head] for layer, head in demo.model.generation_config.alignment_heads])
    weights = (weights - weights.mean(-2, keepdim=True)) / weights.std(-2, keepdim=True, unbiased=False)
    matrix = _median_filter(weights[None], demo.model.config.median_filter_width)[0].mean(0)
    tokens, times = _dynamic_time_warping(-matrix.double().numpy())
    begins = numpy.pad(numpy.diff(tokens), (1, 0), constant_values=1).astype(bool)
    return [float(times[begins][number]) / 50 for number in seen.word_starts]


def late_words(demo: DemoWhisper, spoken: Sequence[Spoken], max_seconds: float) -> list[str]:
    """Words whose found beginning is further from the spoken one, where they are more than a few."""
    late: list[str] = []
    num_words = 0
    for one in spoken:
        words = re.findall(r"\S+", one.sentence.text)
        num_words += len(words)
        for word, found, time in zip(words, word_starts(demo, one), one.words, strict=True):
            if abs(found - time.start) > max_seconds:
                late.append(f"{one.sentence.name} {word}: {found:.2f} s, spoken at {time.start:.2f} s")
    return late if len(late) > _MAX_LATE * num_words else []


def eager(demo: DemoWhisper) -> Any:
    demo.model.set_attn_implementation("eager")
    return demo
