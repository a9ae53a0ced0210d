"""Requests of LoRA adapters, in one batch with those of their base, get the tokens that PEFT computes alone."""

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import GenerationConfig

from tests.engine.adapters import save_adapter
from tests.engine.batching.families import FAMILIES
from tests.engine.batching.tiny import TOKENIZER, greedy, new_model, new_model_of, prompt, run, tokens
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.choose_runner import choose_runner
from tis.engine.batching.limits import BatchLimits
from tis.engine.batching.turn_runner import TurnRunner
from tis.engine.errors import LoadFailed
from tis.engine.prepared_request import PreparedRequest
from tis.engine.request import Request
from tis.engine.runner import Runner
from tis.engine.sampling.params import SamplingParams
from tis.engine.weights.lora_files import read_adapter

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # of PEFT itself

LENGTH = 14
USUAL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# Adapters of one base: of all layers and of some, with other ranks, and with the scales that PEFT has.
ADAPTERS: dict[str, dict[str, Any]] = {
    "all": {"r": 8, "lora_alpha": 16, "target_modules": USUAL},
    "queries": {"r": 3, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"], "use_rslora": True},
    "patterns": {
        "r": 4,
        "lora_alpha": 8,
        "target_modules": ["down_proj", "up_proj"],
        "rank_pattern": {"layers.0.mlp.up_proj": 2},
        "alpha_pattern": {"layers.1.mlp.down_proj": 20},
    },
}


def _greedy(adapted: Any, prompt_ids: list[int]) -> list[int]:
    adapted.generation_config = GenerationConfig(pad_token_id=0)
    return greedy(adapted, prompt_ids, LENGTH)


def _request(prompt_ids: list[int], adapter: str, **params: Any) -> Request:
    asked = SamplingParams(**({"temperature": 0.0, "max_tokens": LENGTH, "ignore_eos": True} | params))
    return Request(PreparedRequest("tiny", "r1", TOKENIZER, prompt_ids, asked, 11, adapter=adapter))


def _runner(model: Any, folders: dict[str, Path], **limits: Any) -> Runner:
    adapters = [read_adapter(name, folder) for name, folder in folders.items()]
    asked = BatchLimits(**({"cache_tokens": 2048} | limits))
    return choose_runner(model, TOKENIZER, 512, asked, adapters=adapters).new()


def _answers(runner: Runner, asked: list[tuple[str, list[int]]], **params: Any) -> list[list[int]]:
    requests = [_request(prompt_ids, adapter, **params) for adapter, prompt_ids in asked]
    readers = run(runner, requests, every=2)
    assert not readers.errors
    return [tokens(request) for request in requests]


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("kind", ["qwen3", "qwen2", "gemma3"])
def test_a_batch_of_adapters_and_their_base_gives_the_tokens_of_peft(kind: str, kernels: bool, tmp_path: Path) -> None:
    model = new_model(kind)
    peers = {
        name: save_adapter(model, tmp_path / name, seed, **config)
        for seed, (name, config) in enumerate(ADAPTERS.items())
    }
    asked = [(name, prompt(9 + 5 * number, number)) for number, name in enumerate(["", *ADAPTERS, "", "all"])]
    expected = [
        _greedy(peers[name], prompt_ids) if name else greedy(model, prompt_ids, LENGTH) for name, prompt_ids in asked
    ]
    assert len({tuple(answer) for answer in expected}) == len(expected)
    runner = _runner(model, {name: tmp_path / name for name in ADAPTERS}, native_kernels=kernels)
    assert isinstance(runner, BatchRunner)
    assert _answers(runner, asked) == expected


def test_a_prefix_of_one_adapter_is_not_read_by_another(tmp_path: Path) -> None:
    model = new_model("qwen3")
    shared = prompt(150, 3)
    peer = save_adapter(model, tmp_path / "all", 1, **ADAPTERS["all"])
    expected = {"": greedy(model, shared, LENGTH), "all": _greedy(peer, shared)}
    assert expected[""] != expected["all"]
    runner = _runner(model, {"all": tmp_path / "all"})
    cached = []
    for adapter in ("", "all", "all"):
        request = _request(shared, adapter)
        run(runner, [request])
        assert tokens(request) == expected[adapter]
        cached.append(request.answer.cached_tokens)
    assert cached[:2] == [0, 0] and cached[2] > 100, "the second request of an adapter reads its own prefix"


@pytest.mark.filterwarnings("ignore:fan_in_fan_out:UserWarning")
def test_families_with_other_layers_take_adapters_too(tmp_path: Path) -> None:
    """Matrices that lie the other way round, merged projections, latents, layers with states, and turns."""
    targets = {
        "GPT2": ["c_attn", "c_proj"],
        "Phi3": ["qkv_proj", "gate_up_proj", "down_proj"],
        "DeepseekV3": ["kv_b_proj", "o_proj"],
        "DeepseekV2": ["kv_a_proj_with_mqa", "o_proj"],
        "Lfm2": ["in_proj", "out_proj", "w1"],
        "Falcon": ["query_key_value", "dense"],
    }
    kinds = []
    for number, (family, names) in enumerate(targets.items()):
        kind, sizes = FAMILIES[family]
        model = new_model_of(kind, **sizes)
        config = {"r": 4, "lora_alpha": 8, "target_modules": names}
        peer = save_adapter(model, tmp_path / family, number, **config)
        asked = [("", prompt(12, 1)), (family, prompt(12, 1)), (family, prompt(21, 2))]
        expected = [greedy(model, asked[0][1], LENGTH), *[_greedy(peer, prompt_ids) for _, prompt_ids in asked[1:]]]
        assert expected[0] != expected[1]
        runner = _runner(model, {family: tmp_path / family})
        kinds.append(type(runner))
        assert _answers(runner, asked) == expected, family
    assert TurnRunner in kinds and BatchRunner in kinds


@pytest.mark.parametrize("quantisation", ["int8", "int4"])
def test_an_adapter_beside_weights_that_are_integers(tmp_path: Path, quantisation: str) -> None:
    model = new_model("qwen3")
    save_adapter(model, tmp_path / "all", 1, **ADAPTERS["all"])
    runner = _runner(model, {"all": tmp_path / "all"}, quantisation=quantisation)
    plain, adapted = _answers(runner, [("", prompt(30, 1)), ("all", prompt(30, 1))])
    assert plain != adapted and len(adapted) == LENGTH


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"use_dora": True}, "use_dora"),
        ({"bias": "all"}, "bias"),
        ({"peft_type": "IA3"}, "LORA"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"init_lora_weights": "pissa"}, "changes the weights of its base"),
        ({"lora_alpha": "much"}, "lora_alpha"),
    ],
)
def test_what_is_not_computed_is_refused_by_name(changed: dict[str, Any], reason: str, tmp_path: Path) -> None:
    save_adapter(new_model("qwen3"), tmp_path, 1, **ADAPTERS["queries"])
    path = tmp_path / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    with pytest.raises(LoadFailed, match=reason):
        read_adapter("mine", tmp_path)


def test_an_adapter_of_another_model_is_refused(tmp_path: Path) -> None:
    save_adapter(new_model("phi3"), tmp_path / "phi3", 1, r=4, target_modules=["qkv_proj"])
    with pytest.raises(LoadFailed, match="mine"):
        _runner(new_model("qwen3"), {"mine": tmp_path / "phi3"})
    (tmp_path / "phi3" / "adapter_model.safetensors").write_bytes(b"no weights")
    with pytest.raises(LoadFailed, match="cannot be read"):
        read_adapter("mine", tmp_path / "phi3")
