"""Native functions for layers with states, under the names that the families call them by.

The families share them: those of the packages causal_conv1d and flash-linear-attention, or torch where these are
missing. A layer's own `forward` is given ours instead. Each layer is tried against its own functions on random rows.
"""

import inspect
import logging
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import torch
from transformers.activations import ACT2FN

from tis.engine.batching.kv_cache import CacheShape
from tis.engine.batching.layer_states import LayerStates, StateRows, StatesOfRows
from tis.engine.batching.state_layers import StateLayer, state_layers
from tis.engine.kernels.native import TYPES, NativeKernels
from tis.engine.kernels.states import NativeStates
from tis.engine.optional_stages import Misfit, Trials
from tis.engine.weights.fused import is_close, random_rows

log = logging.getLogger("tis.engine")

_NUM_SEQUENCES, _NUM_TOKENS = 3, 7
_EPSILON = 1e-6  # of norms of queries and keys


def use_native_states(model: Any, shape: CacheShape, kernels: NativeKernels | None) -> int:
    """Returns how many layers have native functions now."""
    if kernels is None or model.device.type != "cpu" or model.dtype not in TYPES:
        return 0
    native, trials, number = NativeStates(kernels), Trials("native functions of layers with states"), 0
    by_layer = {one.layer: one for one in shape.states}
    with torch.inference_mode():
        for layer in state_layers(model):
            states = LayerStates(by_layer[layer.layer_idx], _NUM_SEQUENCES, model.device)
            if new := trials.attempt(layer, partial(_tried, layer, states, native)):
                layer.native_forward = new
                number += 1
    trials.report()
    if number:
        log.info("native functions for %d layers with states", number)
    return number


def _tried(layer: StateLayer, states: LayerStates, native: NativeStates) -> Callable[..., Any]:
    own = inspect.unwrap(type(layer.layer).forward)
    ours = {
        name: make(native, own.__globals__[name]) for name, make in _MAKERS.items() if name in own.__code__.co_names
    }
    if not ours:
        raise Misfit("it calls none of the functions that there are")
    new = FunctionType(own.__code__, own.__globals__ | ours, own.__name__, own.__defaults__, own.__closure__)
    new.__kwdefaults__ = own.__kwdefaults__
    for one, other in zip(_computed(layer, states, None), _computed(layer, states, new), strict=True):
        if not is_close(other, one):
            raise Misfit("it computes something else")
    return new


def _computed(layer: StateLayer, states: LayerStates, by: Callable[..., Any] | None) -> list[Any]:
    """A text and, behind it, single tokens of several sequences, with what is kept of them."""
    before, layer.native_forward = layer.native_forward, by
    results: list[Any] = []
    try:
        dtype = next(one.dtype for one in layer.parameters() if one.is_floating_point())
        x = random_rows(_width_of(layer), dtype)[None]
        for tensor in (states.convolved, states.recurrent):
            if tensor is not None:
                tensor.normal_(generator=torch.Generator().manual_seed(2))
        for rows in (
            StateRows(0, _NUM_TOKENS, [0], is_first=True),
            StateRows(0, _NUM_SEQUENCES, range(_NUM_SEQUENCES), is_first=False),
        ):
            cache = StatesOfRows(states, rows)
            results.append(layer.of_rows(x[:, rows.begin : rows.end], rows, cache))
        kept = [one for one in (states.convolved, states.recurrent) if one is not None]
        results += [one.flatten(1).to(dtype, copy=True) for one in kept]  # no more exact than the rows it is made of
    finally:
        layer.native_forward = before
    return results


def _width_of(layer: StateLayer) -> int:
    """Of the rows that it takes, by its first product."""
    return next(int(one.in_features) for one in layer.modules() if hasattr(one, "in_features"))


def _convolution(native: NativeStates, theirs: Callable[..., Any]) -> Callable[..., Any]:
    def causal_conv1d_update(
        hidden_states: Any, conv_state: Any, weight: Any, bias: Any = None, activation: str | None = None
    ) -> Any:
        if hidden_states.shape[-1] != 1:
            return theirs(hidden_states, conv_state, weight, bias, activation)
        out = native.convolve(hidden_states[..., 0], conv_state, weight, bias)
        return (out if activation is None else ACT2FN[activation](out))[..., None]

    return causal_conv1d_update


