"""What the files of sentence-transformers say beside the weights: pooling, further layers, prompts, lengths."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from tis.engine.errors import LoadFailed
from tis.engine.models.description import read_object
from tis.engine.models.entry_fields import POOLING_MODES, PoolingMode

# As older files name the modes, in the order in which several are joined.
_FLAGS: Mapping[str, PoolingMode] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_MAX_MODULES = 32
_NO_TEMPLATE_OPTIONS = ("restore_suffix", "truncation", "max_length", "padding", "return_tensors")


@dataclass(frozen=True, slots=True)
class SentenceFiles:
    pooling: Sequence[PoolingMode] = ("mean",)
    pools_prompt: bool = True  # whether the tokens of the prompt are pooled, too
    # What follows the pooling, in order: folders of dense layers, and None where the vector is normalised.
    layers: Sequence[Path | None] = (None,)
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    max_length: int | None = None  # in tokens
    lower_case: bool = False
    # Of a reranker that is a causal model: the tokens whose logits make the score.
    true_token: int | None = None
    false_token: int | None = None
    template_options: Mapping[str, Any] = field(default_factory=dict)  # of the chat template of a model that sees


def read_sentence_files(folder: Path) -> SentenceFiles:
    """Without such files: the mean of all tokens, normalised. Raises LoadFailed for modules that are not known."""
    config = read_object(folder / "config_sentence_transformers.json")
    transformer = read_object(folder / "sentence_bert_config.json")
    pooling: Sequence[PoolingMode] = ("mean",)
    pools_prompt = True
    layers: list[Path | None] = [None]
    tokens: Mapping[str, Any] = {}
    if modules := _modules(folder):
        layers = []
        for kind, path in modules:
            if kind == "Pooling":
                pooling, pools_prompt = _pooling(read_object(path / "config.json"), path)
            elif kind == "Dense":
                layers.append(path)
            elif kind == "Normalize":
                layers.append(None)
            elif kind == "LogitScore":
                tokens = read_object(path / "config.json")
            elif kind not in ("Transformer", "Dropout"):
                raise LoadFailed(f"{folder.name} has a module {kind!r} of sentence-transformers, which is not known.")
    prompts = config.get("prompts")
    max_length = transformer.get("max_seq_length")
    return SentenceFiles(
        pooling,
        pools_prompt,
        layers,
        {str(name): str(prompt) for name, prompt in prompts.items()} if isinstance(prompts, dict) else {},
        config.get("default_prompt_name"),
        max_length if isinstance(max_length, int) else None,
        transformer.get("do_lower_case") is True,
        tokens.get("true_token_id"),
        tokens.get("false_token_id"),
        _template_options(transformer),
    )


def _template_options(transformer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Truncation and the rest of what else stands there is not of the template."""
    processing = transformer.get("processing_kwargs")
    options = processing.get("chat_template") if isinstance(processing, dict) else None
    kept = {} if not isinstance(options, dict) else options
    return {name: value for name, value in kept.items() if name not in _NO_TEMPLATE_OPTIONS}


def _modules(folder: Path) -> list[tuple[str, Path]]:
    """The kinds of modules, each with its folder."""
    path = folder / "modules.json"
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        raise LoadFailed(f"{path.name} of {folder.name} cannot be read.") from error
    if not isinstance(listed, list) or len(listed) > _MAX_MODULES:
        raise LoadFailed(f"{path.name} of {folder.name} is no list of modules.")
    return [_module(folder, one) for one in listed]


def _module(folder: Path, listed: Any) -> tuple[str, Path]:
    if not isinstance(listed, dict) or not isinstance(listed.get("type"), str):
        raise LoadFailed(f"modules.json of {folder.name} has an entry without a type.")
    path = (folder / str(listed.get("path", ""))).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise LoadFailed(f"modules.json of {folder.name} names a folder outside of it.")
    return listed["type"].rpartition(".")[2], path


def _pooling(config: Mapping[str, Any], path: Path) -> tuple[Sequence[PoolingMode], bool]:
    named = config.get("pooling_mode")
    modes: list[Any] = [named] if isinstance(named, str) else list(named or ())
    modes = modes or [mode for flag, mode in _FLAGS.items() if config.get(flag) is True] or ["mean"]
    for mode in modes:
        if mode not in POOLING_MODES:
            raise LoadFailed(f"{path.name} asks for the pooling {mode!r}, which is not known.")
    return cast(Sequence[PoolingMode], tuple(modes)), config.get("include_prompt") is not False
