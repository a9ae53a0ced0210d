"""Reads a LoRA adapter as PEFT saves it: `adapter_config.json` and `adapter_model.safetensors`.

What such a folder may say and this server does not compute is refused by name: an answer of half an adapter is wrong.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from tis.engine.errors import LoadFailed

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
_DOWN, _UP = "lora_A", "lora_B"
_PREFIX = "base_model.model."
_MAX_RANK = 1024
# Fields that change what an adapter computes, with the values that change nothing.
_PLAIN_VALUES: Mapping[str, tuple[Any, ...]] = {
    "bias": ("none",),
    "modules_to_save": (None, []),
    "target_parameters": (None, []),
    "trainable_token_indices": (None, [], {}),
    "alora_invocation_tokens": (None, []),
    "layer_replication": (None, []),
    "use_dora": (False,),
    "use_qalora": (False,),
    "lora_bias": (False,),
    "use_bdlora": (None,),
    "arrow_config": (None,),
    "kasa_config": (None,),
    "velora_config": (None,),
    "monteclora_config": (None,),
}
# These change the weights of the base, too, unless the adapter was converted.
_CHANGES_THE_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")


@dataclass(frozen=True, slots=True)
class LoraMatrices:
    """What is added to a product: `up @ (down @ x)`."""

    down: Any  # [rank, inputs]
    up: Any  # [outputs, rank], scaled


@dataclass(frozen=True, slots=True)
class LoraAdapter:
    name: str
    matrices: Mapping[str, LoraMatrices]  # by the path of the module that it adapts

    def adapts(self, name: str) -> bool:
        """Whether it adapts modules of this name, in any layer."""
        return any(path.rpartition(".")[2] == name for path in self.matrices)


def read_adapter(name: str, folder: Path) -> LoraAdapter:
    config = _read_config(name, folder)
    by_module: dict[str, dict[str, Any]] = {}
    try:
        with safe_open(folder / WEIGHTS_FILE, "pt") as file:
            for key in file.keys():
                module, part = _place_of(name, key)
                by_module.setdefault(module, {})[part] = file.get_tensor(key)
    except (OSError, SafetensorError) as error:
        raise LoadFailed(f"Adapter {name}: {WEIGHTS_FILE} cannot be read: {error}") from error
    if not by_module:
        raise LoadFailed(f"Adapter {name}: {WEIGHTS_FILE} holds no matrices.")
    return LoraAdapter(name, {module: _matrices(name, config, module, parts) for module, parts in by_module.items()})


def _read_config(name: str, folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LoadFailed(f"Adapter {name}: {CONFIG_FILE} cannot be read: {error}") from error
    if not isinstance(config, dict) or config.get("peft_type") != "LORA":
        raise LoadFailed(f"Adapter {name} is not of PEFT's type LORA, which is the only one that is served.")
    for field, values in _PLAIN_VALUES.items():
        if config.get(field, values[0]) not in values:
            raise LoadFailed(f"Adapter {name} has {field}={config[field]!r}, which is not supported.")
    if str(config.get("init_lora_weights")).startswith(_CHANGES_THE_BASE):
        raise LoadFailed(
            f"Adapter {name} changes the weights of its base (init_lora_weights={config['init_lora_weights']!r}). "
            "Save it as a plain LoRA (PEFT's path_initial_model_for_weight_conversion)."
        )
    if not _is_number(config.get("lora_alpha")):
        raise LoadFailed(f"Adapter {name}: lora_alpha is not a number.")
    return config


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _place_of(name: str, key: str) -> tuple[str, str]:
    module, _, part = key.removeprefix(_PREFIX).removesuffix(".weight").rpartition(".")
    if part not in (_DOWN, _UP) or not key.endswith(".weight"):
        raise LoadFailed(f"Adapter {name} holds {key!r}, which is no matrix of a linear layer.")
    return module, part


def _matrices(name: str, config: dict[str, Any], module: str, parts: dict[str, Any]) -> LoraMatrices:
    down, up = parts.get(_DOWN), parts.get(_UP)
    if down is None or up is None or down.ndim != 2 or up.ndim != 2 or len(down) != up.shape[1]:
        raise LoadFailed(f"Adapter {name}: {module} needs two matrices of one rank.")
    rank = len(down)
    if not 0 < rank <= _MAX_RANK:
        raise LoadFailed(f"Adapter {name}: {module} has rank {rank}, and at most {_MAX_RANK} is served.")
    alpha = _value_for(module, config.get("alpha_pattern"), config["lora_alpha"])
    if not _is_number(alpha):
        raise LoadFailed(f"Adapter {name}: alpha_pattern gives {module} a value that is not a number.")
    scale = alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
    return LoraMatrices(down, up.float() * scale)


def _value_for(module: str, patterns: Any, default: Any) -> Any:
    """PEFT's rule: the first pattern that matches the end of the path."""
    for pattern, value in (patterns or {}).items():
        if re.match(rf"(.*\.)?({pattern})$", module):
            return value
    return default
