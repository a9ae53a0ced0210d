"""Repositories whose weights were saved in fewer bits, by `quantization_config` of their config.json.

GPTQ, AWQ, compressed-tensors and FP8 are read here (`PackedFiles`). MXFP4, and FP8 in other layouts, are read by
Transformers: without a GPU it is told to make plain weights of them. What nobody reads is refused by name.
"""

import copy
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tis.engine.errors import LoadFailed

if TYPE_CHECKING:  # they import torch, which a server without a packed model does late
    from tis.engine.models.packed_formats import Awq, CompressedTensors, Gptq, PackedFormat

# These have kernels of their own on an accelerator.
_PLAIN_WITHOUT_ACCELERATOR = ("fp8", "mxfp4")
_READ = "GPTQ, AWQ and compressed-tensors with 4 or 8 bits, FP8, MXFP4, and GGUF files"
_GPTQ_LAYOUTS = ("gptq", "gptq_v2")
_AWQ_LAYOUTS = ("gemm",)
_LAYOUTS_OF_COMPRESSED_TENSORS = ("pack-quantized", "int-quantized", "float-quantized", "naive-quantized")
_OF_ROWS = ("input_activations", "output_activations")
_MAX_GROUP = 2**20


def method_of(config: Any) -> str | None:
    """How the weights of a repository were made smaller, by the name that Transformers has for it."""
    saved = _saved(config)
    method = saved.get("quant_method") if saved else None
    if saved and method is None and (saved.get("load_in_8bit") or saved.get("load_in_4bit")):
        method = "bitsandbytes"
    return None if method is None else str(getattr(method, "value", method))


def require_readable(config: Any) -> None:
    """Raises LoadFailed if nobody reads the weights, or they need a package or a device that is not here."""
    method = method_of(config)
    if method is None or packed_format_of(config) or method in _PLAIN_WITHOUT_ACCELERATOR:
        return
    if not _has_accelerator():
        needs = ", which needs a GPU" if method == "bitsandbytes" else ", which this server does not read"
        raise LoadFailed(f"Its weights were saved with {method}{needs}. It reads {_READ}.")
    if method == "bitsandbytes" and find_spec("bitsandbytes") is None:
        raise LoadFailed(
            "Its weights were saved with bitsandbytes, which this server reads with `pip install bitsandbytes`."
        )


def packed_format_of(config: Any) -> "PackedFormat | None":
    """How the weights are packed, if this server reads them itself. Raises LoadFailed."""
    method, saved = method_of(config), _saved(config) or {}
    if method == "gptq":
        return _gptq(saved)
    if method == "awq":
        return _awq(saved)
    if method == "compressed-tensors":
        return _compressed_tensors(saved)
    if method == "fp8" and not _has_accelerator():
        from tis.engine.models.packed_formats import BlockFp8

        unused = ("activation_scheme",) if saved.get("activation_scheme") == "static" else ()
        return BlockFp8(_pair(saved.get("weight_block_size")), unused)
    return None


def without_quantisation(config: Any) -> Any:
    """A config that asks for plain weights."""
    plain = copy.deepcopy(config)
    for part in (plain, plain.get_text_config()):
        if hasattr(part, "quantization_config"):
            del part.quantization_config
    return plain


def asking_for_plain_weights(config: Any) -> Any | None:
    """The config for Transformers to read a model whose weights have to become plain ones. None: it decides."""
    if method_of(config) not in _PLAIN_WITHOUT_ACCELERATOR or _has_accelerator():
        return None
    asking = copy.deepcopy(config)
    for part in (asking, asking.get_text_config()):
        if saved := _saved_in(part):
            part.quantization_config = {**saved, "dequantize": True}
    return asking


