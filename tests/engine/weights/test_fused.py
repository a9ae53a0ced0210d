"""Fused modules give the tokens of model.generate(); a module that computes something else is left alone."""

import weakref
from typing import Any

import pytest
import torch
from transformers.models.mamba.modeling_mamba import MambaRMSNorm

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
from tis.engine.batching.limits import BatchLimits
from tis.engine.kernels.native import native_kernels
from tis.engine.weights.fused import fuse_modules
from tis.engine.weights.fused_attention import FusedAttention
from tis.engine.weights.fused_modules import FusedMlp, FusedNorm
from tis.engine.weights.int8 import Int8Linear
from tis.engine.weights.packed import pack_weights, quantise_weights

LENGTHS = (5, 30)


@pytest.fixture(params=["native", "torch"])
def kernels(request: pytest.FixtureRequest) -> Any:
    if request.param == "torch":
        return None
    return native_kernels() or pytest.skip("the native kernels are not built here")


def _number_of(kind: type, model: Any) -> int:
    return sum(isinstance(module, kind) for module in model.modules())


def test_every_architecture_is_fused_and_gives_the_tokens_of_generate(model: Any) -> None:
    prompts = [prompt(length, length) for length in LENGTHS]
    expected = [greedy(model, one, 12) for one in prompts]
    lonely = new_request(prompts[1], temperature=0.9, top_p=0.95)
    alone(model, lonely)
    kernels = native_kernels()
    fuse_modules(model, kernels)
    num_layers = model.config.get_text_config().num_hidden_layers
    assert _number_of(FusedAttention, model) == _number_of(FusedMlp, model) == num_layers
    assert _number_of(FusedNorm, model) > 2 * num_layers if kernels else True
    pack_weights(model)
    requests = [new_request(one) for one in prompts] + [new_request(prompts[1], temperature=0.9, top_p=0.95)]
    run(new_runner(model, tokens_per_step=9, kernels=kernels), requests)
    assert [tokens(request) for request in requests] == [*expected, tokens(lonely)]


def test_images_keep_their_positions(kernels: Any) -> None:
    model = new_vision_model("qwen3_vl")
    prompts = mixed(model)[:3]
    expected = [one.greedy(8) for one in prompts]
    fuse_modules(model, kernels)
    requests = [one.request(max_tokens=8) for one in prompts]
    run(new_runner(model, kernels=kernels), requests)
    assert [tokens(request) for request in requests] == expected


def test_without_native_kernels_matrices_are_merged_all_the_same(qwen3: Any) -> None:
    expected = greedy(qwen3, prompt(20, 1), 12)
    fuse_modules(qwen3, None)
    assert _number_of(FusedAttention, qwen3) == 2 and _number_of(FusedNorm, qwen3) == 0
    request = new_request(prompt(20, 1))
    run(new_runner(qwen3), [request])
    assert tokens(request) == expected


class TestLeftAlone:
    """Modules whose names promise what they do not do."""

    def test_rotary_embeddings_of_neighbouring_numbers(self, kernels: Any) -> None:
        model = new_model_of("Cohere", logit_scale=1.0)
        expected = greedy(model, prompt(20, 1), 8)
        fuse_modules(model, kernels)
        assert _number_of(FusedAttention, model) == _number_of(FusedNorm, model) == 0
        request = new_request(prompt(20, 1), max_tokens=8)
        run(new_runner(model), [request])
        assert tokens(request) == expected

    def test_norms_over_all_heads_at_once(self, kernels: Any) -> None:
        model = new_model_of("Olmo2")
        fuse_modules(model, kernels)
        assert _number_of(FusedAttention, model) == 0 and _number_of(FusedMlp, model) == 2

    def test_layers_without_positions(self, kernels: Any) -> None:
        model = new_model_of("SmolLM3", num_hidden_layers=4, no_rope_layer_interval=4)
        fuse_modules(model, kernels)
        assert [isinstance(layer.self_attn, FusedAttention) for layer in model.model.layers] == [True] * 3 + [False]

    @pytest.mark.parametrize(
        "change", [lambda x: x.clamp(-1, 1), lambda x: x + 0.5, lambda x: x[..., :8], lambda x: x.double()]
    )
    def test_a_module_whose_results_differ(self, qwen3: Any, kernels: Any, change: Any) -> None:
        first, second = qwen3.model.layers
        for module in (first.mlp, first.input_layernorm, first.self_attn):
            plain = module.forward
            module.forward = lambda *args, plain=plain, **kwargs: _changed(plain(*args, **kwargs), change)
        fuse_modules(qwen3, kernels)
        assert not isinstance(first.mlp, FusedMlp) and isinstance(second.mlp, FusedMlp)
        assert not isinstance(first.self_attn, FusedAttention)
        assert not isinstance(first.input_layernorm, FusedNorm)

    def test_weights_that_another_library_has_quantised(self, qwen3: Any, kernels: Any) -> None:
        qwen3.is_quantized = True
        assert fuse_modules(qwen3, kernels) == 0

    def test_all_modules_if_kernels_are_off(self, qwen3: Any) -> None:
        classes = [type(module) for module in qwen3.modules()]
        choose_runner(qwen3, TOKENIZER, 512, BatchLimits(cache_tokens=64, native_kernels=False))
        kept = [kind for kind in classes if kind is not torch.nn.Linear]
        assert {kind.__name__ for kind in kept} <= {type(module).__name__ for module in qwen3.modules()}
        assert sum(_number_of(kind, qwen3) for kind in (FusedAttention, FusedMlp, FusedNorm)) == 0

    def test_another_model_of_the_same_class(self, qwen3: Any, kernels: Any) -> None:
        other = new_model("qwen3")
        fuse_modules(qwen3, kernels)
        assert sum(_number_of(kind, other) for kind in (FusedAttention, FusedMlp, FusedNorm)) == 0


