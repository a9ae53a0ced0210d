"""Computes a model as `generate()` does, one forward pass at a time, with a cache of its own for each sequence.

`generate()` prepares everything (positions, masks, encoder outputs, the cache of this family) and calls `_prepared`
instead of its own loop. The loop is `OwnCache.compute`, which asks the model for its inputs as `generate()` would.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import torch
from transformers import GenerationConfig, PreTrainedConfig
from transformers.generation.utils import ALL_CACHE_NAMES
from transformers.utils import ModelOutput

from tis.engine.batching.state_pool import CacheCosts
from tis.engine.errors import LoadFailed

# A shorter piece of a text is computed token by token: a state of a convolution is as long as its kernel, and some
# families compute it wrongly from a piece that is shorter.
_SHORTEST_PIECE = 8
_PER_TOKEN = ("position_ids", "token_type_ids", "mm_token_type_ids", "moe_mm_token_type_ids")
_OF_THE_LOOP = ("generation_config", "logits_processor", "stopping_criteria", "synced_gpus", "streamer")
# Rotary embeddings whose frequencies change with the length of the text, and what they keep of the last one.
_CHANGING_ROPES = {"dynamic", "longrope"}
_KEPT_BY_ROPES = ("inv_freq", "max_seq_len_cached")
# Of the trial: lengths of its texts, and the pieces that the first one is cut into.
_LENGTHS, _PIECES = (28, 19), (9, 1, 18)
_NUM_JOINED = 12  # tokens of the first one, with which the others are computed whole or one by one
# Of the largest number of a tensor. Between 16 bits, roundings add up over the layers.
_TOLERANCES = {torch.bfloat16: 0.1, torch.float16: 0.1}
_TOLERANCE = 1e-3


class SteppedModel:
    def __init__(self, model: Any) -> None:
        """Raises LoadFailed if the model cannot be computed step by step."""
        self.model = model
        # The recommended sampling of the model is among the request's defaults; generate() must not apply it again.
        model.generation_config = GenerationConfig(
            bos_token_id=model.generation_config.bos_token_id,
            decoder_start_token_id=model.generation_config.decoder_start_token_id,
        )
        self._kept = list(_kept_by_ropes(model))
        self._values_at_first = self._read_kept()
        self.takes_turns = True  # False: a sequence may change what another one computes
        self.splits_prompts = False
        self.joins_answers = True  # False: behind a prompt, a resumed answer is something else unless token by token
        self.piece_seconds = 0.0  # what the shortest piece of a prompt takes, however few its tokens
        with torch.inference_mode():
            self.costs = self._try()

    def new_cache(self, prompt_ids: Sequence[int], inputs: Mapping[str, Any] | None = None) -> "OwnCache":
        """`inputs`: of its pictures, as `generate()` takes them."""
        return OwnCache(self, prompt_ids, inputs or {})

    @contextmanager
    def keeping(self, cache: "OwnCache") -> Iterator[None]:
        """Some families keep the state of a sequence in their modules (RecurrentGemma): it is put there and taken."""
        for (module, name), value in zip(self._kept, cache.kept or self._values_at_first, strict=True):
            setattr(module, name, value)
        yield
        cache.kept = self._read_kept()

    def _read_kept(self) -> list[Any]:
        return [getattr(module, name) for module, name in self._kept]

    def _try(self) -> CacheCosts:
        """Finds out what the modules keep, whether sequences may take turns and be cut, and what a cache takes."""
        vocabulary = self.model.config.get_text_config().vocab_size
        long, short = ([(7 * at + length) % (vocabulary - 3) + 3 for at in range(length)] for length in _LENGTHS)
        before = _plain_values(self.model)
        self.new_cache(long).compute(long)
        after = _plain_values(self.model)
        self._kept += [
            place for place, value in before.items() if place not in self._kept and after[place] is not value
        ]
        self._values_at_first = [before[place] for place in self._kept]

        continued = self.new_cache(long)
        logits = continued.compute(long)
        of_long = _sizes(continued)
        expected = continued.compute(short[:1])
        shared, other = self.new_cache(long), self.new_cache(short)
        shared.compute(long)
        other.compute(short)
        of_short = _sizes(other)
        tolerance = _TOLERANCES.get(self.model.dtype, _TOLERANCE)
        self.takes_turns = _equal(shared.compute(short[:1]), expected, tolerance)
        self.splits_prompts = self._can_split(long, logits, tolerance)
        self.joins_answers = self.splits_prompts or self._can_join(long, logits, tolerance)
        return _costs_of(of_long, of_short)

    def _can_split(self, text: list[int], logits: Any, tolerance: float) -> bool:
        if self.model.config.is_encoder_decoder or any(map(_changes_with_length, self.model.modules())):
            return False
        whole, cut = self.new_cache(text), self.new_cache(text)
        whole.compute(text)
        self.splits_prompts, at = True, 0
        try:
            for size in _PIECES:
                began = time.monotonic()
                last = cut.compute(text[at : at + size])
                float(last[0])  # CUDA computes in the background
                self.piece_seconds = time.monotonic() - began
                at += size
        except (RuntimeError, ValueError, TypeError, IndexError):  # a family that takes a prompt or a token
            return False
        # What is kept of the text is compared too: a wrong state of a layer may hardly change the logits.
        pairs = zip_longest(_tensors(whole.state), _tensors(cut.state), fillvalue=(last[:0], 0))
        return _equal(last, logits, tolerance) and all(_equal(ours[0], theirs[0], tolerance) for ours, theirs in pairs)

    def _can_join(self, text: list[int], logits: Any, tolerance: float) -> bool:
        """The scan of a state space over many tokens may be another than its step (Zamba2)."""
        if self.model.config.is_encoder_decoder:
            return True
        if any(map(_changes_with_length, self.model.modules())):
            return False
        cache = self.new_cache(text[:_NUM_JOINED])
        cache.compute(text[:_NUM_JOINED])
        for token in text[_NUM_JOINED:]:
            last = cache.compute([token])
        return _equal(last, logits, tolerance)


class OwnCache:
    """One sequence while it is computed: its tokens, and what the family keeps of them."""

    def __init__(self, stepped: SteppedModel, prompt_ids: Sequence[int], inputs: Mapping[str, Any]) -> None:
        model = stepped.model
        self.kept: list[Any] | None = None  # by the modules of the model
        self._stepped = stepped
        prompt = torch.tensor([prompt_ids], device=model.device)
        with stepped.keeping(self):
            prepared = model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                **inputs,
                generation_config=GenerationConfig(do_sample=False, pad_token_id=0, max_new_tokens=1),
                custom_generate=_prepared,
            )
        if not isinstance(prepared, _Prepared):
            raise LoadFailed(f"{type(model).__name__} has a generate() of its own, which cannot be computed in steps.")
        self._arguments = {name: value for name, value in prepared.arguments.items() if name not in _OF_THE_LOOP}
        self._num_prepared: int = prepared.ids.shape[1]  # tokens that the arguments reach to
        self._has_encoder = bool(model.config.is_encoder_decoder)
        # An encoder has read the prompt: the tokens of its decoder are a begin of its own, and the answer.
        self._num_unread = len(prompt_ids) if self._has_encoder else 0
        self._ids = prepared.ids if self._has_encoder else prepared.ids[:, :0]
        self._outputs = ModelOutput()
        self._rows: list[Any] | None = None  # of logits, where all are read
        # A resumed answer may contain tokens that would be places of a picture, or marks around it, in a prompt.
        self._num_apart = len(prompt_ids) if inputs or not stepped.joins_answers else 0

    @property
    def state(self) -> list[Any]:
        """All that is kept of the tokens so far."""
        inputs = ("encoder_outputs", "mm_encoder_outputs", *ALL_CACHE_NAMES)
        return [*(self._arguments.get(name) for name in inputs), self.kept]

    def compute_all(self, token_ids: Sequence[int]) -> Any:
        """Computes the next tokens. Returns a row of logits behind each of them."""
        self._rows = []
        self.compute(token_ids)
        rows, self._rows = torch.cat(self._rows).float(), None
        if len(rows) != len(token_ids):
            raise RuntimeError(f"{type(self._stepped.model).__name__} returns {len(rows)} logits of {len(token_ids)}")
        return rows

    def compute(self, token_ids: Sequence[int]) -> Any:
        """Computes the next tokens of the sequence, those of the prompt included. Returns the logits behind the last.

        The first time it must be the whole prompt, unless the model `splits_prompts` and there are no pictures.
        """
        if not self._outputs and 0 < self._num_apart < len(token_ids):
            self._compute(token_ids[: self._num_apart])
            token_ids = token_ids[self._num_apart :]
        return self._compute(token_ids)

    def _compute(self, token_ids: Sequence[int]) -> Any:
        size = len(token_ids)
        if self._outputs and not (self._stepped.splits_prompts and size >= _SHORTEST_PIECE):
            size = 1
        for at in range(0, len(token_ids), size):
            with self._stepped.keeping(self):
                self._forward(token_ids[at : at + size])
        return self._outputs.logits[0, -1].float()

    def _forward(self, token_ids: Sequence[int]) -> None:
        model, is_first = self._stepped.model, not self._outputs
        new = torch.tensor([token_ids[self._num_unread :]], dtype=torch.long, device=model.device)
        self._num_unread = 0
        self._ids = torch.cat([self._ids, new], 1)
        length = self._ids.shape[1]
        while self._num_prepared < length:
            self._arguments = self._updated(self._arguments)
            self._num_prepared += 1
        arguments = {
            name: value[..., :length] if name in _PER_TOKEN and value is not None else value
            for name, value in self._arguments.items()
        }
        inputs = model.prepare_inputs_for_generation(
            self._ids,
            next_sequence_length=None if is_first else new.shape[1],
            is_first_iteration=is_first,
            **arguments,
        )
        if self._rows is not None and "logits_to_keep" in inputs:
            inputs["logits_to_keep"] = 0  # all: generate() and some families ask for the last
        self._outputs = model(**inputs, return_dict=True)
        if self._rows is not None:
            self._rows.append(self._outputs.logits[0])
        self._outputs["logits"] = self._outputs.logits[
            :, -1:
        ].clone()  # of a whole prompt, where a family has no choice
        self._arguments |= self._updated({})

    def _updated(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Arguments for one more token, and the cache as the last forward pass has left it."""
        updated: dict[str, Any] = self._stepped.model._update_model_kwargs_for_generation(
            self._outputs, arguments, is_encoder_decoder=self._has_encoder
        )
        return updated


