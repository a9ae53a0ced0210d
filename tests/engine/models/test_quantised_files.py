"""Repositories that other packages wrote in 8 or 4 bits are read, and what is not read is refused by name."""

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
from tis.engine.models.packed_files import PackedFiles
from tis.engine.models.quantised_files import (
    asking_for_plain_weights,
    method_of,
    packed_format_of,
    require_readable,
    without_quantisation,
)

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
    "mxfp4": save_mxfp4,
    "int8": saver_with_compressed_tensors("W8A8", "int-quantized"),
    "int4": saver_with_compressed_tensors("W4A16", "pack-quantized"),
    "int4 with zeros": saver_with_compressed_tensors("W4A16_ASYM", "pack-quantized"),
    "int8 of groups": saver_with_compressed_tensors("W8A16", "pack-quantized"),
    "fp8 of outputs": saver_with_compressed_tensors("FP8_DYNAMIC", "float-quantized"),
}


@pytest.mark.parametrize("kind", SAVERS)
def test_the_tokens_are_those_of_the_same_numbers_in_plain_weights(kind: str, tmp_path: Path) -> None:
    new_model = _gpt_oss if kind == "mxfp4" else _model
    expected = SAVERS[kind](new_model(), tmp_path)
    prompts = [prompt(20, 1), prompt(33, 2)]
    answers = [greedy(expected, one, LENGTH) for one in prompts]
    assert answers != [greedy(new_model(), one, LENGTH) for one in prompts], "the weights were rounded"
    runner = choose_runner(_read(tmp_path), TOKENIZER, 512, BatchLimits(cache_tokens=1024)).new()
    assert isinstance(runner, BatchRunner)
    requests = [new_request(one, max_tokens=LENGTH) for one in prompts]
    assert not run(runner, requests).errors
    assert [tokens(request) for request in requests] == answers


def _read(folder: Path) -> Any:
    """With plain weights."""
    config = transformers.AutoConfig.from_pretrained(folder)
    require_readable(config)
    if form := packed_format_of(config):
        return (
            PackedFiles(folder, without_quantisation(config), form)
            .read(
                transformers.AutoModelForCausalLM,
                "float32",
                may_stay_packed=False,
                trust_remote_code=False,
                device_map="cpu",
            )
            .eval()
        )
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, config=asking_for_plain_weights(config)
    ).eval()


def compressed(**more: Any) -> dict[str, Any]:
    group = {"weights": {"num_bits": 4, "type": "int"}, "format": "pack-quantized", **more.pop("group", {})}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, **more}


UNREAD: dict[str, tuple[dict[str, Any], str]] = {
    "3 bits": ({"quant_method": "gptq", "bits": 3, "group_size": 128}, "GPTQ: 3 bits"),
    "2 bits": ({"quant_method": "gptq", "bits": 2, "group_size": 64}, "GPTQ: 2 bits"),
    "no bits": ({"quant_method": "gptq"}, "GPTQ: 0 bits"),
    "marlin": ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}, "GPTQ: the layout 'marlin'"),
    "old marlin": ({"quant_method": "gptq", "bits": 4, "is_marlin_format": True}, "GPTQ: the layout 'marlin'"),
    "other words": ({"quant_method": "gptq", "bits": 4, "pack_dtype": "int16"}, "words of int16"),
    "gemv": ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "AWQ: the layout 'gemv'"),
    "awq of 8": ({"quant_method": "awq", "bits": 8}, "AWQ: 8 bits"),
    "marlin-24": (compressed(group={"format": "marlin-24"}), "compressed-tensors: the layout 'marlin-24'"),
    "nvfp4": (compressed(group={"format": "nvfp4-pack-quantized"}), "the layout 'nvfp4-pack-quantized'"),
    "fp4": (
        compressed(group={"weights": {"num_bits": 4, "type": "float"}}),
        "compressed-tensors: numbers \\(float\\) of 4 bits",
    ),
    "rotated": (compressed(transform_config={"config_groups": {"a": {}}}), "a transform_config"),
    "sparse": (compressed(sparsity_config={"format": "sparse-24-bitmask"}), "a sparsity_config"),
    "no groups": ({"quant_method": "compressed-tensors"}, "no config_groups"),
    "text for a number": ({"quant_method": "gptq", "bits": "four"}, "bits 'four': that is no whole number"),
    "far too large": ({"quant_method": "awq", "group_size": 10**30}, "group_size '1000"),
    "bitsandbytes": ({"load_in_4bit": True}, "bitsandbytes, which needs a GPU"),
    **{
        method: ({"quant_method": method}, f"saved with {method}, which this server does not read")
        for method in ("hqq", "nvfp4", "aqlm", "auto-round", "quanto", "torchao", "something-new")
    },
}


@pytest.mark.skipif(torch.accelerator.is_available(), reason="on a GPU Transformers may read more")
@pytest.mark.parametrize("name", UNREAD)
def test_what_is_not_read_is_refused_by_name(name: str) -> None:
    quantisation, reason = UNREAD[name]
    config = transformers.Qwen3Config()
    config.quantization_config = quantisation
    assert method_of(config)
    with pytest.raises(LoadFailed, match=reason):
        require_readable(config)


def test_plain_weights_need_nothing() -> None:
    config = transformers.Qwen3Config()
    require_readable(config)
    assert method_of(config) is None and asking_for_plain_weights(config) is None and packed_format_of(config) is None
