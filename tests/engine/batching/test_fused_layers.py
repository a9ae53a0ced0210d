"""Models whose layers are computed in one native call give the tokens of model.generate()."""

from functools import partial
from typing import Any

import pytest
import torch

from tests.engine.batching.families import FAMILIES
from tests.engine.batching.tiny import (
    TOKENIZER,
    alone,
    greedy,
    new_model,
    new_model_of,
    new_request,
    new_runner,
    prompt,
    run,
    tokens,
)
from tests.engine.batching.tiny_vision import mixed, new_vision_model
from tis.engine.batching.choose_runner import choose_runner
from tis.engine.batching.fused_layers import FusedFront, FusedLayers, fuse_layers
from tis.engine.batching.limits import BatchLimits
from tis.engine.kernels.integer_product import WeightBits, takes_integers
from tis.engine.kernels.native import NativeKernels, native_kernels
from tis.engine.kernels.product import takes_products
from tis.engine.weights.fused import fuse_modules
from tis.engine.weights.packed import quantise_weights, weight_bytes_of

# Gemma has other layers: norms behind attention and MLP, and another activation.
USUAL = ("qwen2", "qwen3", "qwen3_vl", "llama", "mistral_sliding", "phi3")
LENGTHS = (5, 30, 1)


@pytest.fixture
def kernels() -> NativeKernels:
    return native_kernels() or pytest.skip("the native kernels are not built here")


def fused_in(model: Any) -> list[Any]:
    return [layer for layer in model.get_decoder().layers if isinstance(layer, FusedLayers)]


def new_runner_of(model: Any, **limits: Any) -> Any:
    return choose_runner(model, TOKENIZER, 512, BatchLimits(cache_tokens=2048, **limits)).new()


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("architecture", USUAL)
def test_usual_layers_are_fused_and_give_the_tokens_of_generate(architecture: str) -> None:
    model = new_model(architecture)
    prompts = [prompt(length, length) for length in LENGTHS]
    expected = [greedy(model, one, 12) for one in prompts]
    lonely = new_request(prompts[1], temperature=0.9, top_p=0.95)
    alone(model, lonely)
    runner = new_runner_of(model, tokens_per_step=9)
    assert len(fused_in(model)) == (2 if architecture == "qwen3_vl" else 1)
    requests = [new_request(one) for one in prompts] + [new_request(prompts[1], temperature=0.9, top_p=0.95)]
    run(runner, requests)
    assert [tokens(request) for request in requests] == [*expected, tokens(lonely)]


@pytest.mark.usefixtures("kernels")
def test_many_keys_are_shared_in_each_layer_anew() -> None:
    model = new_model("llama")
    prompts = [prompt(length, length) for length in (500, 1100, 20)]
    expected = [greedy(model, one, 20) for one in prompts]
    runner = choose_runner(model, TOKENIZER, 2048, BatchLimits(cache_tokens=4096)).new()
    requests = [new_request(one, max_tokens=20) for one in prompts]
    run(runner, requests)
    assert model.config.num_hidden_layers > 1 and fused_in(model)
    assert [tokens(request) for request in requests] == expected


@pytest.mark.usefixtures("kernels")
def test_features_of_images_are_added_between_the_first_layers() -> None:
    model = new_vision_model("qwen3_vl")
    prompts = mixed(model)[:3]
    expected = [one.greedy(8) for one in prompts]
    runner = new_runner_of(model)
    assert fused_in(model)
    requests = [one.request(max_tokens=8) for one in prompts]
    run(runner, requests)
    assert [tokens(request) for request in requests] == expected


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("architecture", ["qwen2", "llama"])  # with biases, and without
def test_float32_layers_that_were_saved_in_bfloat16_take_half_the_bytes(architecture: str) -> None:
    model = new_model(architecture)
    for parameter in model.parameters():
        parameter.data = parameter.data.bfloat16().float()
    prompts = [prompt(length, length) for length in LENGTHS]
    expected = [greedy(model, one, 12) for one in prompts]
    in_linears = sum(one.weight.nbytes for one in model.modules() if type(one) is torch.nn.Linear)
    before = weight_bytes_of(model)
    runner = new_runner_of(model)
    requests = [new_request(one) for one in prompts]
    run(runner, requests)
    assert [tokens(request) for request in requests] == expected
    # The tiny matrices are padded to whole blocks.
    assert fused_in(model) and weight_bytes_of(model) < before - 0.4 * in_linears


