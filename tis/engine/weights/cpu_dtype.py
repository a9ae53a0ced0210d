"""The type that the weights of a CPU model should have: bfloat16 only where the CPU computes in it.

AVX512 without its bfloat16 instructions, which oneDNN takes for support, is several times slower than float32 for more
than one row. Hardly any CPU computes in float16. (The native kernels compute in float32 with weights that keep 16 bits:
decision 0089.)
"""

import logging
import platform
from typing import Any

import torch

log = logging.getLogger("tis.engine")


def suit_to_cpu(model: Any) -> int:
    """Converts the weights of a CPU model in place. Returns the number of tensors that it changed."""
    if model.device.type != "cpu" or getattr(model, "is_quantized", False):
        return 0
    if model.dtype not in (torch.bfloat16, torch.float16):
        return 0
    wanted = torch.bfloat16 if computes_in_bfloat16() else torch.float32
    if model.dtype is wanted:
        return 0
    log.info("the weights are converted from %s to %s, in which this CPU computes", model.dtype, wanted)
    before = model.dtype
    # Not `model.to`: it would round the frequencies of rotary embeddings too, which are float32 on purpose.
    tensors = [tensor for tensor in (*model.parameters(), *model.buffers()) if tensor.dtype is before]
    for tensor in tensors:
        tensor.data = tensor.data.to(wanted)
    return len(tensors)


def computes_in_bfloat16() -> bool:
    if platform.machine().lower() in ("x86_64", "amd64"):
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    return bool(torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported())
