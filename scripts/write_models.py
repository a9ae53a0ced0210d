"""Writes the tables of docs/models.md: `python scripts/write_models.py` after a change to what is computed in batches.

Builds a tiny model of each family and asks the server's own code. A test compares some rows, `make soak` all of them.
It takes some minutes, and needs the native kernels.
"""

import logging
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import transformers  # noqa: E402

from tests.engine.batching.families import FAMILIES  # noqa: E402
from tests.engine.batching.tiny import TOKENIZER, new_model_of  # noqa: E402
from tests.engine.batching.tiny_vision import VISION_MODELS, new_vision_model  # noqa: E402
from tests.engine.batching.vision_families import VISION_FAMILIES, FamilyPrompt, new_family  # noqa: E402
from tis.engine.batching.batch_runner import BatchRunner  # noqa: E402
from tis.engine.batching.choose_runner import choose_runner  # noqa: E402
from tis.engine.batching.fused_layers import FusedFront, FusedLayers  # noqa: E402
from tis.engine.batching.limits import BatchLimits  # noqa: E402
from tis.engine.batching.long_ropes import rope_borders  # noqa: E402
from tis.engine.batching.stepped_model import SteppedModel  # noqa: E402
from tis.engine.batching.text_attention import text_attentions  # noqa: E402
from tis.engine.kernels.native import native_kernels  # noqa: E402
from tis.engine.weights.fused_attention import FusedAttention  # noqa: E402
from tis.engine.weights.fused_experts import FusedExperts  # noqa: E402
from tis.engine.weights.fused_modules import FusedMlp, FusedNorm  # noqa: E402
from tis.engine.weights.packed import NativeLinear  # noqa: E402

PAGE = ROOT / "docs" / "models.md"
_LIMITS = BatchLimits(cache_tokens=2048)
_CONTEXT = 512


@dataclass(frozen=True, slots=True)
class TriedModel:
    model_type: str  # of its config.json
    cells: tuple[str, ...]  # of its row
    in_batch: bool


def try_family(name: str) -> TriedModel:
    kind, sizes = FAMILIES[name]
    model = new_model_of(kind, **sizes)
    features = [*_features(model)]
    why = _why_in_turns(model)
    if why:
        return TriedModel(_type_of(model), (why, "in parts" if SteppedModel(model).splits_prompts else "whole"), False)
    if any(hasattr(module, "latent_heads") for module in model.modules()):
        features = ["latents in the cache", *features]
    return TriedModel(_type_of(model), (", ".join(features), ", ".join(_native_parts(model))), True)


def type_of_family(name: str) -> str:
    return str(getattr(transformers, f"{FAMILIES[name][0]}Config").model_type)


def try_vision_family(name: str) -> TriedModel:
    if name in VISION_MODELS:
        return TriedModel(_type_of(new_vision_model(name)), ("in the batch, video too",), True)
    model = new_family(name)
    made = FamilyPrompt(model, VISION_FAMILIES[name]).picture(2, 2).text(4, 4).picture(3, 3).text(9, 5)
    why = _why_in_turns(model, SimpleNamespace(sample=lambda: made.sample))
    return TriedModel(_type_of(model), (f"in turns: {why}" if why else "in the batch",), not why)


def batched_table(models: Iterable[TriedModel]) -> str:
    head = ["| model type | what sets it apart | native kernels |", "|---|---|---|"]
    return "\n".join([*head, *_rows(one for one in models if one.in_batch)])


def turns_table(models: Iterable[TriedModel]) -> str:
    head = ["| model type | why | its prompts are computed |", "|---|---|---|"]
    return "\n".join([*head, *_rows(one for one in models if not one.in_batch)])


def pictures_table(models: Iterable[TriedModel]) -> str:
    return "\n".join(["| model type | its images |", "|---|---|", *_rows(models)])


def numbers(models: list[TriedModel]) -> str:
    num_batched = sum(one.in_batch for one in models)
    return (
        f"`make soak` tries {len(models)} tiny random models of these families "
        f"(`tests/engine/batching/test_families.py`): {num_batched} in batches, {len(models) - num_batched} in turns."
    )