def _text_convolution(native: NativeStates, theirs: Callable[..., Any]) -> Callable[..., Any]:
    def causal_conv1d_fn(
        hidden_states: Any, weight: Any, bias: Any = None, activation: str | None = None, **more: Any
    ) -> Any:
        if len(hidden_states) != 1:
            return theirs(hidden_states, weight, bias, activation=activation, **more)
        out = native.convolve_text(hidden_states[0].t(), weight, bias)
        return (out if activation is None else ACT2FN[activation](out)).t()[None]

    return causal_conv1d_fn


def _delta_rule(native: NativeStates, theirs: Callable[..., Any]) -> Callable[..., Any]:
    def gated_delta_rule(
        query: Any,
        key: Any,
        value: Any,
        g: Any,
        beta: Any,
        *,
        initial_state: Any | None = None,
        use_qk_l2norm_in_kernel: bool = False,
        **ignored: Any,
    ) -> tuple[Any, Any]:
        query, key, dtype = query.float(), key.float(), value.dtype
        if use_qk_l2norm_in_kernel:
            query, key = (x * torch.rsqrt((x * x).sum(-1, keepdim=True) + _EPSILON) for x in (query, key))
        state = initial_state
        if state is None:
            state = torch.zeros(len(value), value.shape[2], key.shape[-1], value.shape[-1])
        out = native.delta_rule(query * query.shape[-1] ** -0.5, key, value, g.float().exp(), beta, state)
        return out.to(dtype), state

    return gated_delta_rule


def _state_update(native: NativeStates, theirs: Callable[..., Any]) -> Callable[..., Any]:
    def selective_state_update(
        state: Any, hidden_states: Any, dt: Any, A: Any, B: Any, C: Any, D: Any = None, **more: Any
    ) -> Any:
        of_heads = [one for one in (dt, A, D, more.get("dt_bias")) if one is not None]
        if any(one.stride(at) for one in of_heads for at in range(2 if one is dt else 1, one.ndim)):
            return theirs(state, hidden_states, dt, A, B, C, D, **more)  # the numbers of a head differ
        z, bias = more.pop("z", None), more.pop("dt_bias", None)
        scan = _state_scan(native, _refuse)
        skip, bias = (None if one is None else one[:, 0] for one in (D, bias))
        out, _ = scan(
            hidden_states[:, None], dt[:, None, :, 0], A[:, 0, 0], B[:, None], C[:, None], D=skip, dt_bias=bias,
            initial_states=state, return_final_states=True, **more,
        )  # fmt: skip
        return out[:, 0] if z is None else out[:, 0] * torch.nn.functional.silu(z)

    return selective_state_update


def _state_scan(native: NativeStates, theirs: Callable[..., Any]) -> Callable[..., Any]:
    def chunk_scan(
        hidden_states: Any,
        dt: Any,
        A: Any,
        B: Any,
        C: Any,
        chunk_size: int = 0,
        *,
        D: Any = None,
        z: Any = None,
        dt_bias: Any = None,
        initial_states: Any = None,
        dt_softplus: bool = False,
        dt_limit: tuple[float, float] = (0.0, float("inf")),
        return_final_states: bool = False,
        **ignored: Any,
    ) -> Any:
        if z is not None:
            raise Misfit("its gate is a part of the scan")
        dt = dt if dt_bias is None else dt + dt_bias.to(dt.dtype)
        dt = torch.clamp((torch.nn.functional.softplus(dt) if dt_softplus else dt).float(), *dt_limit)
        state, x = initial_states, hidden_states.float()
        if state is None:
            state = torch.zeros(len(x), *x.shape[2:], B.shape[-1])
        out = native.state_space(x * dt[..., None], (dt * A.float()).exp(), B, C, state)
        out = (out if D is None else out + x * D.float()[:, None]).to(hidden_states.dtype)
        return (out, state) if return_final_states else out

    return chunk_scan


def _refuse(*args: Any, **arguments: Any) -> Any:
    raise Misfit("the numbers of a head differ")


_MAKERS: dict[str, Callable[[NativeStates, Callable[..., Any]], Callable[..., Any]]] = {
    "causal_conv1d_update": _convolution,
    "causal_conv1d_fn": _text_convolution,
    "torch_recurrent_gated_delta_rule": _delta_rule,
    "torch_chunk_gated_delta_rule": _delta_rule,
    "mamba2_selective_state_update": _state_update,
    "mamba2_chunk_scan": _state_scan,
}
