"""Repositories with weights of 8 or 4 bits answer as the same numbers do in plain weights, or say what is missing."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from compressed_tensors.compressors import ModelCompressor
from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config, preset_name_to_scheme
from compressed_tensors.quantization.utils import calculate_qparams
from safetensors.torch import save_file

from tests.engine.batching.tiny import TOKENIZER, greedy, new_model_of, new_request, prompt, run, tokens
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.choose_runner import choose_runner
from tis.engine.batching.limits import BatchLimits
from tis.engine.errors import LoadFailed
from tis.engine.models.quantised_files import asking_for_plain_weights, method_of, require_readable

BLOCK = 128
LENGTH = 12


def _model() -> Any:
    return new_model_of("Qwen3", hidden_size=128, intermediate_size=256, head_dim=32)


def _gpt_oss() -> Any:
    return new_model_of(
        "GptOss", num_local_experts=4, num_experts_per_tok=2, head_dim=32, hidden_size=128, intermediate_size=128
    )


def _write(folder: Path, model: Any, tensors: dict[str, Any], quantisation: dict[str, Any]) -> None:
    save_file(
        {name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors", {"format": "pt"}
    )
    config = {**model.config.to_dict(), "architectures": [type(model).__name__], "dtype": "float32"}
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": quantisation}))


def save_fp8(model: Any, folder: Path) -> Any:
    """As DeepSeek and Qwen publish it: a scale for each block of 128 x 128. Returns the model with those numbers."""
    plain, tensors = copy.deepcopy(model), dict(model.state_dict())
    for name, weight in plain.state_dict().items():
        if not name.endswith("proj.weight"):
            continue
        rows, columns = (-(-size // BLOCK) for size in weight.shape)
        scales, eighths = torch.zeros(rows, columns), torch.zeros_like(weight, dtype=torch.float8_e4m3fn)
        for row in range(rows):
            for column in range(columns):
                block = slice(row * BLOCK, (row + 1) * BLOCK), slice(column * BLOCK, (column + 1) * BLOCK)
                scale = weight[block].abs().max() / 448
                scales[row, column], eighths[block] = scale, (weight[block] / scale).to(torch.float8_e4m3fn)
                weight[block] = eighths[block].float() * scale
        tensors |= {name: eighths, f"{name}_scale_inv": scales}
    _write(
        folder,
        model,
        tensors,
        {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [BLOCK, BLOCK]},
    )
    return plain


def save_mxfp4(model: Any, folder: Path) -> Any:
    """As gpt-oss is published: experts in 4 bits, with a power of two for each 32 numbers."""
    plain, tensors = copy.deepcopy(model), dict(model.state_dict())
    values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    values = torch.cat([values, -values])
    for name, weight in plain.state_dict().items():
        if not name.endswith(("gate_up_proj", "down_proj")):
            continue
        groups = weight.mT.contiguous().unflatten(-1, (-1, 32))
        powers = (groups.abs().amax(-1, keepdim=True) / 6).log2().ceil()
        codes = ((groups / powers.exp2())[..., None] - values).abs().argmin(-1)
        weight.copy_((values[codes] * powers.exp2()).flatten(-2).mT)
        del tensors[name]
        tensors[f"{name}_blocks"] = (codes[..., ::2] + 16 * codes[..., 1::2]).to(torch.uint8)
        tensors[f"{name}_scales"] = (powers[..., 0] + 127).to(torch.uint8)
    _write(folder, model, tensors, {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]})
    return plain


def saver_with_compressed_tensors(preset: str, form: str) -> Callable[[Any, Path], Any]:
    """As llm-compressor publishes it, without its calibration."""

    def save(model: Any, folder: Path) -> Any:
        compressed = copy.deepcopy(model)
        schemes = {"group_0": preset_name_to_scheme(preset, ["Linear"])}
        apply_quantization_config(
            compressed,
            QuantizationConfig(config_groups=schemes, ignore=["lm_head"], format=form, quantization_status="frozen"),
        )
        for module in compressed.modules():
            if scheme := getattr(module, "quantization_scheme", None):
                kind = scheme.weights
                grouped = module.weight.unflatten(-1, (-1, kind.group_size)) if kind.group_size else module.weight
                keep = not kind.group_size
                scale, zero = calculate_qparams(grouped.amin(-1, keepdim=keep), grouped.amax(-1, keepdim=keep), kind)
                module.weight_scale.data.copy_(scale)
                if hasattr(module, "weight_zero_point"):
                    module.weight_zero_point.data.copy_(zero)
        compressor = ModelCompressor.from_pretrained_model(compressed)
        compressor.compress_model(compressed)
        compressed.save_pretrained(folder)
        compressor.update_config(folder)
        compressor.decompress_model(compressed)
        plain = copy.deepcopy(model)
        numbers = compressed.state_dict()
        plain.load_state_dict({name: numbers[name] for name in plain.state_dict()})
        return plain

    return save


SAVERS = {
    "fp8": save_fp8,
    "mxfp4": save_mxfp4,
    "int8": saver_with_compressed_tensors("W8A8", "int-quantized"),
    "int4": saver_with_compressed_tensors("W4A16", "pack-quantized"),
    "fp8 of compressed-tensors": saver_with_compressed_tensors("FP8_DYNAMIC", "float-quantized"),
}


@pytest.mark.parametrize("kind", SAVERS)
def test_the_tokens_are_those_of_the_same_numbers_in_plain_weights(kind: str, tmp_path: Path) -> None:
    new_model = _gpt_oss if kind == "mxfp4" else _model
    expected = SAVERS[kind](new_model(), tmp_path)
    prompts = [prompt(20, 1), prompt(33, 2)]
    answers = [greedy(expected, one, LENGTH) for one in prompts]
    assert answers != [greedy(new_model(), one, LENGTH) for one in prompts], "the weights were rounded"
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    require_readable(config)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, dtype=torch.float32, config=asking_for_plain_weights(config)
    ).eval()
    runner = choose_runner(model, TOKENIZER, 512, BatchLimits(cache_tokens=1024)).new()
    assert isinstance(runner, BatchRunner)
    requests = [new_request(one, max_tokens=LENGTH) for one in prompts]
    assert not run(runner, requests).errors
    assert [tokens(request) for request in requests] == answers


@pytest.mark.parametrize(
    ("quantisation", "missing"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "pip install optimum gptqmodel"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "pip install gptqmodel"),
        ({"load_in_4bit": True}, "bitsandbytes"),
    ],
)
def test_what_is_missing_is_named(quantisation: dict[str, Any], missing: str) -> None:
    config = transformers.Qwen3Config(quantization_config=quantisation)
    assert method_of(config)
    with pytest.raises(LoadFailed, match=missing):
        require_readable(config)


def test_plain_weights_need_nothing() -> None:
    config = transformers.Qwen3Config()
    require_readable(config)
    assert method_of(config) is None and asking_for_plain_weights(config) is None
