"""Noise of a sentence's own: what torch draws inside comes from generators with its seed.

These are the numbers that `torch.manual_seed` gives, without the generator that all threads of the process share.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_MAKING = (torch.randn, torch.rand, torch.randint, torch.normal)
_DRAWING = {
    *_MAKING,
    *(torch.randn_like, torch.rand_like, torch.bernoulli, torch.multinomial),
    *(torch.Tensor.bernoulli, torch.Tensor.multinomial),
    *(torch.Tensor.normal_, torch.Tensor.uniform_, torch.Tensor.bernoulli_, torch.Tensor.exponential_),
}


class OwnNoise(TorchFunctionMode):  # type: ignore[misc]
    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        if func in _DRAWING and named.get("generator") is None:
            named["generator"] = self._of(self._device(func, args, named))
        return func(*args, **named)

    def _device(self, func: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> torch.device:
        given = named.get("device")
        if given is None and args and isinstance(args[0], torch.Tensor):
            given = args[0].device
        return torch.device(given or "cpu")

    def _of(self, device: torch.device) -> torch.Generator:
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]