def _gptq(saved: Mapping[str, Any]) -> "Gptq":
    from tis.engine.models.packed_formats import Gptq

    layout = saved.get("checkpoint_format") or saved.get("format") or "gptq"
    if saved.get("is_marlin_format"):
        layout = "marlin"
    if layout not in _GPTQ_LAYOUTS or saved.get("pack_dtype") not in (None, "int32"):
        raise _unread("GPTQ", f"the layout {layout!r} in words of {saved.get('pack_dtype') or 'int32'}")
    bits = _whole(saved, "bits", 0)
    if bits not in (4, 8):
        raise _unread("GPTQ", f"{bits} bits")
    is_symmetric = saved.get("sym") is not False
    return Gptq(bits, _whole(saved, "group_size", 128), zeros_are_less_one=layout == "gptq", is_symmetric=is_symmetric)


def _awq(saved: Mapping[str, Any]) -> "Awq":
    from tis.engine.models.packed_formats import Awq

    layout = str(saved.get("version") or saved.get("format") or "gemm").lower()
    if layout not in _AWQ_LAYOUTS:
        raise _unread("AWQ", f"the layout {layout!r}")
    bits = _whole(saved, "bits" if "bits" in saved else "w_bit", 4)
    if bits != 4:
        raise _unread("AWQ", f"{bits} bits")
    return Awq(_whole(saved, "group_size" if "group_size" in saved else "q_group_size", 128))


def _compressed_tensors(saved: Mapping[str, Any]) -> "CompressedTensors":
    from tis.engine.models.packed_formats import CompressedTensors

    name = "compressed-tensors"
    groups = saved.get("config_groups")
    if not isinstance(groups, Mapping) or not groups or not all(isinstance(one, Mapping) for one in groups.values()):
        raise LoadFailed("quantization_config of its config.json has no config_groups.")
    for key in ("transform_config", "sparsity_config"):
        said = saved.get(key)
        if isinstance(said, Mapping) and said and said.get("format") != "dense":
            raise _unread(name, f"a {key}")
    blocks = set()
    for group in groups.values():
        layout = group.get("format") or saved.get("format")
        weights = group.get("weights")
        if layout not in _LAYOUTS_OF_COMPRESSED_TENSORS or not isinstance(weights, Mapping):
            raise _unread(name, f"the layout {layout!r}")
        kind, bits = weights.get("type", "int"), _whole(weights, "num_bits", 8)
        if (kind, bits) not in (("int", 4), ("int", 8), ("float", 8)):
            raise _unread(name, f"numbers ({kind}) of {bits} bits")
        blocks.add(_pair(weights.get("block_structure")) or (0, _whole(weights, "group_size", 0)))
    unused = [key for key in _OF_ROWS if any(group.get(key) for group in groups.values())]
    unused += ["kv_cache_scheme"] if saved.get("kv_cache_scheme") else []
    return CompressedTensors(blocks.pop() if len(blocks) == 1 else None, unused)


def _unread(method: str, what: str) -> LoadFailed:
    return LoadFailed(
        f"Its weights were saved with {method}: {what}, which this server does not read. It reads {_READ}."
    )


def _whole(saved: Mapping[str, Any], key: str, otherwise: int) -> int:
    value = saved.get(key)
    value = otherwise if value is None else value
    if type(value) is not int or abs(value) > _MAX_GROUP:
        raise LoadFailed(
            f"quantization_config of its config.json has {key} {str(value)[:40]!r}: that is no whole number."
        )
    return value


def _pair(value: Any) -> tuple[int, int] | None:
    """Outputs and inputs of a block."""
    if isinstance(value, str):
        value = [int(size) if size.isdecimal() and len(size) < 9 else 0 for size in value.split("x")]
    is_pair = isinstance(value, list | tuple) and len(value) == 2 and all(type(one) is int and one > 0 for one in value)
    return (value[0], value[1]) if is_pair else None


def _saved(config: Any) -> dict[str, Any] | None:
    """Of the whole model, or of its text part."""
    return _saved_in(config) or _saved_in(config.get_text_config())


def _saved_in(config: Any) -> dict[str, Any] | None:
    saved = getattr(config, "quantization_config", None)
    return None if saved is None else dict(saved if isinstance(saved, Mapping) else saved.to_dict())


def _has_accelerator() -> bool:
    import torch

    return bool(torch.accelerator.is_available())
