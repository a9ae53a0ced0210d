"""Experts in native products give the tokens of model.generate(); what computes something else is left alone."""

import weakref
from typing import Any

import pytest
import torch
from transformers import GptOssConfig
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssExperts

from tests.engine.batching.families import FAMILIES
from tests.engine.batching.tiny import TOKENIZER, greedy, new_model_of, new_request, prompt, run, tokens
from tis.engine.batching.choose_runner import choose_runner
from tis.engine.batching.limits import BatchLimits
from tis.engine.kernels.integer_product import takes_integers
from tis.engine.kernels.native import NativeKernels, native_kernels
from tis.engine.weights.fused_experts import FusedExperts, fuse_experts
from tis.engine.weights.packed import weight_bytes_of

# A plain router, groups of experts with shared ones beside them, an activation of its own, another name of the block.
DIFFERENT = ("Qwen3Moe", "Qwen2Moe", "Mixtral", "Olmoe", "Glm4Moe", "DeepseekV3", "GptOss", "GraniteMoeShared")
BATCHED = ("Qwen3Moe", "Mixtral", "Olmoe", "Glm4Moe")
LENGTHS = (5, 30, 1, 17)
UNPADDED = {"moe_intermediate_size": 64, "intermediate_size": 64}


@pytest.fixture
def kernels() -> NativeKernels:
    return native_kernels() or pytest.skip("the native kernels are not built here")


def new_mixture(family: str, **more: Any) -> Any:
    kind, sizes = FAMILIES[family]
    return new_model_of(kind, **(sizes | more))


def fused_in(model: Any) -> list[FusedExperts]:
    return [module for module in model.modules() if isinstance(module, FusedExperts)]


def answered(model: Any, prompts: list[list[int]], **limits: Any) -> list[list[int]]:
    runner = choose_runner(model, TOKENIZER, 512, BatchLimits(cache_tokens=2048, tokens_per_step=24, **limits)).new()
    requests = [new_request(one) for one in prompts]
    assert not run(runner, requests).errors
    return [tokens(request) for request in requests]


@pytest.mark.parametrize("family", DIFFERENT)
def test_experts_of_every_kind_are_fused_and_held_once(kernels: NativeKernels, family: str) -> None:
    model = new_mixture(family)
    matrices = [one for one in model.parameters() if one.ndim == 3]
    matrices_bytes, before = sum(one.nbytes for one in matrices), weight_bytes_of(model)
    assert fuse_experts(model, kernels) == len(matrices) // 2 == len(fused_in(model))
    assert not [one for one in model.parameters() if one.ndim == 3]
    # The tiny matrices are padded to whole blocks.
    padding = sum(one.num_bytes for one in fused_in(model)) - matrices_bytes
    biases = 2 * 4 * (64 + 2 * 96) * 4 if family == "GptOss" else 0
    assert weight_bytes_of(model) == before + padding - biases


def test_a_layer_is_freed_before_the_next_is_packed(kernels: NativeKernels, monkeypatch: pytest.MonkeyPatch) -> None:
    model = new_mixture("Olmoe")
    layers = [weakref.ref(layer.mlp.experts.down_proj) for layer in model.model.layers]
    alive = []

    def new(*args: Any, **kwargs: Any) -> Any:
        alive.append([layer() is not None for layer in layers])
        return FusedExperts(*args, **kwargs)

    monkeypatch.setattr("tis.engine.weights.fused_experts.FusedExperts", new)
    assert fuse_experts(model, kernels) == 2
    assert alive == [[True, True], [False, True]] and [layer() for layer in layers] == [None, None]


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("family", BATCHED)
def test_weights_from_bfloat16_take_half_the_bytes(family: str) -> None:
    model = new_mixture(family, **UNPADDED)
    for parameter in model.parameters():
        parameter.data = parameter.data.bfloat16().float()
    matrices_bytes = sum(one.nbytes for one in model.parameters() if one.ndim == 3)
    prompts = [prompt(length, length) for length in LENGTHS]
    expected = [greedy(model, one, 12) for one in prompts]
    assert answered(model, prompts) == expected
    assert 2 * sum(one.num_bytes for one in fused_in(model)) == matrices_bytes


@pytest.mark.parametrize("native_kernels", [True, False], ids=["kernels", "plain"])
def test_one_row_alone_with_its_expert_has_the_tokens_of_generate(native_kernels: bool) -> None:
    """There are more experts than rows choose, so that most of them have one row or none."""
    model = new_mixture("Qwen3Moe", num_experts=40, num_experts_per_tok=3)
    prompts = [prompt(length, length) for length in LENGTHS]
    expected = [greedy(model, one, 12) for one in prompts]
    assert answered(model, prompts, native_kernels=native_kernels) == expected


