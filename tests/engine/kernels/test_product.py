"""Products of the native kernels and whole decoder layers, on every instruction set of this CPU, against torch."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn.functional import linear, scaled_dot_product_attention, silu

from tis.engine.batching.kv_cache import round_rows, widen_rows
from tis.engine.kernels.grouped_product import product_of
from tis.engine.kernels.integer_product import WeightBits, takes_integers
from tis.engine.kernels.layers import DecoderLayer, LayerShape, Linear, NativeLayers, Norm, PackedLayer
from tis.engine.kernels.native import NativeKernels
from tis.engine.kernels.product import BlockFormat, NativeProduct

SHAPES = [
    (1, 64, 32),
    (3, 100, 64),
    (6, 16, 2),
    (7, 130, 128),
    (13, 300, 96),
    (33, 40, 600),
    (100, 72, 48),
    (203, 64, 1030),
]


@pytest.fixture(params=[torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def dtype(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(0)
    return request.param


@pytest.mark.parametrize(("rows", "outputs", "inputs"), SHAPES)
@pytest.mark.parametrize("has_bias", [False, True])
def test_a_product_is_that_of_torch(
    kernels: NativeKernels, dtype: Any, rows: int, outputs: int, inputs: int, has_bias: bool
) -> None:
    x, weight = torch.randn(rows, inputs + 8).to(dtype)[:, 8:], torch.randn(outputs, inputs).to(dtype)
    bias = torch.randn(outputs).to(dtype) if has_bias else None
    exact = linear(x.double(), weight.double(), None if bias is None else bias.double())
    error = (NativeProduct(weight, bias, kernels)(x).double() - exact).abs()
    sizes = linear(x.double().abs(), weight.double().abs()) + 1
    rounding = 2**-8 * exact.abs() if dtype is torch.bfloat16 else 0
    assert (error <= 1e-5 * sizes + rounding).all()


def test_a_row_has_the_same_result_beside_any_others(kernels: NativeKernels, dtype: Any) -> None:
    product = NativeProduct(torch.randn(200, 1024).to(dtype), None, kernels)
    x = torch.randn(110, 1024).to(dtype)
    together = product(x)
    for begin, end in ((0, 1), (5, 12), (40, 110), (109, 110)):
        assert torch.equal(product(x[begin:end]), together[begin:end])


def test_no_rows_and_rows_in_steps(kernels: NativeKernels, dtype: Any) -> None:
    product = NativeProduct(torch.randn(20, 32).to(dtype), None, kernels)
    assert product(torch.randn(0, 32).to(dtype)).shape == (0, 20)
    x = torch.randn(5, 32, 2).to(dtype)
    assert torch.equal(product(x[..., 0]), product(x[..., 0].contiguous()))


def test_threads_change_no_bit(kernels: NativeKernels, dtype: Any) -> None:
    product = NativeProduct(torch.randn(192, 512).to(dtype), None, kernels)
    x = torch.randn(40, 512).to(dtype)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            results.append(product(x))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(result, results[0]) for result in results)


def test_numbers_that_are_none_stay_in_their_row(kernels: NativeKernels, dtype: Any) -> None:
    x = torch.randn(7, 64).to(dtype)
    x[3, 5] = torch.nan
    result = NativeProduct(torch.randn(64, 64).to(dtype), None, kernels)(x)
    assert result.isnan().all(1).tolist() == [row == 3 for row in range(7)]


def with_float32_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tis.engine.kernels.product.is_bfloat16", lambda weight: False)


@pytest.mark.parametrize(("rows", "outputs", "inputs"), SHAPES)
def test_float32_weights_from_bfloat16_are_kept_in_half_the_bytes(
    kernels: NativeKernels, monkeypatch: pytest.MonkeyPatch, rows: int, outputs: int, inputs: int
) -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(rows, inputs), torch.randn(outputs, inputs).bfloat16().float()
    bias = torch.randn(outputs)
    narrow = NativeProduct(weight, bias, kernels)
    result = narrow(x)
    with_float32_blocks(monkeypatch)
    wide = NativeProduct(weight, bias, kernels)
    assert torch.equal(result, wide(x))
    assert 2 * narrow.num_bytes == wide.num_bytes
    assert (result - linear(x, weight, bias)).abs().max() < 1e-3


def test_one_weight_that_bfloat16_cannot_hold_keeps_them_in_float32(kernels: NativeKernels) -> None:
    weight = torch.randn(3000, 32).bfloat16().float()
    weight[2999, 31] += 2**-20
    x = torch.eye(32)
    assert torch.equal(NativeProduct(weight, None, kernels)(x), weight.T)


# --- decoder layers ---

SHAPE = LayerShape(hidden=48, inner=72, heads=6, key_heads=2, head_size=16, rotary_size=16)


def new_layer(dtype: Any, shape: LayerShape = SHAPE, *, biases: bool = False, head_norms: bool = False) -> DecoderLayer:
    def new_linear(outputs: int, inputs: int) -> Linear:
        bias = torch.randn(outputs).to(dtype) if biases else None
        return Linear((torch.randn(outputs, inputs) * inputs**-0.5).to(dtype), bias)

    def norm(size: int) -> Norm:
        return Norm((1 + torch.rand(size)).to(dtype), 1e-6)

    return DecoderLayer(
        number=0,
        input_norm=norm(shape.hidden),
        qkv=new_linear(shape.qkv_width, shape.hidden),
        query_norm=norm(shape.head_size) if head_norms else None,
        key_norm=norm(shape.head_size) if head_norms else None,
        output=new_linear(shape.hidden, shape.heads * shape.head_size),
        inner_norm=norm(shape.hidden),
        gate_up=new_linear(2 * shape.inner, shape.hidden),
        down=new_linear(shape.hidden, shape.inner),
        scale=shape.head_size**-0.5,
    )


def rounded_to(bits: WeightBits, layer: DecoderLayer, kernels: NativeKernels) -> DecoderLayer:
    if not takes_integers(kernels, bits, SHAPE.hidden):
        pytest.skip(f"this level has no kernel for weights of {bits} bits")
    linears = products_of(layer)
    products: dict[str, Any] = {name: product_of(one.weight, one.bias, kernels, bits) for name, one in linears.items()}
    return replace(layer, **products)


def with_weights_of(layer: DecoderLayer) -> DecoderLayer:
    linears: dict[str, Any] = {name: Linear(one.weights, one.bias) for name, one in products_of(layer).items()}
    return replace(layer, **linears)


def products_of(layer: DecoderLayer) -> dict[str, Any]:
    found = {name: getattr(layer, name) for name in ("qkv", "output", "gate_up", "down")}
    return {name: one for name, one in found.items() if one is not None}


def computed_by_torch(
    layer: DecoderLayer, shape: LayerShape, x: Any, cos: Any, sin: Any, *, has_rounded_cache: bool = False
) -> Any:
    """One sequence from its beginning, in float64."""

    def norm(values: Any, by: Norm | None) -> Any:
        if by is None:
            return values
        return values * torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + by.eps) * by.weight.double()

    def times(values: Any, by: Any) -> Any:
        return linear(values, by.weight.double(), None if by.bias is None else by.bias.double())

    def turned(heads: Any) -> Any:
        part, rest = heads[..., : shape.rotary_size], heads[..., shape.rotary_size :]
        low, high = part.chunk(2, -1)
        part = part * cos.double()[:, None] + torch.cat((-high, low), -1) * sin.double()[:, None]
        return torch.cat((part, rest), -1)

    x = x.double()
    heads = times(norm(x, layer.input_norm), layer.qkv).unflatten(-1, (-1, shape.head_size))
    query, key, value = heads.split((shape.heads, shape.key_heads, shape.key_heads), 1)
    query, key = turned(norm(query, layer.query_norm)), turned(norm(key, layer.key_norm))
    if has_rounded_cache:
        key, value = (widen_rows(*round_rows(one)).double() for one in (key, value))
    tokens = torch.arange(len(x))
    visible = tokens[None] <= tokens[:, None]
    if layer.window:
        visible &= tokens[None] > tokens[:, None] - layer.window
    query, key, value = (one.transpose(0, 1)[None] for one in (query, key, value))
    out = scaled_dot_product_attention(query, key, value, visible, scale=layer.scale, enable_gqa=True)[0]
    x = x + times(out.transpose(0, 1).flatten(1), layer.output)
    if layer.gate_up is None:
        return x
    gate, up = times(norm(x, layer.inner_norm), layer.gate_up).chunk(2, -1)
    return x + times(silu(gate) * up, layer.down)


def tolerance_of(dtype: Any, bits: int | None) -> float:
    """Beside weights of 8 bits few rows have 16, beside those of 4 all have 8."""
    if bits == 4:
        return 0.08
    return 0.06 if dtype is torch.bfloat16 else 1e-3 if bits else 1e-4


def new_cache(dtype: Any, shape: LayerShape, layers: int, slots: int) -> Any:
    def tensors() -> list[Any]:
        return [torch.full((shape.key_heads, slots, shape.head_size), torch.nan).to(dtype) for _ in range(layers)]

    return SimpleNamespace(keys=tensors(), values=tensors(), scales=[None] * layers)


def new_rounded_cache(shape: LayerShape, layers: int, slots: int) -> Any:
    cache = new_cache(torch.int8, shape, layers, slots)
    cache.scales = [tuple(torch.full((2, shape.key_heads, slots), torch.nan)) for _ in range(layers)]
    return cache


WAYS = ["plain", "biases", "head norms", "half of a head is turned", "window", "one group", "8 bits", "4 bits"]
WAYS += ["a cache of 8 bits"]


@pytest.mark.parametrize("way", WAYS)
def test_layers_are_those_of_torch(kernels: NativeKernels, dtype: Any, way: str) -> None:
    shape = {
        "half of a head is turned": replace(SHAPE, rotary_size=8),
        "one group": replace(SHAPE, key_heads=6, hidden=34, inner=50),
    }.get(way, SHAPE)
    window = 5 if way == "window" else None
    layers = [
        replace(
            new_layer(dtype, shape, biases=way == "biases", head_norms=way == "head norms"),
            number=number,
            window=window,
        )
        for number in range(3)
    ]
    bits: WeightBits | None = 8 if way == "8 bits" else 4 if way == "4 bits" else None
    has_rounded_cache = way == "a cache of 8 bits"
    if bits:
        rounded = [rounded_to(bits, layer, kernels) for layer in layers]
        native = NativeLayers([PackedLayer(layer, shape, kernels) for layer in rounded], kernels)
        layers = [with_weights_of(layer) for layer in rounded]
    else:
        native = NativeLayers([PackedLayer(layer, shape, kernels) for layer in layers], kernels)
    x = torch.randn(23, shape.hidden).to(dtype)
    angles = torch.arange(23)[:, None] * 0.7 ** torch.arange(shape.rotary_size // 2)
    cos, sin = (torch.cat([table, table], -1).to(dtype) for table in (angles.cos(), angles.sin()))
    exact = x
    for layer in layers:
        exact = computed_by_torch(layer, shape, exact, cos, sin, has_rounded_cache=has_rounded_cache)
    cache = new_rounded_cache(shape, 3, 64) if has_rounded_cache else new_cache(dtype, shape, 3, 64)
    result = x.clone()
    # A prompt in two steps, then token after token.
    for begin, end in ((0, 9), (9, 20), (20, 21), (21, 22), (22, 23)):
        run = torch.tensor([[0, end - begin, 30, begin]])
        slots = torch.arange(30 + begin, 30 + end)
        native.compute_(result[begin:end], cos[begin:end], sin[begin:end], cache, slots, run)
    assert (result.double() - exact).abs().max() <= tolerance_of(dtype, bits) * exact.abs().max()


def test_layers_from_bfloat16_compute_the_same_with_half_the_bytes(
    kernels: NativeKernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    layer = new_layer(torch.float32, biases=True, head_norms=True)
    linears: dict[str, Any] = {name: getattr(layer, name) for name in ("qkv", "output", "gate_up", "down")}
    linears = {name: Linear(one.weight.bfloat16().float(), one.bias) for name, one in linears.items()}
    layer = replace(layer, **linears)
    narrow = PackedLayer(layer, SHAPE, kernels)
    with_float32_blocks(monkeypatch)
    wide = PackedLayer(layer, SHAPE, kernels)
    assert 2 * narrow.num_bytes == wide.num_bytes
    x, tables = torch.randn(9, SHAPE.hidden), (torch.ones(9, 16), torch.zeros(9, 16))
    results = []
    for packed in (narrow, wide):
        result, cache = x.clone(), new_cache(torch.float32, SHAPE, 1, 16)
        run = torch.tensor([[0, 9, 0, 0]])
        NativeLayers([packed], kernels).compute_(result, *tables, cache, torch.arange(9), run)
        results.append(result)
    assert torch.equal(*results) and not torch.equal(results[0], x)


def test_sequences_of_one_step_do_not_see_each_other(kernels: NativeKernels, dtype: Any) -> None:
    native = NativeLayers([PackedLayer(new_layer(dtype), SHAPE, kernels)], kernels)
    x = torch.randn(30, SHAPE.hidden).to(dtype)
    cos, sin = torch.ones(30, 16).to(dtype), torch.zeros(30, 16).to(dtype)
    together, cache = x.clone(), new_cache(dtype, SHAPE, 1, 64)
    runs = torch.tensor([[0, 1, 0, 0], [1, 4, 8, 0], [5, 25, 16, 0]])
    slots = torch.cat([torch.arange(first, first + length) for _, length, first, _ in runs.tolist()])
    native.compute_(together, cos, sin, cache, slots, runs)
    for begin, length, first, _ in runs.tolist():
        alone = x[begin : begin + length].clone()
        run, end = torch.tensor([[0, length, first, 0]]), begin + length
        native.compute_(alone, cos[:length], sin[:length], new_cache(dtype, SHAPE, 1, 64), slots[begin:end], run)
        assert torch.equal(alone, together[begin:end])


@pytest.mark.parametrize("wanted", [[], [4], [0, 2, 3, 22], list(range(23))])
@pytest.mark.parametrize("bits", [None, 8, 4])
def test_the_last_layer_finishes_only_the_rows_that_are_read(
    kernels: NativeKernels, dtype: Any, wanted: list[int], bits: WeightBits | None
) -> None:
    layers = [replace(new_layer(dtype), number=number) for number in range(2)]
    if bits:
        layers = [rounded_to(bits, layer, kernels) for layer in layers]
    native = NativeLayers([PackedLayer(layer, SHAPE, kernels) for layer in layers], kernels)
    x, cos, sin = torch.randn(23, SHAPE.hidden).to(dtype), torch.ones(23, 16).to(dtype), torch.zeros(23, 16).to(dtype)
    arguments = (cos, sin, new_cache(dtype, SHAPE, 2, 64), torch.arange(23), torch.tensor([[0, 23, 0, 0]]))
    whole, part = x.clone(), x.clone()
    native.compute_(whole, *arguments)
    native.compute_(part, *arguments, torch.tensor(wanted, dtype=torch.long))
    assert torch.equal(part[wanted], whole[wanted])
    others = [row for row in range(23) if row not in wanted]
    assert not others or not torch.equal(part[others], whole[others])


@pytest.mark.parametrize("bits", [None, 8, 4])
def test_a_layer_without_its_mlp_ends_with_the_norm(
    kernels: NativeKernels, dtype: Any, bits: WeightBits | None
) -> None:
    shape = replace(SHAPE, inner=0)
    layer = replace(new_layer(dtype), gate_up=None, down=None)
    if bits:
        rounded = rounded_to(bits, layer, kernels)
        packed = PackedLayer(rounded, shape, kernels)
        layer = with_weights_of(rounded)
    else:
        packed = PackedLayer(layer, shape, kernels)
    native = NativeLayers([packed], kernels)
    x, cos, sin = torch.randn(23, SHAPE.hidden).to(dtype), torch.ones(23, 16).to(dtype), torch.zeros(23, 16).to(dtype)
    arguments = (cos, sin, new_cache(dtype, SHAPE, 1, 64), torch.arange(23), torch.tensor([[0, 23, 0, 0]]))
    exact = computed_by_torch(layer, shape, x, cos, sin)
    scale = torch.rsqrt(exact.pow(2).mean(-1, keepdim=True) + layer.inner_norm.eps)
    exact_norm = exact * scale * layer.inner_norm.weight.double()
    tolerance = tolerance_of(dtype, bits)
    for wanted in (None, [0, 7, 22], []):
        rows, result = list(range(23)) if wanted is None else wanted, x.clone()
        normed = native.compute_(result, *arguments, None if wanted is None else torch.tensor(rows, dtype=torch.long))
        assert normed.shape == (len(rows), SHAPE.hidden)
        assert ((result[rows].double() - exact[rows]).abs() <= tolerance * exact.abs().max()).all()
        assert ((normed.double() - exact_norm[rows]).abs() <= tolerance * exact_norm.abs().max()).all()


@pytest.mark.parametrize("slot", [-1, 64])
def test_a_slot_outside_of_the_cache_is_refused(kernels: NativeKernels, dtype: Any, slot: int) -> None:
    native = NativeLayers([PackedLayer(new_layer(dtype), SHAPE, kernels)], kernels)
    x, turn = torch.randn(1, SHAPE.hidden).to(dtype), torch.ones(1, 16).to(dtype)
    with pytest.raises(IndexError):
        native.compute_(
            x, turn, turn, new_cache(dtype, SHAPE, 1, 64), torch.tensor([slot]), torch.tensor([[0, 1, 0, 0]])
        )
    with pytest.raises(IndexError):
        native.compute_(x, turn, turn, new_cache(dtype, SHAPE, 1, 64), torch.tensor([0]), torch.tensor([[0, 1, 0, 64]]))
    with pytest.raises(IndexError):
        row = torch.tensor([slot])
        native.compute_(
            x, turn, turn, new_cache(dtype, SHAPE, 1, 64), torch.tensor([0]), torch.tensor([[0, 1, 0, 0]]), row
        )


def test_a_cache_of_another_type_is_refused(kernels: NativeKernels, dtype: Any) -> None:
    other = torch.float32 if dtype is torch.bfloat16 else torch.bfloat16
    native = NativeLayers([PackedLayer(new_layer(dtype), SHAPE, kernels)], kernels)
    x, turn = torch.randn(1, SHAPE.hidden).to(dtype), torch.ones(1, 16).to(dtype)
    with pytest.raises(TypeError):
        run = torch.tensor([[0, 1, 0, 0]])
        native.compute_(x, turn, turn, new_cache(other, SHAPE, 1, 64), torch.tensor([0]), run)


def test_gates_and_factors_lie_side_by_side(kernels: NativeKernels, dtype: Any) -> None:
    form = BlockFormat(kernels, dtype)
    gate, up = torch.arange(1.0, 71.0)[:, None].to(dtype), -torch.arange(1.0, 71.0)[:, None].to(dtype)
    both = form.interleave(gate, up)[:, 0]
    half = form.width // 2
    assert len(both) % form.width == 0
    for begin in range(0, len(both), form.width):
        assert torch.equal(both[begin : begin + half], -both[begin + half : begin + form.width])
