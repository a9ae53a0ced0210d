"""Runs the vision tower of a model a few layers at a time.

The model's own `forward` is called again for each part. What was computed in an earlier part is returned at once, and
the first layer beyond a part ends the call. So this knows the names of a tower's modules, and not what lies between.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _PartEnds(Exception):
    pass


class TowerRun:
    """One call of `get_image_features`, and its state between two parts. A failed part ends it."""

    def __init__(self, model: Any, patches: Any, grids: Any) -> None:
        self._model = model
        self._patches, self._grids = patches, grids
        self.num_patches = len(patches)
        tower = model.base_model.visual
        self._layers = list(tower.blocks)
        self._embed = tower.patch_embed
        self._mergers = [tower.merger, *getattr(tower, "deepstack_merger_list", ())]
        self._computed: set[Any] = set()  # of the layers, and the embedding of patches
        self._hidden: Any = None  # what the newest of them returned
        self._merged: dict[Any, Any] = {}
        self._num_left = 0  # layers that this part may still compute

    @property
    def num_layers(self) -> int:
        return len(self._layers)

    @property
    def num_computed(self) -> int:
        """The number of layers that are done."""
        return len(self._computed - {self._embed})

    def advance(self, num_layers: int) -> Any | None:
        """Computes so many layers more. Returns what `get_image_features` returns, or None if there is more to do."""
        self._num_left = min(num_layers, self.num_layers)
        try:
            with self._stages_replaced():
                return self._model.base_model.get_image_features(self._patches, self._grids, return_dict=True)
        except _PartEnds:
            self._patches = self._patches[:0]  # only the embedding reads it, and that is done
            return None

    @contextmanager
    def _stages_replaced(self) -> Iterator[None]:
        stages = [self._embed, *self._layers, *self._mergers]
        before = [stage.__dict__.get("forward") for stage in stages]
        for stage in stages:
            stage.forward = self._resuming(stage, stage.forward)
        try:
            yield
        finally:
            for stage, forward in zip(stages, before, strict=True):
                if forward is None:
                    del stage.forward
                else:
                    stage.forward = forward

    def _resuming(self, stage: Any, forward: Callable[..., Any]) -> Callable[..., Any]:
        def merge(*given: Any, **named: Any) -> Any:
            if stage not in self._merged:
                self._merged[stage] = forward(*given, **named)
            return self._merged[stage]

        def compute(*given: Any, **named: Any) -> Any:
            if stage in self._computed:
                # Of all layers that are done, only the newest has a reader that is not done.
                return self._hidden
            if stage is not self._embed:
                if not self._num_left:
                    raise _PartEnds
                self._num_left -= 1
            self._hidden = forward(*given, **named)
            self._computed.add(stage)
            return self._hidden

        return merge if stage in self._mergers else compute


def can_be_cut(model: Any) -> bool:
    tower = getattr(model.base_model, "visual", None)
    return all(hasattr(tower, name) for name in ("patch_embed", "blocks", "merger"))
