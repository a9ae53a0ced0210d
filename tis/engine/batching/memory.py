"""How much memory a model may take, and how much of that its KV cache.

The longest context that a model answers depends on the machine and on what is declared, never on the memory that is
free when it is loaded: else an answer could not be resumed after a restart beside other programs.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil  # type: ignore[import-untyped]  # comes with accelerate
import torch

from tis.engine.batching.limits import BatchLimits
from tis.engine.errors import LoadFailed

# Of what the weights leave.
_CACHE_SHARE = {"cpu": 0.5, "cuda": 0.85}
# Without CACHE_TOKENS. More than this many full contexts are seldom used at once.
_MAX_CONTEXTS = 16
_LARGEST_BLOCK = 256  # a context that does not fill its last block has it all the same
# Of versions 2 and 1: the file of the limit, and that of what is used.
_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    declared_bytes: int = 0  # of weights and cache together; 0: a share of the machine
    num_models: int = 1  # that share the machine
    bytes_of_others: int | None = None
    limit_bytes: int = 0  # of all models together; 0: the memory of the machine

    @classmethod
    def of(cls, limits: BatchLimits) -> Self:
        return cls(limits.memory_bytes, limits.num_models, limits.bytes_of_others, limits.limit_bytes)

    def cache_tokens(
        self, device: Any, weight_bytes: int, bytes_per_token: int, context_length: int, bytes_of_states: int = 0
    ) -> int:
        """`bytes_of_states`: of all sequences together, beside their tokens."""
        context_length = -(-context_length // _LARGEST_BLOCK) * _LARGEST_BLOCK
        if not bytes_per_token:
            return _MAX_CONTEXTS * context_length
        num_bytes = self.cache_bytes(device, weight_bytes, context_length * bytes_per_token + bytes_of_states)
        return min((num_bytes - bytes_of_states) // bytes_per_token, _MAX_CONTEXTS * context_length)

    def num_states(self, device: Any, weight_bytes: int, bytes_of_states: int, at_most: int) -> int:
        """How many sequences may run whose states take so much each: together at most half of the memory."""
        if not bytes_of_states:
            return at_most
        num_bytes = self._max_cache_bytes(device, weight_bytes)
        if num_bytes < bytes_of_states:
            raise LoadFailed(
                f"The memory has no room for the cache of a request: {bytes_of_states >> 20} MiB and more."
            )
        return max(1, min(at_most, num_bytes // 2 // bytes_of_states))

    def cache_bytes(self, device: Any, weight_bytes: int, bytes_of_context: int) -> int:
        """At least one context, if the budget has room for it, and more as far as memory is free now."""
        free = int(_free_bytes(device) * _share_of_cache(device))
        return min(self._max_cache_bytes(device, weight_bytes), max(bytes_of_context, free))

    def _max_cache_bytes(self, device: Any, weight_bytes: int) -> int:
        if not self.declared_bytes:
            others = self.bytes_of_others
            if others is None:
                others = weight_bytes * (self.num_models - 1)
            left = (self.limit_bytes or _total_bytes(device)) - weight_bytes
            if left > others:  # else models are in memory one after the other
                left -= others
            return int(max(0, left) * _share_of_cache(device)) // self.num_models
        if self.declared_bytes <= weight_bytes:
            raise LoadFailed(
                f"memory_mb is {self.declared_bytes >> 20}, and the weights alone take {weight_bytes >> 20} MiB."
            )
        return self.declared_bytes - weight_bytes


def shared_memory(device_map: str) -> int:
    """What all models together have on the devices of DEVICE_MAP."""
    if not torch.cuda.is_available() or device_map == "cpu":
        return _total_bytes(torch.device("cpu"))
    if device_map.startswith("cuda"):
        return _total_bytes(torch.device(device_map))
    return sum(_total_bytes(torch.device("cuda", number)) for number in range(torch.cuda.device_count()))


def max_memory_of_one(device_map: str) -> int:
    """With `auto`, layers that the GPUs have no room for lie in the memory of the machine."""
    shared = shared_memory(device_map)
    spills = torch.cuda.is_available() and not device_map.startswith(("cpu", "cuda"))
    return shared + _total_bytes(torch.device("cpu")) if spills else shared


def _share_of_cache(device: Any) -> float:
    return _CACHE_SHARE.get(device.type, _CACHE_SHARE["cpu"])


def _free_bytes(device: Any) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)


def _total_bytes(device: Any) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[1])
    return min([int(psutil.virtual_memory().total), *(limit for limit, _ in _containers())])


def spare_bytes(left_share: float) -> int:
    """What is available on the machine and in the container, without the share that is left to others."""
    memory: Any = psutil.virtual_memory()
    spare = int(memory.available) - int(memory.total * left_share)
    return min([spare, *(limit - used - int(limit * left_share) for limit, used in _containers())])


def _containers() -> list[tuple[int, int]]:
    """The limit and the use of the container, if it has a limit."""
    found = ((_number_in(limit), _number_in(used)) for limit, used in _CGROUPS)
    return [(limit, used or 0) for limit, used in found if limit is not None]


def _number_in(path: str) -> int | None:
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None  # `max` means none
