"""Models with 4-bit weights: what is rounded to how many bits, and what is in memory."""

from typing import Any

import pytest
import torch

from tests.engine.batching.tiny import new_model_of, new_request, new_runner, prompt, run, tokens
from tis.engine.kernels.int8_spans import Int6Product
from tis.engine.kernels.native import NativeKernels, load_kernels
from tis.engine.weights.cpu_dtype import suit_to_cpu
from tis.engine.weights.int4 import Int4Linear, Int8Embedding
from tis.engine.weights.int8 import Int8Linear
from tis.engine.weights.packed import quantise_weights, weight_bytes_of


@pytest.fixture(params=["avx2", "avx512"])
def kernels(request: pytest.FixtureRequest) -> NativeKernels:
    try:
        return load_kernels(request.getfixturevalue("library"), request.param)
    except OSError as error:
        pytest.skip(str(error))


def of_type(model: Any, kind: type) -> list[Any]:
    return [one for one in model.modules() if isinstance(one, kind)]


def test_layers_have_4_bits_and_the_head_6(qwen3: Any, kernels: NativeKernels) -> None:
    assert quantise_weights(qwen3, kernels, 4) == 15
    assert isinstance(qwen3.lm_head.product, Int6Product) and len(of_type(qwen3, Int4Linear)) == 15
    requests = [new_request(prompt(9, seed)) for seed in range(3)]
    run(new_runner(qwen3), requests)
    assert all(len(tokens(request)) == 12 for request in requests)


def test_a_layer_of_few_outputs_has_8_bits(qwen3: Any, kernels: NativeKernels) -> None:
    layer = qwen3.model.layers[0].self_attn
    layer.chooser = torch.nn.Linear(64, 4, bias=False)
    quantise_weights(qwen3, kernels, 4)
    assert isinstance(layer.chooser, Int8Linear) and isinstance(layer.q_proj, Int4Linear)


@pytest.mark.parametrize("is_tied", [False, True])
@pytest.mark.parametrize("saved", [torch.float32, torch.bfloat16])
def test_weights_that_head_and_embedding_share_are_in_memory_once(
    kernels: NativeKernels, is_tied: bool, saved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tis.engine.weights.cpu_dtype.computes_in_bfloat16", lambda: False)
    model = new_model_of("Qwen3", tie_word_embeddings=is_tied).to(saved)
    quantise_weights(model, kernels, 4)
    suit_to_cpu(model)
    [embedding] = of_type(model, Int8Embedding)
    ids = torch.arange(30)
    assert embedding(ids).dtype is torch.float32
    assert (embedding.num_bytes == 0) == is_tied
    if is_tied:
        rows = model.lm_head.product.weights
        assert torch.equal(embedding(ids), rows[:30])
    request = new_request(prompt(9, 1))
    run(new_runner(model), [request])
    assert len(tokens(request)) == 12


def test_no_float_copy_stays_in_memory(qwen3: Any, kernels: NativeKernels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tis.engine.weights.cpu_dtype.computes_in_bfloat16", lambda: False)
    model = qwen3.to(torch.bfloat16)
    norms = sum(one.numel() for one in model.parameters() if one.ndim == 1)
    matrices = sum(one.numel() for one in model.parameters() if one.ndim == 2)
    quantise_weights(model, kernels, 4)
    suit_to_cpu(model)
    assert weight_bytes_of(model) - 4 * norms < 1.4 * matrices  # those of this model are small, and padded


def test_without_the_kernels_weights_have_8_bits(qwen3: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert quantise_weights(qwen3, None, 4) == 15
    assert len(of_type(qwen3, Int8Linear)) == 15
    assert "QUANTIZE=int4 needs the native kernels" in caplog.text


def test_a_model_that_cannot_be_rounded_says_so(qwen3: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert quantise_weights(qwen3.double(), None, 4) == 0
    assert "QUANTIZE=int4 does not apply: its weights are torch.float64" in caplog.text
