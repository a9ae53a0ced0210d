"""A model that is ready to run requests."""

import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tis.engine.grammar.compile import GrammarCompiler
from tis.engine.models.model_status import ModelFootprint
from tis.engine.prompt import MediumKind
from tis.engine.runner import Runner
from tis.engine.text.markers import ModelMarkers
from tis.engine.text.reasoning import ReasoningTokens
from tis.engine.text.tokenizer import RawTokenizer
from tis.engine.vision.vision_input import VisionProcessor


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedWeights:
    """What every kind of model has."""

    new_runner: Callable[[], Runner]  # a new worker gets a new runner: the old one may be in any state
    context_length: int
    revision: str  # the same wherever the same weights and tokenizer are loaded
    weights_time: float | None = None  # when the weights file was written, in seconds since 1970
    weights_bytes: int | None = None  # of its safetensors files; None: it has none
    footprint: ModelFootprint | None = None  # None: next to nothing, as for `echo`
    weights: "weakref.ref[Any] | None" = None  # to see whether an unload has freed the model; None: nothing of size
    close: Callable[[], None] | None = None  # called when it is unloaded
    warm_up: Callable[[Runner], None] | None = None  # computes a little, as the first request would
    voices: Sequence[str] = ()  # of a model that speaks: the names of its speakers
    media: Collection[MediumKind] = ()  # beside text; of a `LoadedModel` its `vision` says it


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel(LoadedWeights):
    """Writes text."""

    tokenizer: RawTokenizer
    generation_defaults: Mapping[str, Any]
    has_encoder: bool = False  # which reads the prompt: then no token of it has a probability
    starts_whole: bool = False  # a prompt is computed in one step, however long it is
    vision: VisionProcessor | None = None  # preprocesses images and videos; None: the model takes none
    markers: ModelMarkers = ModelMarkers()
    grammars: GrammarCompiler | None = None  # None: no structured output
    reasoning_tokens: ReasoningTokens | None = None
    adapter_revisions: Mapping[str, str] = field(default_factory=dict)  # of LoRA, by name: of base and adapter together
    template_variables: frozenset[str] = frozenset()  # that the chat template takes from a request

    def revision_with(self, adapter: str) -> str:
        """`adapter`: by its name; empty: the model as it is."""
        return self.adapter_revisions[adapter] if adapter else self.revision
