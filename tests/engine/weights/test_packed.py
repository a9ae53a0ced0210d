from typing import Any

import pytest
import torch

from tests.engine.batching.tiny import greedy, new_request, new_runner, prompt, run, tokens
from tis.engine.weights.cpu_dtype import suit_to_cpu
from tis.engine.weights.packed import PackedLinear, pack_weights


def _packed(model: Any) -> list[Any]:
    return [module for module in model.modules() if isinstance(module, PackedLinear)]


def test_packed_weights_give_the_tokens_of_generate(model: Any) -> None:
    prompts = [prompt(length, length) for length in (5, 30, 1)]
    expected = [greedy(model, one, 12) for one in prompts]
    if not pack_weights(model):
        pytest.skip("nothing is packed on this machine")
    requests = [new_request(one) for one in prompts]
    run(new_runner(model, tokens_per_step=9), requests)
    assert [tokens(request) for request in requests] == expected


def test_all_and_only_the_matrices_of_the_text_part_are_packed(qwen3: Any) -> None:
    assert pack_weights(qwen3) == len(_packed(qwen3)) == 2 * 7 + 1


def test_a_model_that_others_have_quantised_in_float16_keeps_its_head(
    qwen3: Any, caplog: pytest.LogCaptureFixture
) -> None:
    qwen3.half().is_quantized = True
    suit_to_cpu(qwen3)
    assert pack_weights(qwen3) == 0 and qwen3.dtype is torch.float16
    assert not caplog.records  # nothing is tried


@pytest.mark.parametrize("saved", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("has_instructions", [True, False])
def test_16_bit_weights_are_computed_in_what_the_cpu_has_instructions_for(
    qwen3: Any, saved: Any, has_instructions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tis.engine.weights.cpu_dtype.computes_in_bfloat16", lambda: has_instructions)
    model = qwen3
    for parameter in model.parameters():
        parameter.data = parameter.data.to(saved)
    frequencies = model.model.rotary_emb.inv_freq.clone()
    suit_to_cpu(model)
    pack_weights(model)
    assert model.model.norm.weight.dtype == (torch.bfloat16 if has_instructions else torch.float32)
    assert torch.equal(model.model.rotary_emb.inv_freq, frequencies)
    request = new_request(prompt(9, 1))
    run(new_runner(model), [request])
    assert len(tokens(request)) == 12


def test_if_packing_fails_the_model_is_unchanged(
    qwen3: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tis.engine")

    def fail(linear: Any) -> Any:
        raise RuntimeError("not on this machine")

    monkeypatch.setattr("tis.engine.weights.packed.PackedLinear", fail)
    assert pack_weights(qwen3) == 0
    assert type(qwen3.lm_head) is torch.nn.Linear and "not on this machine" in caplog.text


def test_if_packing_changes_results_the_model_is_unchanged(qwen3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tis.engine.weights.packed.PackedLinear", lambda linear: lambda x: linear(x) + 1)
    assert pack_weights(qwen3) == 0
