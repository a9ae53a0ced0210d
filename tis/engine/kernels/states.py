"""Layers with states in C: a short convolution of one more token, the scans of linear attention and of state spaces."""

import ctypes
from struct import Struct
from typing import Any

import torch

from tis.engine.kernels.native import TYPES, NativeKernels
from tis.engine.kernels.product import address_of

# The structures of states.c.
_CONVOLUTION = Struct("@14q")
_TEXT_CONVOLUTION = Struct("@11q")
_DELTA_RULE = Struct("@17q")
_STATE_SPACE = Struct("@16q")
# Numbers of the states for which a second thread is worth the waking.
_MIN_FOR_THREADS = 65_536


class NativeStates:
    """States are on the CPU, changed in place, and contiguous but for their first axis, which is the sequences."""

    def __init__(self, kernels: NativeKernels) -> None:
        self._level = kernels.level
        library = kernels.library
        self._convolve, self._delta_rule = library.tis_convolve, library.tis_delta_rule
        self._state_space, self._convolve_text = library.tis_state_space, library.tis_convolve_text
        for function in (self._convolve, self._delta_rule, self._state_space, self._convolve_text):
            function.argtypes, function.restype = [ctypes.c_char_p], None

    def convolve(self, x: Any, state: Any, weight: Any, bias: Any | None) -> Any:
        """x [sequences, channels] behind the inputs in state [sequences, channels, size], which move by one.

        weight [channels, size]. All are float32 or bfloat16. Returns [sequences, channels].
        """
        if any(one.dtype is not x.dtype for one in (state, weight, bias) if one is not None) or not _is_in_place(state):
            raise TypeError("a convolution of several types, or of a state that does not lie in a row")
        out = torch.empty(x.shape, dtype=x.dtype)
        weight = weight.contiguous()
        self._convolve(
            _CONVOLUTION.pack(
                *(self._level, TYPES[x.dtype], 1, state.data_ptr(), x.data_ptr(), weight.data_ptr()),
                *(address_of(bias), out.data_ptr(), *state.shape, state.stride(0), *x.stride()),
            )
        )
        return out

    def convolve_text(self, x: Any, weight: Any, bias: Any | None) -> Any:
        """x [tokens, channels], with zeros before it; weight [channels, size]. Returns what x is like."""
        if any(one.dtype is not x.dtype for one in (weight, bias) if one is not None):
            raise TypeError("a convolution of several types")
        x = x if x.stride(1) == 1 else x.contiguous()
        by_place, out = weight.t().contiguous(), torch.empty(x.shape, dtype=x.dtype)
        threads = torch.get_num_threads() if out.numel() >= _MIN_FOR_THREADS else 1
        self._convolve_text(
            _TEXT_CONVOLUTION.pack(
                *(self._level, TYPES[x.dtype], threads, x.data_ptr(), by_place.data_ptr(), address_of(bias)),
                *(out.data_ptr(), *x.shape, weight.shape[1], x.stride(0)),
            )
        )
        return out

    def delta_rule(self, query: Any, key: Any, value: Any, decay: Any, beta: Any, state: Any) -> Any:
        """The gated delta rule for all tokens, one after the other, in float32.

        query and key [sequences, tokens, key heads, size], value [sequences, tokens, heads, value size], decay and
        beta [sequences, tokens, heads], state [sequences, heads, size, value size]. Returns what value is like.
        """
        query, key, value, decay, beta = (one.float().contiguous() for one in (query, key, value, decay, beta))
        _require_floats(state)
        out = torch.empty_like(value)
        sequences, tokens, key_heads, size = key.shape
        self._delta_rule(
            _DELTA_RULE.pack(
                *(
                    self._level,
                    TYPES[torch.float32],
                    _num_threads(state, tokens),
                    state.data_ptr(),
                    query.data_ptr(),
                    key.data_ptr(),
                ),
                *(value.data_ptr(), decay.data_ptr(), beta.data_ptr(), out.data_ptr()),
                *(sequences, tokens, value.shape[2], key_heads, size, value.shape[3], state.stride(0)),
            )
        )
        return out

    def state_space(self, x: Any, decay: Any, added: Any, read: Any, state: Any) -> Any:
        """State spaces whose heads forget evenly, for all tokens, one after the other, in float32.

        x [sequences, tokens, heads, size], decay [sequences, tokens, heads], added and read [sequences, tokens, groups,
        state size], state [sequences, heads, size, state size]. Returns what x is like.
        """
        x, decay, added, read = (one.float().contiguous() for one in (x, decay, added, read))
        _require_floats(state)
        out = torch.empty_like(x)
        sequences, tokens, heads, size = x.shape
        self._state_space(
            _STATE_SPACE.pack(
                *(self._level, TYPES[torch.float32], _num_threads(state, tokens), state.data_ptr(), x.data_ptr()),
                *(decay.data_ptr(), added.data_ptr(), read.data_ptr(), out.data_ptr()),
                *(sequences, tokens, heads, added.shape[2], size, added.shape[3], state.stride(0)),
            )
        )
        return out


def _num_threads(state: Any, num_tokens: int) -> int:
    return torch.get_num_threads() if state.numel() * num_tokens >= _MIN_FOR_THREADS else 1


def _require_floats(state: Any) -> None:
    if state.dtype is not torch.float32 or not _is_in_place(state):
        raise TypeError("a state of another type, or one that does not lie in a row")


def _is_in_place(state: Any) -> bool:
    return bool(state[0].is_contiguous())
