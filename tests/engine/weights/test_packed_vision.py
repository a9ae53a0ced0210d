"""A packed vision tower gives the features of the plain one, bit for bit."""

from typing import Any

import pytest
import torch

from tests.engine.batching.tiny import new_model
from tests.engine.batching.tiny_vision import VISION_MODELS, VisionPrompt, new_vision_model
from tests.engine.batching.vision_families import VISION_FAMILIES, FamilyPrompt, new_family
from tis.engine.batching.towers import EncodeJob, ForwardTower, layer_stacks
from tis.engine.weights.packed import PackedLinear
from tis.engine.weights.packed_vision import pack_vision_tower


def _features(model: Any) -> list[torch.Tensor]:
    patches = VisionPrompt(model).picture(8, 8, 1).vision_inputs[0].patches
    with torch.inference_mode():
        out = model.base_model.get_image_features(patches, torch.tensor([[1, 8, 8]]), return_dict=True)
    return [out.pooler_output[0], *(layer[0] for layer in getattr(out, "deepstack_features", None) or [])]


@pytest.mark.skipif(not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="this CPU cannot multiply bfloat16")
@pytest.mark.parametrize("architecture", VISION_MODELS)
def test_a_packed_tower_gives_the_same_features(architecture: str) -> None:
    model = new_vision_model(architecture).to(torch.bfloat16)
    plain = _features(model)
    num_packed = pack_vision_tower(model)
    assert num_packed == sum(isinstance(module, PackedLinear) for module in model.base_model.visual.modules()) > 0
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(_features(model), plain, strict=True))


@pytest.mark.skipif(not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="this CPU cannot multiply bfloat16")
def test_a_packed_tower_of_another_family_gives_the_same_features() -> None:
    model = new_family("llava").to(torch.bfloat16)
    picture = FamilyPrompt(model, VISION_FAMILIES["llava"]).picture(1, 1).vision_inputs[0]
    tower = ForwardTower(model, looks_ahead=False)
    with torch.inference_mode():
        [plain] = tower.encode([EncodeJob(picture, 0, 1)])
        assert pack_vision_tower(model, layer_stacks(model)) == 18  # three layers of six
        [packed] = tower.encode([EncodeJob(picture, 0, 1)])
    assert torch.equal(packed.tokens, plain.tokens)


def test_where_packing_would_change_bits_the_tower_stays_as_it_is() -> None:
    assert pack_vision_tower(new_vision_model("qwen3_vl")) == 0  # float32


def test_a_model_without_a_tower_has_nothing_to_pack() -> None:
    assert pack_vision_tower(new_model("qwen2").to(torch.bfloat16)) == 0