def test_other_layers_stay(kernels: NativeKernels) -> None:
    for architecture in ("gemma2_softcap", "gemma3"):
        model = new_model(architecture)
        fuse_modules(model, kernels)
        assert fuse_layers(model, kernels) == 0 and not fused_in(model)


@pytest.mark.parametrize("what", ["residual", "twice", "order"])
def test_a_layer_that_computes_something_else_stays(kernels: NativeKernels, what: str) -> None:
    model = new_model("qwen3")
    fuse_modules(model, kernels)
    layer = model.model.layers[1]
    plain = type(layer).forward
    if what == "residual":
        layer.forward = lambda x, **more: x + 0.9 * (plain(layer, x, **more) - x)
    elif what == "twice":
        layer.forward = lambda x, **more: plain(layer, plain(layer, x, **more), **more)
    else:
        model.model.layers[0], model.model.layers[1] = layer, model.model.layers[0]
    if what == "order":  # the cache goes by the number of a layer, whatever its place
        assert fuse_layers(model, kernels) == 2 and len(fused_in(model)) == 1
    else:
        assert fuse_layers(model, kernels) == 1
        assert [type(one) for one in model.model.layers] == [FusedLayers, type(layer)]


# --- layers whose MLP is of another kind ---

MIXTURES = ("Qwen3Moe", "Qwen2Moe", "Mixtral", "Glm4Moe", "Arcee")


def new_mixture(family: str, **more: Any) -> Any:
    kind, sizes = FAMILIES[family]
    return new_model_of(kind, **(sizes | more))


def fronts_in(model: Any) -> list[FusedFront]:
    return [layer for layer in model.get_decoder().layers if isinstance(layer, FusedFront)]


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("quantisation", [None, "int8", "int4"])
@pytest.mark.parametrize("family", MIXTURES)
def test_what_stands_before_another_mlp_is_one_call(family: str, quantisation: str | None) -> None:
    model = new_mixture(family)
    prompts = [prompt(length, length) for length in LENGTHS]
    expected = [greedy(model, one, 12) for one in prompts]
    lonely = new_request(prompts[1], temperature=0.9, top_p=0.95)
    alone(model, lonely)
    runner = new_runner_of(model, tokens_per_step=9, quantisation=quantisation)
    # The first layer of Glm4Moe has no experts.
    assert len(fronts_in(model)) == (1 if family == "Glm4Moe" else 2) == 2 - len(fused_in(model))
    assert [one.is_last for one in fronts_in(model)][-1]
    requests = [new_request(one) for one in prompts] + [new_request(prompts[1], temperature=0.9, top_p=0.95)]
    assert not run(runner, requests).errors
    if quantisation is None:
        assert [tokens(request) for request in requests] == [*expected, tokens(lonely)]


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("returns_more", [False, True])
def test_an_mlp_may_return_more_than_numbers(returns_more: bool) -> None:
    model = new_mixture("Qwen3Moe")
    expected = greedy(model, prompt(20, 1), 12)
    for layer in model.model.layers:
        layer.forward = partial(_computed_with_more if returns_more else _computed, layer)
        if returns_more:
            layer.mlp.register_forward_hook(lambda mlp, args, result: (result, "scores"))
    runner = new_runner_of(model)
    assert len(fronts_in(model)) == 2
    request = new_request(prompt(20, 1))
    run(runner, [request])
    assert tokens(request) == expected


