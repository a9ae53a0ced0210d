"""The limits of a batch. In a file of its own, because the app reads settings long before it imports torch."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class BatchLimits:
    cache_tokens: int = 0  # of all running requests and cached prefixes together; 0 = what the memory allows
    touched_tokens: int = 0  # whose memory is touched in the background, on a CPU
    memory_bytes: int = 0  # of weights and cache together; 0 = a share of the machine
    num_models: int = 1  # that share the machine
    bytes_of_others: int | None = None  # of the other models; None: as many as this one has, each
    limit_bytes: int = 0  # of all models together; 0 = the memory of the machine
    tokens_per_step: int = 512  # a prompt longer than this is computed in several steps
    step_seconds: float = 0  # how long a step should take; 0 = as long as its tokens take
    max_running: int = 32  # choices computed in one step
    vision_cache_bytes: int = 256 * 2**20  # cached features of images and videos
    prompt_lookup: bool = True
    quantisation: Literal["int8", "int4"] | None = None  # of the weights, on a CPU
    cache_dtype: Literal["auto", "int8"] = "auto"  # of keys and values; int8: on a CPU
    native_kernels: bool = True  # on a CPU, where they are built

    @property
    def weight_bits(self) -> Literal[4, 8] | None:
        if self.quantisation is None:
            return None
        return 4 if self.quantisation == "int4" else 8
