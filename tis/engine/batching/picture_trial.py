"""Tries whether a batch computes for pictures what the model's `forward` computes: two random ones, before requests do.

The towers are computed with their first layer alone, and the text part up to the last new kind of layer, so that this
takes a moment for a large model, too.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch

from tis.engine.batching.attention import NAME
from tis.engine.batching.batch import Batch, QueryRun
from tis.engine.batching.features import Features, PlacedFeatures, embed
from tis.engine.batching.kv_cache import CacheSize, PagedCache
from tis.engine.batching.positions import has_mrope, mrope_positions
from tis.engine.batching.text_attention import shape_of, text_attentions
from tis.engine.batching.tower_run import replaced_forwards
from tis.engine.batching.towers import EncodeJob, ForwardTower, Tower, inputs_for, layer_stacks
from tis.engine.batching.trial import Enough, attention_outputs, compare, tolerance_of
from tis.engine.faults import is_out_of_memory
from tis.engine.vision.vision_input import PictureSample, VisionInput
from tis.engine.weights.fused import attention_named

log = logging.getLogger("tis.engine")

_GAIN_OF_A_LAYER = 1.125  # of those that are left out: each returns something else
_MAX_STACKS = 2  # that are tried: of pictures, and of sounds
_TOLERANCE_OF_FEATURES = 0.1  # of the largest number of a row
# What every decoder takes, and what `embed` computes; anything else would have to be known.
_DECODER_ARGUMENTS = {"inputs_embeds", "attention_mask", "position_ids", "per_layer_inputs"}


def find_tower(model: Any, sample: PictureSample) -> Tower | str:
    """Returns the tower of a model, or why such pictures cannot be computed in batches. Changes nothing."""
    with torch.inference_mode():
        try:
            with _first_layers_alone(model):
                return _tried(model, sample)
        except Exception as fault:
            if is_out_of_memory(fault):
                raise
            log.debug("not every layer of its tower can be left out", exc_info=True)
        return _tried(model, sample)


def why_no_videos(model: Any, sample: PictureSample, tower: ForwardTower) -> str | None:
    """Returns why videos cannot be computed in batches by the tower of pictures."""
    found = find_tower(model, sample)
    if isinstance(found, str):
        return found
    assert isinstance(found, ForwardTower)
    return None if found.runs_like(tower) else "their tokens are computed in another way than those of pictures"


def why_no_sounds(model: Any, sample: PictureSample, tower: ForwardTower) -> str | None:
    """Gives the tower of pictures another one beside it, or returns why sounds cannot be computed in batches."""
    found = find_tower(model, sample)
    if isinstance(found, str):
        return found
    assert isinstance(found, ForwardTower)
    if found.looks_ahead != tower.looks_ahead:
        return "only their tokens, or only those of pictures, see each other"
    tower.of_sounds = found
    return None


def _tried(model: Any, sample: PictureSample) -> Tower | str:
    alone, entered = _alone(model, sample)
    if unknown := {name for name, value in entered.items() if _is_tensor(value)} - _DECODER_ARGUMENTS:
        return f"its decoder takes {', '.join(sorted(unknown))}, too"
    looks_ahead = any(map(_looks_ahead, _masks(entered.get("attention_mask"))))
    rows = {one.digest: _rows_of(one, entered["inputs_embeds"][0]) for one in sample.media.inputs}
    last = EncodeJob(sample.media.inputs[-1], 0, 1)
    [encoded] = ForwardTower(model, looks_ahead=looks_ahead).encode([last])
    tolerance = min(_TOLERANCE_OF_FEATURES, tolerance_of(model))
    if reason := compare(encoded.tokens.float(), rows[last.vision_input.digest].float(), tolerance):
        return f"a picture has other features beside another one: {reason}"
    features = {digest: Features(tokens) for digest, tokens in rows.items()} | {last.vision_input.digest: encoded}
    ours = _in_batch(model, sample, features, looks_ahead=looks_ahead)
    if reason := compare(ours, alone, tolerance_of(model)):
        return f"with pictures, {reason}"
    return _cut_if_possible(model, last, encoded, looks_ahead=looks_ahead)


def _rows_of(vision_input: VisionInput, embeddings: Any) -> Any:
    return torch.cat([embeddings[start:stop] for start, stop in vision_input.spans])


def _cut_if_possible(model: Any, job: EncodeJob, features: Features, *, looks_ahead: bool) -> Tower:
    """A tower is cut between the layers of the largest stack that computes it, if that gives the same features.

    Tried before the last layer, where most results of other layers are no longer what they were.
    """
    whole = ForwardTower(model, looks_ahead=looks_ahead)
    stacks = sorted(layer_stacks(model), key=_num_parameters, reverse=True)[:_MAX_STACKS]
    for layers, keeps_all in ((layers, keeps_all) for layers in stacks for keeps_all in (False, True)):
        tower = ForwardTower(model, looks_ahead=looks_ahead, layers=layers, keeps_all=keeps_all)
        tower_run = tower.begin(job)
        assert tower_run
        early, encoded = tower_run.advance(tower_run.num_layers - 1), tower_run.advance(1)
        if not early and encoded and torch.equal(encoded[0].tokens, features.tokens):
            return tower
    return whole


def _alone(model: Any, sample: PictureSample) -> tuple[Any, dict[str, Any]]:
    """What the attention returns for the whole prompt, and what the decoder was called with."""
    entered: dict[str, Any] = {}
    attentions = text_attentions(model)
    handle = model.get_decoder().register_forward_pre_hook(
        lambda decoder, args, kwargs: entered.update(kwargs), with_kwargs=True
    )
    arguments = inputs_for(model, sample.media.generate_kwargs())
    ids = torch.tensor([list(sample.prompt_ids)], device=model.device)
    try:
        with attention_outputs(model, attentions) as outputs, suppress(Enough):
            model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False, **arguments)
    finally:
        handle.remove()
    if not outputs or entered.get("inputs_embeds") is None:
        raise ValueError("its decoder takes no embeddings")
    return outputs[0][0], entered


def _in_batch(model: Any, sample: PictureSample, features: dict[bytes, Features], *, looks_ahead: bool) -> Any:
    """In two steps, the second of which begins within or behind the first picture."""
    ids = torch.tensor(list(sample.prompt_ids), device=model.device)
    cut = sample.media.inputs[0].spans[0][1] - (0 if looks_ahead else 1)
    attentions = text_attentions(model)
    shape = shape_of(model, attentions)
    block_size = CacheSize.of(shape, 0).block_size
    cache = PagedCache(shape, -(-len(ids) // block_size), block_size)
    positions = torch.arange(len(ids), device=model.device)[None]
    if has_mrope(model):
        of_prompt = mrope_positions(model, sample.prompt_ids, sample.media.inputs).of_prompt
        positions = of_prompt[:, None].to(model.device)
    with attention_outputs(model, attentions) as outputs, attention_named(model, NAME):
        for start, stop in ((0, cut), (cut, len(ids))):
            placed = list(_placed(sample.media.inputs, features, start, stop))
            spans = tuple(span for one in sample.media.inputs for span in one.spans) if looks_ahead else ()
            pictures = tuple((first, last) for first, last in spans if first < stop and start < last)
            batch = Batch(cache, [QueryRun(0, stop - start, 0, start, pictures)], torch.arange(start, stop))
            batch.slots = batch.slots.to(model.device)
            inputs = embed(model, ids[start:stop], placed) if placed else {"input_ids": ids[None, start:stop]}
            with suppress(Enough), batch.computed_here():
                model(position_ids=positions[..., start:stop], use_cache=False, batch=batch, **inputs)
    return torch.cat([one[0] for one in outputs])


def _placed(
    vision_inputs: Sequence[VisionInput], features: dict[bytes, Features], start: int, stop: int
) -> Iterator[PlacedFeatures]:
    for vision_input in vision_inputs:
        offset = 0
        for first, last in vision_input.spans:
            begin, end = max(first, start), min(last, stop)
            if begin < end:
                part = features[vision_input.digest].part(offset + begin - first, offset + end - first)
                yield PlacedFeatures(begin - start, part)
            offset += last - first


@contextmanager
def _first_layers_alone(model: Any) -> Iterator[None]:
    """Of each stack in the vision part, the first layer is computed; each other one makes its input a bit larger."""
    stacks = layer_stacks(model)
    num_results: dict[Any, int] = {}  # of the first layer of a stack; 0: it returns no tuple

    def replace(layer: Any, forward: Callable[..., Any]) -> Callable[..., Any]:
        stack = next(one for one in stacks if layer in list(one))

        def first(*given: Any, **named: Any) -> Any:
            result = forward(*given, **named)
            num_results[stack] = len(result) if isinstance(result, tuple) else 0
            return result

        def left_out(*given: Any, **named: Any) -> Any:
            hidden = next(filter(_is_tensor, (*given, *named.values()))) * _GAIN_OF_A_LAYER
            number = num_results.get(stack, 0)
            return (hidden, *[None] * (number - 1)) if number else hidden

        return first if layer is stack[0] else left_out

    with replaced_forwards([layer for stack in stacks for layer in stack], replace):
        yield


def _num_parameters(module: Any) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or (isinstance(value, list | tuple) and any(map(_is_tensor, value)))


def _masks(mask: Any) -> Iterator[Any]:
    for one in mask.values() if isinstance(mask, dict) else [mask]:
        if isinstance(one, torch.Tensor) and one.ndim == 4:
            yield one


def _looks_ahead(mask: Any) -> bool:
    """Whether any token sees one behind it. Masks are of booleans, or of numbers to add."""
    visible = mask if mask.dtype == torch.bool else mask == 0
    return bool(visible[0, 0].triu(1).any())
