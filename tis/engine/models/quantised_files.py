"""Repositories whose weights were saved in fewer bits: FP8, compressed-tensors, MXFP4, GPTQ, AWQ.

Without a GPU, Transformers keeps some of them as they are until the first forward pass, or reads them without their
scales. So it is told to make plain weights of them while it reads them. What it cannot read is refused before that.
"""

import copy
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from tis.engine.errors import LoadFailed

# Packages that Transformers needs to read them.
_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "compressed-tensors": ("compressed_tensors",),
    "gptq": ("optimum", "gptqmodel"),
    "awq": ("gptqmodel",),
    "bitsandbytes": ("bitsandbytes",),
}
# These have kernels of their own on an accelerator.
_PLAIN_WITHOUT_ACCELERATOR = ("fp8", "mxfp4")
_ALWAYS_PLAIN = ("compressed-tensors",)


def method_of(config: Any) -> str | None:
    """How the weights of a repository were made smaller, by the name that Transformers has for it."""
    saved = _saved(config)
    method = saved.get("quant_method") if saved else None
    if saved and method is None and (saved.get("load_in_8bit") or saved.get("load_in_4bit")):
        method = "bitsandbytes"
    return None if method is None else str(getattr(method, "value", method))


def require_readable(config: Any) -> None:
    """Raises LoadFailed if the weights need a package or a device that is not here."""
    method = method_of(config)
    if method is None:
        return
    missing = [name for name in _PACKAGES.get(method, ()) if find_spec(name) is None]
    if missing:
        packages = " ".join(missing).replace("_", "-")
        raise LoadFailed(
            f"Its weights were saved with {method}, which this server reads with `pip install {packages}`."
        )
    if method == "bitsandbytes" and not _has_accelerator():
        raise LoadFailed("Its weights were saved with bitsandbytes, which needs a GPU. Take the plain repository.")


def asking_for_plain_weights(config: Any) -> Any | None:
    """The config to read the model with, if its weights have to become plain ones. None: Transformers decides."""
    method = method_of(config)
    if method not in _ALWAYS_PLAIN and (method not in _PLAIN_WITHOUT_ACCELERATOR or _has_accelerator()):
        return None
    asking = copy.deepcopy(config)
    for part in (asking, asking.get_text_config()):
        if saved := _saved_in(part):
            part.quantization_config = {**saved, "dequantize": True}
    return asking


def _saved(config: Any) -> dict[str, Any] | None:
    """Of the whole model, or of its text part."""
    return _saved_in(config) or _saved_in(config.get_text_config())


def _saved_in(config: Any) -> dict[str, Any] | None:
    saved = getattr(config, "quantization_config", None)
    return None if saved is None else dict(saved if isinstance(saved, Mapping) else saved.to_dict())


def _has_accelerator() -> bool:
    import torch

    return bool(torch.accelerator.is_available())