@dataclass(frozen=True, slots=True)
class _Prepared:
    ids: Any
    arguments: dict[str, Any]


def _prepared(model: Any, input_ids: Any, **arguments: Any) -> _Prepared:
    return _Prepared(input_ids, arguments)


def _changes_with_length(module: Any) -> bool:
    of_layers = getattr(module, "rope_type", None)
    return not _CHANGING_ROPES.isdisjoint(of_layers.values() if isinstance(of_layers, dict) else [of_layers])


def _kept_by_ropes(model: Any) -> Iterator[tuple[Any, str]]:
    for module in filter(_changes_with_length, model.modules()):
        yield from ((module, name) for name in [*vars(module), *module._buffers] if name.endswith(_KEPT_BY_ROPES))


def _plain_values(model: Any) -> dict[tuple[Any, str], Any]:
    return {
        (module, name): value
        for module in model.modules()
        for name, value in [*vars(module).items(), *module._buffers.items()]
        if not name.startswith("_")
    }


def _tensors(value: Any, max_tokens: int = sys.maxsize) -> Iterator[tuple[Any, int]]:
    """Yields all tensors in what a family keeps, with the number of tokens that each may reach to."""
    if isinstance(value, torch.Tensor):
        yield value, max_tokens
    elif isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(inner, max_tokens)
    elif hasattr(value, "__dict__") and not isinstance(value, PreTrainedConfig):
        window = getattr(value, "sliding_window", None)
        yield from _tensors(vars(value), window if isinstance(window, int) else max_tokens)


def _sizes(cache: OwnCache) -> list[tuple[int, int]]:
    return [(tensor.nbytes, max_tokens) for tensor, max_tokens in _tensors(cache.state)]


def _costs_of(of_long: list[tuple[int, int]], of_short: list[tuple[int, int]]) -> CacheCosts:
    num_more = _LENGTHS[0] - _LENGTHS[1]
    per_token: Counter[int] = Counter()
    for (size, max_tokens), (smaller, _) in zip(of_long, of_short, strict=False):
        per_token[max_tokens] += size - smaller
    costs = CacheCosts(0, [(size / num_more, max_tokens) for max_tokens, size in per_token.items() if size > 0])
    return replace(costs, fixed_bytes=max(0, sum(size for size, _ in of_long) - costs.of(_LENGTHS[0])))


def _equal(ours: Any, theirs: Any, tolerance: float) -> bool:
    if ours.shape != theirs.shape:
        return False
    if not theirs.numel() or not theirs.is_floating_point():
        return True
    # Equal infinities are no difference.
    difference = torch.where(ours == theirs, 0.0, (ours - theirs).abs())
    return bool((difference <= tolerance * theirs.masked_fill(theirs.isinf(), 0).abs().max()).all())
