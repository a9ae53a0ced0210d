"""A model that was saved with FP8 weights is computed with what they stand for, where there is no GPU for them."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.engine.batching.tiny import run, tokens
from tests.engine.models.sized_models import build_model
from tis.engine.models.loading import LoadOptions, load_model
from tis.engine.prepared_request import PreparedRequest
from tis.engine.request import Request
from tis.engine.sampling.params import SamplingParams

BLOCK = 128  # rows and columns that share a scale


def save(folder: Path, weights: dict[str, torch.Tensor], **config: object) -> Path:
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "dtype": "bfloat16", **config}))
    return folder


def answer_of(folder: Path) -> list[int]:
    model = load_model(str(folder), LoadOptions(device_map="cpu"), lambda stage, share: None)
    prompt_ids = model.tokenizer.encode_text("Hello there, how are you today?")
    params = SamplingParams(temperature=0, max_tokens=12)
    request = Request(PreparedRequest("m", "r", model.tokenizer, prompt_ids, params, 1))
    assert not run(model.new_runner(), [request]).errors
    return tokens(request)


@pytest.mark.skipif(torch.cuda.is_available(), reason="on a GPU the weights stay FP8, whose sums are rounded")
@pytest.mark.model
def test_fp8_weights_are_multiplied_by_their_scales(tmp_path: Path) -> None:
    saved, meant = build_model(tmp_path / "saved", num_layers=2), build_model(tmp_path / "meant", num_layers=2)
    packed: dict[str, torch.Tensor] = {}
    plain: dict[str, torch.Tensor] = {}
    for name, weight in load_file(saved / "model.safetensors").items():
        packed[name] = plain[name] = weight.to(torch.bfloat16)
        if name.endswith("proj.weight"):
            rows, columns = weight.shape
            blocks = 8 * weight.view(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK)  # so that scales matter
            scale = blocks.abs().amax((1, 3)) / 448
            packed[name] = (blocks / scale[:, None, :, None]).to(torch.float8_e4m3fn).view(rows, columns)
            packed[f"{name}_scale_inv"] = scale
            again = packed[name].float().view_as(blocks) * scale[:, None, :, None]
            plain[name] = again.view(rows, columns).to(torch.bfloat16)
    how = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [BLOCK, BLOCK]}
    assert answer_of(save(saved, packed, quantization_config=how)) == answer_of(save(meant, plain))