def _changed(result: Any, change: Any) -> Any:
    return (change(result[0]), *result[1:]) if isinstance(result, tuple) else change(result)


def test_memory_does_not_double(qwen3: Any, kernels: Any) -> None:
    before = qwen3.get_memory_footprint()
    gone = [weakref.ref(layer.mlp.gate_proj.weight) for layer in qwen3.model.layers]
    gone += [weakref.ref(layer.self_attn.k_proj.weight) for layer in qwen3.model.layers]
    fuse_modules(qwen3, kernels)
    assert qwen3.get_memory_footprint() == before
    assert [one() for one in gone] == [None] * 4


def test_merged_biases_are_kept(kernels: Any) -> None:
    """Qwen2 has biases for queries, keys and values, but none for the output."""
    model = new_model("qwen2")
    for layer in model.model.layers:
        for linear in (layer.self_attn.q_proj, layer.self_attn.v_proj):
            torch.nn.init.normal_(linear.bias)
        layer.self_attn.k_proj.bias = None
    expected = greedy(model, prompt(20, 1), 12)
    fuse_modules(model, kernels)
    assert _number_of(FusedAttention, model) == 2
    request = new_request(prompt(20, 1))
    run(new_runner(model, kernels=kernels), [request])
    assert tokens(request) == expected


def test_merged_layers_are_quantised(qwen3: Any, kernels: Any) -> None:
    fuse_modules(qwen3, kernels)
    assert quantise_weights(qwen3, kernels) == 2 * 4 + 1
    request = new_request(prompt(40, 1))
    readers = run(new_runner(qwen3, tokens_per_step=16, kernels=kernels), [request])
    assert not readers.errors and len(tokens(request)) == 12


def test_a_model_to_be_quantised_is_merged_first() -> None:
    gemma = new_model("gemma2_softcap")  # whose layers are not fused as a whole
    choose_runner(gemma, TOKENIZER, 512, BatchLimits(cache_tokens=64, quantisation="int8"))
    assert _number_of(FusedAttention, gemma) == _number_of(FusedMlp, gemma) == 2
    assert _number_of(Int8Linear, gemma) == 2 * 4 + 1


def test_the_numbers_of_others_random_generators_stay(qwen3: Any) -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    fuse_modules(qwen3, None)
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("architecture", ["qwen3", "phi3", "gemma2_softcap"])
def test_bfloat16_rounds_at_other_places_and_changes_little(architecture: str, kernels: Any) -> None:
    logprobs = []
    for is_fused in (False, True):
        model = new_model(architecture).bfloat16()
        if is_fused:
            fuse_modules(model, kernels)
            assert _number_of(FusedAttention, model) == 2
        request = new_request(prompt(20, 1), max_tokens=1, top_logprobs=5)
        readers = run(new_runner(model, kernels=kernels if is_fused else None), [request])
        logprobs.append([one.logprob for one in readers.of(request)[0].logprobs[0].top])
    assert logprobs[0] == pytest.approx(logprobs[1], abs=0.15)


def test_a_norm_of_16_bits_takes_the_float32_sum_that_a_family_keeps_between_its_layers() -> None:
    norm = MambaRMSNorm(64).bfloat16()
    torch.nn.init.normal_(norm.weight, 1.0, 0.1)
    kernels = native_kernels()
    assert kernels
    x = torch.randn(5, 64)
    torch.testing.assert_close(FusedNorm(norm, 0.0, kernels)(x), norm(x).float(), atol=1e-5, rtol=1e-5)
