"""Towers of pictures and sounds as the batch runs them: pixels in, features for the placeholders out.

`QwenTower` takes the patches of several pictures and frames at once. `ForwardTower` knows nothing about its model: it
shows each picture alone to the model's own `forward`, with the inputs of the official processor, and takes what that
gives its decoder in the places of the placeholders.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from tis.engine.batching.features import Features
from tis.engine.batching.tower_run import TowerRun
from tis.engine.vision.vision_input import VisionInput

_SPECTROGRAM = "input_features"


@dataclass(frozen=True, slots=True)
class EncodeJob:
    """The part of a vision input that is encoded at once: some of its steps in time."""

    vision_input: VisionInput
    start: int
    stop: int

    @property
    def num_patches(self) -> int:
        return (self.stop - self.start) * self.vision_input.patches_per_time_step


class Tower(Protocol):
    @property
    def looks_ahead(self) -> bool:
        """Whether the tokens of a picture attend to each other in both directions in the text part."""
        ...

    def encode(self, jobs: Sequence[EncodeJob]) -> list[Features]: ...

    def begin(self, job: EncodeJob) -> TowerRun | None:
        """Begins a job that takes several steps. None: this tower cannot be cut."""
        ...


class QwenTower:
    looks_ahead = False

    def __init__(self, model: Any) -> None:
        self._model = model

    def encode(self, jobs: Sequence[EncodeJob]) -> list[Features]:
        return self._features(*self._inputs(jobs))

    def begin(self, job: EncodeJob) -> TowerRun | None:
        tower: Any = getattr(self._model.base_model, "visual", None)
        if not all(hasattr(tower, name) for name in ("patch_embed", "blocks", "merger")):
            return None
        return TowerRun(
            self._features,
            self._inputs([job]),
            job.num_patches,
            tower.blocks,
            embed=tower.patch_embed,
            mergers=[tower.merger, *getattr(tower, "deepstack_merger_list", ())],
        )

    def _features(self, patches: Any, grids: Any) -> list[Features]:
        out = self._model.base_model.get_image_features(patches, grids, return_dict=True)
        layers = getattr(out, "deepstack_features", None) or []
        return [Features(tokens, [layer[at] for layer in layers]) for at, tokens in enumerate(out.pooler_output)]

    def _inputs(self, jobs: Sequence[EncodeJob]) -> tuple[Any, Any]:
        """For these families a video is an image with several steps in time."""
        device = self._model.device
        grids = torch.tensor([(job.stop - job.start, *job.vision_input.grid[1:]) for job in jobs], device=device)
        return torch.cat([_patches_of(job) for job in jobs]).to(device), grids


class ForwardTower:
    def __init__(self, model: Any, *, looks_ahead: bool, layers: Any = None, keeps_all: bool = False) -> None:
        """`layers` can be computed one after the other, and with `keeps_all` the results of all of them are read."""
        self._model = model
        self.looks_ahead = looks_ahead
        self.layers = layers
        self._keeps_all = keeps_all
        self.of_sounds: ForwardTower | None = None  # where pictures and sounds have encoders of their own

    def runs_like(self, other: "ForwardTower") -> bool:
        return (self.looks_ahead, self.layers is None, self._keeps_all) == (
            other.looks_ahead,
            other.layers is None,
            other._keeps_all,
        )

    def encode(self, jobs: Sequence[EncodeJob]) -> list[Features]:
        return [features for job in jobs for features in self._features(job.vision_input)]

    def begin(self, job: EncodeJob) -> TowerRun | None:
        if self.of_sounds and job.vision_input.kind == "audio":
            return self.of_sounds.begin(job)
        if self.layers is None:
            return None
        return TowerRun(self._features, (job.vision_input,), job.num_patches, self.layers, keeps_all=self._keeps_all)

    def _features(self, vision_input: VisionInput) -> list[Features]:
        shown = vision_input.shown
        assert shown
        embeddings = decoder_inputs(self._model, inputs_for(self._model, shown.inputs))["inputs_embeds"]
        return [Features(embeddings[0, torch.tensor(shown.places, device=self._model.device)])]


def inputs_for(model: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Processors give tensors, and a few lists. Not every encoder of sounds converts spectrograms to its own type."""
    return {
        name: value.to(model.device, model.dtype if name == _SPECTROGRAM else None)
        if isinstance(value, torch.Tensor)
        else value
        for name, value in inputs.items()
    }


class _Entered(Exception):
    pass


def decoder_inputs(model: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Computes what `forward` calls its decoder with, and ends there."""
    entered: dict[str, Any] = {}

    def enter(decoder: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        entered.update(kwargs)
        raise _Entered

    handle = model.get_decoder().register_forward_pre_hook(enter, with_kwargs=True)
    try:
        model(**arguments, use_cache=False)
    except _Entered:
        pass
    finally:
        handle.remove()
    if entered.get("inputs_embeds") is None:
        raise ValueError("its decoder takes no embeddings")
    return entered


def layer_stacks(model: Any) -> list[Any]:
    """Lists of equal layers outside of the text part, the outermost."""
    decoder = set(model.get_decoder().modules())
    found: list[Any] = []
    for module in model.modules():
        is_stack = isinstance(module, torch.nn.ModuleList) and len(module) > 1 and module not in decoder
        if is_stack and len({type(layer) for layer in module}) == 1:
            if not any(module in set(outer.modules()) for outer in found):
                found.append(module)
    return found


def _patches_of(job: EncodeJob) -> Any:
    size = job.vision_input.patches_per_time_step
    return job.vision_input.patches[job.start * size : job.stop * size]
