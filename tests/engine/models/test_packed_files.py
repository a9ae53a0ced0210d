"""Packed repositories that are wrong are refused with the name of what is wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from tests.engine.conftest import DEMO
from tests.engine.gguf_files import tiny_model
from tests.engine.packed_models import PACKINGS, write_packed
from tis.engine.errors import LoadFailed
from tis.engine.models.loading import LoadOptions, load_model

pytestmark = pytest.mark.model

LAYER = "model.layers.1.mlp.down_proj"


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_model(transformers, "Qwen3", len(transformers.AutoTokenizer.from_pretrained(DEMO)))


def load(folder: Path, **options: Any) -> Any:
    return load_model(str(folder), LoadOptions(device_map="cpu", **options), lambda stage, share: None)


def new(part: str, tensor: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    name = f"{LAYER}.{part}"
    return lambda tensors: tensors.update({name: tensor(tensors[name])})


def without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda tensors: tensors.__delitem__(name)


def with_nan(scales: Any) -> Any:
    scales[0, 0] = torch.nan
    return scales


def shuffled(g_idx: Any) -> Any:
    return torch.zeros_like(g_idx) + (torch.arange(len(g_idx)) % 3 == 0).int()


WRONG: dict[str, tuple[str, Callable[[dict[str, Any]], None], str]] = {
    "scales of too many groups": ("gptq", new("scales", lambda one: torch.cat([one, one])), "do not fit each other"),
    "zeros of other outputs": ("gptq", new("qzeros", lambda one: one[:, :3]), "do not fit each other"),
    "words of too few inputs": ("gptq", new("qweight", lambda one: one[:-1]), "do not fit each other"),
    "words of another type": ("gptq", new("qweight", lambda one: one.float()), "a tensor qweight of F32"),
    "words in three dimensions": ("gptq", new("qweight", lambda one: one[None]), "a tensor qweight of I32"),
    "words of nothing": ("gptq", new("qweight", lambda one: one[:0]), "a tensor qweight of I32"),
    "no zeros": ("gptq", without(f"{LAYER}.qzeros"), "no qzeros"),
    "no scales": ("awq", without(f"{LAYER}.scales"), "no scales"),
    "no words": ("compressed", without(f"{LAYER}.weight_packed"), "no weight"),
    "scales that are no numbers": ("gptq", new("scales", with_nan), "scales that are no numbers"),
    "scales that are infinite": ("awq", new("scales", lambda one: one * torch.inf), "scales that are no numbers"),
    "a scale of fp8 that is none": ("fp8", new("weight_scale_inv", with_nan), "scales that are no numbers"),
    "groups behind the last": ("gptq", new("g_idx", lambda one: one + 1), "a g_idx that does not divide"),
    "groups before the first": ("gptq", new("g_idx", lambda one: one - 1), "a g_idx that does not divide"),
    "groups of several sizes": ("gptq", new("g_idx", shuffled), "a g_idx that does not divide"),
    "an order in two dimensions": ("gptq", new("g_idx", lambda one: one.expand(300, -1)), "a tensor g_idx of I32"),
    "an order of floats": ("gptq", new("g_idx", lambda one: one.to(torch.float8_e4m3fn)), "a tensor g_idx of F8_E4M3"),
    "an order of too few inputs": ("gptq", new("g_idx", lambda one: one[:-32]), "do not fit each other"),
    "awq of other outputs": ("awq", new("qzeros", lambda one: one[:, 1:]), "do not fit each other"),
    "groups that do not divide": ("awq", new("scales", lambda one: one[:3]), "do not fit each other"),
    "a shape of other outputs": ("compressed", new("weight_shape", lambda one: one + 1), "do not fit each other"),
    "a shape without end": (
        "compressed",
        new("weight_shape", lambda one: torch.tensor([one[0], 2**62])),
        "neither 4 bits nor 8",
    ),
    "a negative shape": ("compressed", new("weight_shape", lambda one: -one), "do not fit each other"),
    "scales of no outputs": ("compressed", new("weight_scale", lambda one: one[:100]), "groups of"),
    "zeros in another shape": ("compressed with zeros", new("weight_zero_point", lambda one: one.T), "do not fit"),
    "a scale for each third": ("w8a8", new("weight_scale", lambda one: one[:3]), "3 groups of 256"),
    "scales in blocks of another size": ("fp8", new("weight_scale_inv", lambda one: one[:, :3]), "3 groups of 512"),
    "another width than config.json says": (
        "fp8",
        new("weight", lambda one: one[:, :256]),
        "weights of \\[256, 256\\], and config.json asks for",
    ),
    "a missing norm": ("gptq", without("model.norm.weight"), "has no weights for model.norm.weight"),
    "a norm of another width": (
        "gptq",
        lambda tensors: tensors.update({"model.norm.weight": torch.ones(7)}),
        "model.norm.weight is \\[7\\], and config.json asks for",
    ),
    "scaled activations": (
        "awq",
        lambda tensors: tensors.update({"model.layers.0.mlp.act.scales": torch.ones(7)}),
        "divides activations by model.layers.0.mlp.act.scales",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_tensors_that_are_wrong_are_refused_by_name(name: str, model: Any, tmp_path: Path) -> None:
    packing, change, reason = WRONG[name]
    write_packed(tmp_path / "model", model, PACKINGS[packing], change=change)
    with pytest.raises(LoadFailed, match=reason) as refused:
        load(tmp_path / "model")
    message = refused.value.message
    assert "model.safetensors" in message or message.startswith("model ")
    assert any(part in message for part in (LAYER, "norm.weight", "act.scales"))


def test_a_tensor_that_is_of_no_layer_is_left_out(model: Any, tmp_path: Path) -> None:
    more = {"qweight": torch.zeros(4, 4, dtype=torch.int32)}
    write_packed(tmp_path / "model", model, PACKINGS["gptq"], change=lambda tensors: tensors.update(more))
    assert load(tmp_path / "model").footprint


def test_a_missing_layer_is_named(model: Any, tmp_path: Path) -> None:
    def remove(tensors: dict[str, Any]) -> None:
        for name in [one for one in tensors if one.startswith(LAYER)]:
            del tensors[name]

    write_packed(tmp_path / "model", model, PACKINGS["gptq"], change=remove)
    with pytest.raises(LoadFailed, match=f"has no weights for {LAYER}.weight"):
        load(tmp_path / "model")


def test_a_config_that_promises_packed_weights_is_not_believed(model: Any, tmp_path: Path) -> None:
    write_packed(tmp_path / "model", model, PACKINGS["awq"], packed=lambda name: False)
    with pytest.raises(LoadFailed, match="says that weights are packed by AWQ, and no tensor is named qweight"):
        load(tmp_path / "model")


@pytest.mark.parametrize("size", [0, 5, 1000, -100_000])
def test_a_file_that_ends_too_early_is_refused(size: int, model: Any, tmp_path: Path) -> None:
    write_packed(tmp_path / "model", model, PACKINGS["gptq"])
    file = tmp_path / "model" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(LoadFailed, match="model.safetensors cannot be read as safetensors"):
        load(tmp_path / "model")


def test_a_tensor_that_claims_more_than_the_file_has_is_refused(model: Any, tmp_path: Path) -> None:
    write_packed(tmp_path / "model", model, PACKINGS["gptq"])
    file = tmp_path / "model" / "model.safetensors"
    header = json.dumps({"a.qweight": {"dtype": "I32", "shape": [2**40, 2**20], "data_offsets": [0, 2**62]}}).encode()
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(64))
    with pytest.raises(LoadFailed, match="cannot be read as safetensors"):
        load(tmp_path / "model")


@pytest.mark.parametrize(
    "file", ["../model.safetensors", "/etc/passwd", "missing.safetensors", 7, ["model.safetensors"]]
)
def test_an_index_names_files_of_its_folder_alone(file: Any, model: Any, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    write_packed(folder, model, PACKINGS["gptq"])
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": file}}))
    with pytest.raises(LoadFailed, match="is not among the weights"):
        load(folder)


def test_files_in_parts_and_files_of_any_name_are_read(model: Any, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    write_packed(folder, model, PACKINGS["gptq"])
    (folder / "model.safetensors").rename(folder / "gptq_model-4bit-128g.safetensors")
    whole = load(folder)
    tensors = load_file(folder / "gptq_model-4bit-128g.safetensors")
    names = sorted(tensors)
    parts = {"one.safetensors": names[::2], "two.safetensors": names[1::2]}  # layers are divided
    for file, some in parts.items():
        save_file({name: tensors[name] for name in some}, folder / file, {"format": "pt"})
    with pytest.raises(LoadFailed, match="has 3 files of weights, and no model.safetensors.index.json"):
        load(folder)
    weight_map = {name: file for file, some in parts.items() for name in some}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    assert load(folder).footprint == whole.footprint


def test_settings_for_plain_weights_do_not_apply(model: Any, tmp_path: Path) -> None:
    write_packed(tmp_path / "model", model, PACKINGS["gptq"])
    with pytest.raises(LoadFailed, match=r"LOAD_IN_\dBIT"):
        load(tmp_path / "model", load_in_8bit=True)
