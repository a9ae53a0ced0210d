"""Runs the vision tower of a model a few layers at a time.

What leads to the features is called again for each part. What was computed in an earlier part is returned at once, and
the first layer beyond a part ends the call. So this knows the layers of a tower, and not what lies between.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tis.engine.batching.features import Features


class _PartEnds(Exception):
    pass


class TowerRun:
    """One call of a tower, and its state between two parts. A failed part ends it."""

    def __init__(
        self,
        call: Callable[..., list[Features]],
        given: tuple[Any, ...],
        num_patches: int,
        layers: Sequence[Any],
        *,
        embed: Any = None,
        mergers: Sequence[Any] = (),
        keeps_all: bool = False,
    ) -> None:
        """`embed` alone reads the first of `given`. `keeps_all`: features are made of several layers' results."""
        self._call, self._given = call, given
        self.num_patches = num_patches
        self._layers, self._embed, self._mergers = list(layers), embed, list(mergers)
        self._keeps_all = keeps_all
        self._results: dict[Any, Any] = {}  # of the layers that are done, and of the embedding of patches
        self._merged: dict[Any, Any] = {}
        self._num_left = 0  # layers that this part may still compute

    @property
    def num_layers(self) -> int:
        return len(self._layers)

    @property
    def num_computed(self) -> int:
        """The number of layers that are done."""
        return sum(layer in self._results for layer in self._layers)

    def advance(self, num_layers: int) -> list[Features] | None:
        """Computes so many layers more. Returns the features, or None if there is more to do."""
        self._num_left = min(num_layers, self.num_layers)
        stages = [*self._layers, *self._mergers, *([] if self._embed is None else [self._embed])]
        try:
            with replaced_forwards(stages, self._resuming):
                return self._call(*self._given)
        except _PartEnds:
            if self._embed is not None:
                self._given = (self._given[0][:0], *self._given[1:])
            return None

    def _resuming(self, stage: Any, forward: Callable[..., Any]) -> Callable[..., Any]:
        def merge(*given: Any, **named: Any) -> Any:
            if stage not in self._merged:
                self._merged[stage] = forward(*given, **named)
            return self._merged[stage]

        def compute(*given: Any, **named: Any) -> Any:
            if stage in self._results:
                return self._results[stage]
            if stage is not self._embed:
                if not self._num_left:
                    raise _PartEnds
                self._num_left -= 1
            result = forward(*given, **named)
            if not self._keeps_all:
                # Of all layers that are done, only the newest has a reader that is not done.
                self._results = dict.fromkeys(self._results, result)
            self._results[stage] = result
            return result

        return merge if stage in self._mergers else compute


@contextmanager
def replaced_forwards(
    modules: Sequence[Any], replace: Callable[[Any, Callable[..., Any]], Callable[..., Any]]
) -> Iterator[None]:
    before = [module.__dict__.get("forward") for module in modules]
    for module in modules:
        module.forward = replace(module, module.forward)
    try:
        yield
    finally:
        for module, forward in zip(modules, before, strict=True):
            if forward is None:
                del module.forward
            else:
                module.forward = forward