def _computed_with_more(layer: Any, x: Any, **more: Any) -> Any:
    x = x + layer.self_attn(hidden_states=layer.input_layernorm(x), **more)[0]
    added, scores = layer.mlp(layer.post_attention_layernorm(x))
    assert scores in ("scores", None)
    return x + added


def _computed(layer: Any, x: Any, **more: Any) -> Any:
    x = x + layer.self_attn(hidden_states=layer.input_layernorm(x), **more)[0]
    return x + layer.mlp(layer.post_attention_layernorm(x))


@pytest.mark.parametrize("factor", [0.9, 1.0])
def test_a_layer_that_scales_its_mixture_stays(kernels: NativeKernels, factor: float) -> None:
    model = new_mixture("Qwen3Moe")
    layer = model.model.layers[1]

    def scaled(x: Any, **more: Any) -> Any:
        x = x + layer.self_attn(hidden_states=layer.input_layernorm(x), **more)[0]
        return x + factor * layer.mlp(layer.post_attention_layernorm(x))

    layer.forward = scaled
    mixture = layer.mlp
    fuse_modules(model, kernels)
    assert fuse_layers(model, kernels) == (1 if factor == 0.9 else 2)
    assert model.model.layers[1].mlp is mixture


def test_granite_scales_what_it_adds(kernels: NativeKernels) -> None:
    model = new_model_of("Granite", residual_multiplier=0.3, embedding_multiplier=3.0)
    expected = greedy(model, prompt(20, 1), 12)
    runner = new_runner_of(model)
    assert not fused_in(model)
    request = new_request(prompt(20, 1))
    run(runner, [request])
    assert tokens(request) == expected


def test_without_kernels_a_model_keeps_its_layers() -> None:
    model = new_model("qwen3")
    new_runner_of(model, native_kernels=False)
    assert not fused_in(model)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("architecture", USUAL)
def test_layers_of_integers_give_the_tokens_of_their_modules(
    kernels: NativeKernels, architecture: str, bits: WeightBits
) -> None:
    if not takes_integers(kernels, bits, 64):
        pytest.skip("this CPU has no kernel for such weights")
    prompts = [prompt(length, length) for length in (70, 5)]  # beside weights of 8 bits, rows of 8 bits and of 16
    modules, model = new_model(architecture), new_model(architecture)
    fuse_modules(modules, kernels)
    quantise_weights(modules, kernels, bits)
    expected = [new_request(one) for one in prompts]
    run(new_runner(modules, kernels=kernels), expected)
    requests = [new_request(one) for one in prompts]
    run(new_runner_of(model, quantisation=f"int{bits}"), requests)
    assert fused_in(model) and not fused_in(modules)
    assert [tokens(request) for request in requests] == [tokens(request) for request in expected]


@pytest.mark.usefixtures("kernels")
def test_a_new_runner_has_a_cache_of_its_own() -> None:
    """The addresses of a cache are kept with the layers."""
    model = new_model("llama")
    expected = [greedy(model, prompt(30, one), 8) for one in range(3)]
    chosen = choose_runner(model, TOKENIZER, 512, BatchLimits(cache_tokens=512))
    for one in range(3):
        request = new_request(prompt(30, one), max_tokens=8)
        run(chosen.new(), [request])
        assert tokens(request) == expected[one]


def test_bfloat16_agrees_with_float32(kernels: NativeKernels) -> None:
    if not takes_products(kernels, torch.bfloat16):
        pytest.skip("this CPU multiplies bfloat16 by other kernels")
    wide, model = new_model("llama"), new_model("llama").bfloat16()
    expected = new_request(prompt(40, 1), max_tokens=1, top_logprobs=5)
    run(new_runner_of(wide), [expected])
    request = new_request(prompt(40, 1), max_tokens=1, top_logprobs=5)
    run(new_runner_of(model), [request])
    assert fused_in(model) and model.get_input_embeddings().weight.dtype is torch.bfloat16
    assert tokens(request) == tokens(expected)