def with_part(page: str, name: str, text: str) -> str:
    """Replaces what stands between the two marks of this name."""
    marks = f"(<!-- {name}: start -->\n).*?(<!-- {name}: end -->)"
    new, count = re.subn(marks, lambda found: f"{found[1]}{text}\n{found[2]}", page, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"docs/models.md should have the marks of {name} once.")
    return new


def _rows(models: Iterable[TriedModel]) -> list[str]:
    return sorted({f"| {' | '.join((one.model_type, *one.cells))} |" for one in models})


def _type_of(model: Any) -> str:
    return str(model.config.model_type)


def _why_in_turns(model: Any, vision: Any = None) -> str:
    """Prepares the model to be served. Empty if it is computed in batches."""
    chosen = choose_runner(model, TOKENIZER, _CONTEXT, _LIMITS, vision)
    if chosen.why_in_turns:
        return re.sub(r": [\d.e+-]+ of the largest number", "", chosen.why_in_turns)
    if not isinstance(chosen.new(), BatchRunner):
        raise TypeError("a model in turns, without a reason")
    return ""


def _features(model: Any) -> Iterator[str]:
    """What most attentions do not have."""
    try:
        attentions = text_attentions(model)
    except Exception:  # of a model that takes turns
        return
    caches = {one.cache for one in attentions}
    if any(one.window for one in attentions):
        yield "sliding windows"
    if any(cache.chunk for cache in caches):
        yield "chunks"
    if any(one.sinks is not None for one in attentions):
        yield "sinks"
    if getattr(model.config.get_text_config(), "attn_logit_softcapping", None):
        yield "a soft cap"
    if len({(cache.num_heads, cache.key_size, cache.value_size) for cache in caches}) > 1:
        yield "layers of different sizes"
    if any(cache.key_size != cache.value_size for cache in caches):
        yield "keys and values of different sizes"
    if rope_borders(model):
        yield "rotary embeddings that change with the length"
    if any(hasattr(module, "is_concatenated") and hasattr(module, "has_gate") for module in model.modules()):
        yield "experts"


def _native_parts(model: Any) -> Iterator[str]:
    """What is computed by native kernels, apart from the attention itself."""
    found = {type(module) for module in model.modules()}
    layers = {type(layer) for layer in getattr(model.get_decoder(), "layers", ())}
    if layers <= {FusedLayers} and layers:
        yield "whole layers"
        return
    if layers & {FusedLayers, FusedFront}:
        if FusedLayers in layers:
            yield "some whole layers"
        if FusedFront in layers:
            yield "layers up to their MLP" if layers <= {FusedLayers, FusedFront} else "some layers up to their MLP"
    else:
        parts = {FusedNorm: "norms", FusedMlp: "MLPs", FusedAttention: "QKV"}
        yield from (text for kind, text in parts.items() if kind in found)
    if FusedExperts in found:
        yield "experts"
    if NativeLinear in found:
        yield "other products" if found & {FusedLayers, FusedFront, FusedExperts, FusedNorm, FusedMlp} else "products"


def main() -> None:
    if native_kernels() is None:
        raise SystemExit("Build the native kernels first: python -m tis.engine.kernels.build")
    logging.disable()
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    models = [_shown(name, try_family) for name in FAMILIES]
    pictures = [_shown(name, try_vision_family) for name in (*VISION_MODELS, *VISION_FAMILIES)]
    page = PAGE.read_text(encoding="utf-8")
    for name, text in (
        ("numbers", numbers(models)),
        ("batches", batched_table(models)),
        ("turns", turns_table(models)),
        ("images", pictures_table(pictures)),
    ):
        page = with_part(page, name, text)
    PAGE.write_text(page, encoding="utf-8")


def _shown(name: str, tried: Any) -> TriedModel:
    found: TriedModel = tried(name)
    print(name, *found.cells, sep=" | ", flush=True)
    return found


if __name__ == "__main__":
    main()