@pytest.mark.parametrize("native_kernels", [True, False], ids=["kernels", "plain"])
@pytest.mark.parametrize("family", BATCHED)
def test_experts_that_are_equally_good_are_chosen_as_generate_does(family: str, native_kernels: bool) -> None:
    model = new_mixture(family)
    routers = [one for name, one in model.named_parameters() if one.shape == (4, 64) and "mlp" in name]
    assert routers
    for router in routers:
        router.data[1:] = router.data[:1]
    prompts = [prompt(length, length) for length in LENGTHS]
    expected = [greedy(model, one, 12) for one in prompts]
    assert answered(model, prompts, native_kernels=native_kernels) == expected


@pytest.mark.parametrize(("quantisation", "share"), [("int8", 4), ("int4", 64 / 9)])
@pytest.mark.parametrize("family", BATCHED)
def test_experts_are_integers_where_that_is_wanted(
    kernels: NativeKernels, family: str, quantisation: str, share: float
) -> None:
    if not takes_integers(kernels, 8 if quantisation == "int8" else 4, 64):
        pytest.skip("this CPU has no kernel for such weights")
    model = new_mixture(family, **UNPADDED)
    matrices_bytes = sum(one.nbytes for one in model.parameters() if one.ndim == 3)
    prompts = [prompt(length, length) for length in LENGTHS]
    together = answered(model, prompts, quantisation=quantisation)
    assert share * sum(one.num_bytes for one in fused_in(model)) == matrices_bytes
    # Rows have the same results beside any others; with weights of 8 bits in steps of fewer than 64.
    assert together == [
        answered(new_mixture(family, **UNPADDED), [one], quantisation=quantisation)[0] for one in prompts
    ]


def test_gates_that_are_clamped_stay_the_models_own(kernels: NativeKernels) -> None:
    torch.manual_seed(0)
    config = GptOssConfig(hidden_size=64, intermediate_size=48, num_local_experts=5, experts_implementation="eager")
    experts = GptOssExperts(config)
    for parameter in experts.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    x, chosen, shares = torch.randn(9, 64), torch.randint(5, (9, 2)), torch.rand(9, 2)
    expected = experts(x, chosen, shares)
    model = Holder(experts)
    assert fuse_experts(model, kernels) == 1
    assert torch.allclose(model.experts(x, chosen, shares), expected, rtol=1e-4, atol=1e-4)
    assert not [*model.parameters()]


class Holder(torch.nn.Module):  # type: ignore[misc]
    """As much of a model as holds one module."""

    device, dtype = torch.device("cpu"), torch.float32

    def __init__(self, experts: Any) -> None:
        super().__init__()
        self.experts = experts

    def get_decoder(self) -> Any:
        return self


class TestExpertsLeftAlone:
    @pytest.mark.parametrize("change", [lambda x: x.clamp(-1, 1), lambda x: x * 1.01, lambda x: x[..., :8]])
    def test_experts_whose_results_differ(self, kernels: NativeKernels, change: Any) -> None:
        model = new_mixture("Qwen3Moe")
        first, second = (layer.mlp for layer in model.model.layers)
        plain = first.experts.forward
        first.experts.forward = lambda *args: change(plain(*args))
        assert fuse_experts(model, kernels) == 1
        assert not isinstance(first.experts, FusedExperts) and isinstance(second.experts, FusedExperts)

    def test_experts_with_more_parameters(self, kernels: NativeKernels) -> None:
        model = new_mixture("Qwen3Moe")
        model.model.layers[0].mlp.experts.more = torch.nn.Parameter(torch.zeros(1))
        assert fuse_experts(model, kernels) == 1

    def test_models_that_another_library_has_quantised(self, kernels: NativeKernels) -> None:
        model = new_mixture("Qwen3Moe")
        model.is_quantized = True
        assert fuse_experts(model, kernels) == 0

    def test_all_experts_if_kernels_are_off(self) -> None:
        model = new_mixture("Qwen3Moe")
        answered(model, [prompt(5, 1)], native_kernels=False)
        assert not fused_in(model)

    def test_another_model_of_the_same_class(self, kernels: NativeKernels) -> None:
        other = new_mixture("Qwen3Moe")
        fuse_experts(new_mixture("Qwen3Moe"), kernels)
        assert not fused_in(other)
