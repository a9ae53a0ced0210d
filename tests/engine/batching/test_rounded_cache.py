"""CACHE_DTYPE=int8: the tokens are those of `generate()` with an attention that rounds keys and values."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from tests.engine.batching.drafts import AlwaysDrafts
from tests.engine.batching.drafts import counts as counts_of_drafts
from tests.engine.batching.families import FAMILIES
from tests.engine.batching.test_families import IN_TURNS, STATES_ALONE
from tests.engine.batching.test_lookup_exact import counts, half_right, predicted
from tests.engine.batching.tiny import (
    TOKENIZER,
    greedy,
    new_model,
    new_model_of,
    new_request,
    prompt,
    run,
    tokens,
)
from tests.engine.batching.vision_families import mixed_prompts, new_family
from tests.engine.resuming import resumed
from tests.faults.forms import SOAK
from tis.engine.batching import draft_model
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.choose_runner import ChosenRunner, choose_runner, prepare_draft, rounded_shape
from tis.engine.batching.fused_layers import FusedFront, FusedLayers
from tis.engine.batching.kv_cache import CacheShape, LayerCache, PagedCache
from tis.engine.batching.limits import BatchLimits
from tis.engine.batching.picture_trial import find_tower
from tis.engine.batching.scheduler import BlockCopy
from tis.engine.batching.text_attention import cache_shape
from tis.engine.batching.towers import ForwardTower
from tis.engine.kernels.build import library_path
from tis.engine.kernels.native import ISAS, load_kernels
from tis.engine.kernels.native import native_kernels as loaded_kernels
from tis.engine.request import Request

pytestmark = pytest.mark.long

_REFERENCE = "rounded_reference"
LENGTHS = (3, 40, 17, 1, 26)
WITH_LATENTS = {"DeepseekV2", "DeepseekV3", "Glm4MoeLite", "MiniCPM3"}
OF_BATCHES = [name for name in FAMILIES if name not in IN_TURNS | STATES_ALONE | WITH_LATENTS]
TRIED = OF_BATCHES if SOAK else ["GptOss", "Llama4", "Gemma2", "Llama mqa", "Qwen3Moe", "OPT", "Nemotron"]
BOTH_WAYS = pytest.mark.parametrize("native_kernels", [True, False], ids=["kernels", "plain"])


def rounded(rows: Any) -> Any:
    """Written anew here: each row is the nearest of 255 multiples of a 127th of its largest number."""
    step = rows.abs().amax(-1, keepdim=True) / 127
    return torch.where(step > 0, (rows / step).round() * step, 0)


def _attend_rounded(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: Any | None = None,
    **ignored: Any,
) -> tuple[Any, Any]:
    groups = query.shape[1] // key.shape[1]
    key, value = (rounded(one).repeat_interleave(groups, 1) for one in (key, value))
    scores = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if attention_mask is not None:
        scores = scores + attention_mask[..., : key.shape[2]]
    if s_aux is not None:
        sinks = s_aux.view(1, -1, 1, 1).expand(len(scores), -1, scores.shape[2], 1)
        scores = torch.cat((scores, sinks), -1)
    weights = scores.softmax(-1)[..., : key.shape[2]]
    return (weights @ value).transpose(1, 2).contiguous(), weights


AttentionInterface.register(_REFERENCE, _attend_rounded)
AttentionMaskInterface.register(_REFERENCE, eager_mask)


def expected_of(model: Any, prompts: list[list[int]], length: int = 16) -> list[list[int]]:
    """Of a copy, whose attention is the reference."""
    reference = deepcopy(model)
    has_parts = "text_config" in reference.config.sub_configs
    reference.set_attn_implementation({"text_config": _REFERENCE} if has_parts else _REFERENCE)
    return [greedy(reference, one, length) for one in prompts]


def chosen_for(model: Any, **limits: Any) -> ChosenRunner:
    limits = {"cache_tokens": 2048, "cache_dtype": "int8", **limits}
    return choose_runner(model, TOKENIZER, 512, BatchLimits(**limits))


def runner_for(model: Any, **limits: Any) -> BatchRunner:
    runner = chosen_for(model, **limits).new()
    assert isinstance(runner, BatchRunner)
    assert {one.dtype for one in (*runner._cache.keys, *runner._cache.values)} == {torch.int8}
    return runner


def made(runner: BatchRunner, requests: list[Request], *, every: int = 2) -> list[list[int]]:
    assert not run(runner, requests, every=every).errors
    return [tokens(request) for request in requests]


def requests_for(prompts: list[list[int]], length: int = 16) -> list[Request]:
    return [new_request(one, max_tokens=length) for one in prompts]


@BOTH_WAYS
def test_the_tokens_are_those_of_generate_with_rounded_keys_and_values(model: Any, native_kernels: bool) -> None:
    prompts = [prompt(length, seed) for seed, length in enumerate(LENGTHS)]
    expected = expected_of(model, prompts)
    assert min(len(set(answer)) for answer in expected) > 6, "repetitive answers would hide errors of the attention"
    runner = runner_for(deepcopy(model), native_kernels=native_kernels)
    assert made(runner, requests_for(prompts)) == expected
    # In parts, beside others, and where a part of the prompt is in the cache.
    runner = runner_for(model, native_kernels=native_kernels, tokens_per_step=7)
    assert made(runner, requests_for(prompts), every=1) == expected
    again = requests_for(prompts)
    assert made(runner, again) == expected and again[1].answer.cached_tokens


@pytest.mark.parametrize("family", TRIED)
@BOTH_WAYS
def test_of_other_families(family: str, native_kernels: bool) -> None:
    kind, sizes = FAMILIES[family]
    model = new_model_of(kind, **sizes)
    prompts = [prompt(length, seed) for seed, length in enumerate(LENGTHS)]
    expected = expected_of(model, prompts)
    runner = runner_for(model, native_kernels=native_kernels, tokens_per_step=9)
    assert made(runner, requests_for(prompts)) == expected


@pytest.mark.parametrize("size", [16, 48, 80, 128])
@pytest.mark.parametrize(("heads", "key_heads"), [(4, 4), (6, 2), (5, 1), (8, 1)])
def test_of_heads_of_other_sizes_and_groups(size: int, heads: int, key_heads: int) -> None:
    sizes = {"head_dim": size, "num_attention_heads": heads, "num_key_value_heads": key_heads, "num_hidden_layers": 1}
    model = new_model_of("Qwen3", **sizes)
    prompts = [prompt(length, seed) for seed, length in enumerate((5, 60, 17))]
    expected = expected_of(model, prompts, 8)
    assert made(runner_for(model), requests_for(prompts, 8)) == expected


@pytest.mark.skipif(loaded_kernels() is None, reason="the native kernels are not built here")
def test_whole_layers_read_it_in_one_call() -> None:
    model = new_model("llama")
    prompts = [prompt(length, length) for length in (500, 1100, 20)]
    expected = expected_of(model, prompts)
    runner = choose_runner(model, TOKENIZER, 2048, BatchLimits(cache_tokens=4096, cache_dtype="int8")).new()
    assert any(isinstance(layer, FusedLayers) for layer in model.model.layers)
    assert isinstance(runner, BatchRunner) and made(runner, requests_for(prompts)) == expected
    mixture = new_model_of("Qwen3Moe", **FAMILIES["Qwen3Moe"][1])
    runner_for(mixture)
    assert any(isinstance(layer, FusedFront) for layer in mixture.model.layers)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("architecture", ["qwen3", "mistral_sliding"])
def test_every_instruction_set_gives_the_same_tokens(
    architecture: str, isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        kernels = load_kernels(library_path(), isa)
    except OSError as reason:
        pytest.skip(str(reason))
    monkeypatch.setattr("tis.engine.batching.choose_runner.native_kernels", lambda: kernels)
    model = new_model(architecture)
    prompts = [prompt(length, seed) for seed, length in enumerate(LENGTHS)]
    expected = expected_of(model, prompts)
    assert made(runner_for(model, tokens_per_step=20), requests_for(prompts)) == expected


@BOTH_WAYS
@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_rows_that_are_preempted_moved_and_begun_again(architecture: str, native_kernels: bool) -> None:
    model = new_model(architecture)
    shared = prompt(32, 1)
    prompts = [shared + prompt(5, 2), prompt(24, 8), shared + prompt(9, 3), prompt(9, 4), shared]
    expected = expected_of(model, prompts, 40)
    runner = runner_for(model, native_kernels=native_kernels, cache_tokens=144, tokens_per_step=16)
    requests = requests_for(prompts, 40)
    assert made(runner, requests, every=3) == expected
    assert runner.scheduler.num_preemptions and requests[2].answer.cached_tokens


def test_drafts_from_the_prompt_change_no_token(any_model: Any) -> None:
    """Rows of drafts that were wrong are written again."""
    prompts = [prompt(length, seed) for seed, length in enumerate([3, 40, 17])]
    expected = expected_of(any_model, prompts, 24)
    runner = runner_for(any_model)
    predictions = (expected[0], half_right(expected[1]), expected[1])
    before, requests = counts(), requests_for(prompts, 24)
    asked = [predicted(one, ids) for one, ids in zip(requests, predictions, strict=True)]
    assert made(runner, asked) == expected
    drafted, accepted = (now - then for now, then in zip(counts(), before, strict=True))
    assert 20 < accepted < drafted


def test_a_draft_model_has_such_a_cache_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft_model, "DraftPolicy", lambda share: AlwaysDrafts(5))
    monkeypatch.setattr("tis.engine.batching.choose_runner.DraftPolicy", lambda share: AlwaysDrafts(5))
    model = new_model("llama")
    prompts = [prompt(length, seed) for seed, length in enumerate([3, 60, 17])]
    expected = expected_of(model, prompts, 24)
    limits = BatchLimits(cache_tokens=2048, cache_dtype="int8", prompt_lookup=False)
    draft = prepare_draft("small", deepcopy(model), 512, limits)
    assert draft.shape.has_8_bits
    before = counts_of_drafts()
    runner = choose_runner(model, TOKENIZER, 512, limits, draft=draft).new()
    assert isinstance(runner, BatchRunner) and made(runner, requests_for(prompts, 24)) == expected
    assert counts_of_drafts()[1] > before[1]


@pytest.mark.parametrize("params", [{}, {"temperature": 1.2, "top_p": 0.95}], ids=["greedy", "sampled"])
def test_an_answer_goes_on_where_it_was_cut(params: dict[str, Any]) -> None:
    chosen = chosen_for(new_model("qwen3"), tokens_per_step=16)
    request = new_request(prompt(33, 3), max_tokens=24, **params)
    whole = run(chosen.new(), [request]).of(request)
    for shown in (1, 7, 16, 23):
        rest = resumed(request.prepared, whole[:shown])
        others = [new_request(prompt(20, shown)), new_request(prompt(4, 1))]
        assert not run(chosen.new(), [others[0], rest, others[1]]).errors
        assert tokens(rest) == tokens(request)


@pytest.mark.parametrize("family", ["gemma3", "llava_next"])
@BOTH_WAYS
def test_pictures_whether_their_tokens_see_each_other_or_not(family: str, native_kernels: bool) -> None:
    model = new_family(family)
    reference = deepcopy(model)
    reference.set_attn_implementation({"text_config": _REFERENCE})
    expected = [one.greedy(8) for one in mixed_prompts(family, reference)[:4]]
    prompts = mixed_prompts(family, model)[:4]
    tower = find_tower(model, prompts[2].sample)
    assert isinstance(tower, ForwardTower) and tower.looks_ahead == (family == "gemma3")
    cache = PagedCache(replace(cache_shape(model), has_8_bits=True), 512, 4)
    kernels = loaded_kernels() if native_kernels else None
    runner = BatchRunner(model, TOKENIZER, cache, tower=tower, kernels=kernels, tokens_per_step=24)
    assert made(runner, [one.request(max_tokens=8) for one in prompts]) == expected


# --- latents and states ---


@pytest.mark.parametrize("family", ["DeepseekV2", "DeepseekV3"])
@BOTH_WAYS
def test_latents_are_rounded_as_one_row(family: str, native_kernels: bool) -> None:
    kind, sizes = FAMILIES[family]
    model = new_model_of(kind, **{**sizes, "kv_lora_rank": 32, "qk_rope_head_dim": 16})
    shared = prompt(64, 1)
    prompts = [shared + prompt(40, 2), shared + prompt(3, 6), prompt(9, 3), prompt(100, 5)]
    reference = deepcopy(model)
    for module in reference.modules():
        if hasattr(module, "expand_kv"):
            module.expand_kv = _of_rounded(module.expand_kv)
    expected = [greedy(reference, one, 16) for one in prompts]
    runner = runner_for(model, native_kernels=native_kernels, cache_tokens=256, tokens_per_step=64)
    assert all(layer.has_latents for layer in runner._cache.layers)
    assert made(runner, requests_for(prompts)) == expected


def _of_rounded(expand: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[[Any, Any], tuple[Any, Any]]:
    def expand_kv(latents: Any, rotated: Any) -> tuple[Any, Any]:
        row = rounded(torch.cat((latents, rotated), -1))
        return expand(row[..., : latents.shape[-1]], row[..., latents.shape[-1] :])

    return expand_kv


@pytest.mark.parametrize("family", ["Qwen3Next", "FalconH1", "Lfm2"])
def test_states_beside_it_keep_their_type(family: str) -> None:
    kind, sizes = FAMILIES[family]
    model = new_model_of(kind, **sizes)
    prompts = [prompt(length, seed) for seed, length in enumerate(LENGTHS)]
    expected = expected_of(model, prompts, 12)
    runner = runner_for(model, tokens_per_step=16)
    kept = [one for states in runner._cache.states.values() for one in (states.convolved, states.recurrent)]
    assert {one.dtype for one in kept if one is not None} == {torch.float32}
    assert made(runner, requests_for(prompts, 12)) == expected


# --- what computes in bfloat16, and beside weights of integers ---


@pytest.mark.parametrize("limits", [{}, {"native_kernels": False}, {"quantisation": "int8"}])
def test_bfloat16_and_weights_of_8_bits_answer_alike(limits: dict[str, Any]) -> None:
    wide = new_model("llama")
    [expected] = expected_of(wide, [prompt(40, 1)], 1)
    request = new_request(prompt(40, 1), max_tokens=1)
    made(runner_for(wide.bfloat16(), **limits), [request])
    assert tokens(request) == expected


# --- memory ---


def test_it_takes_half_the_memory_of_bfloat16() -> None:
    layer, cpu = LayerCache(8, 128, 128), torch.device("cpu")
    full = CacheShape((layer,) * 28, torch.bfloat16, cpu)
    small = replace(full, has_8_bits=True)
    assert full.bytes_per_token == 28 * 2 * 8 * 128 * 2
    assert small.bytes_per_token == 28 * 2 * 8 * (128 + 4)
    latents = CacheShape((LayerCache(1, 576, 512, has_latents=True),), torch.bfloat16, cpu, has_8_bits=True)
    assert latents.bytes_per_token == 576 + 4
    for shape in (full, small, latents):
        cache = PagedCache(shape, 4, 16)
        assert sum(one.nbytes for one in cache.tensors) == 64 * shape.bytes_per_token


def test_what_is_said_of_the_cache_knows_it() -> None:
    full, small = chosen_for(new_model("qwen3"), cache_dtype="auto"), chosen_for(new_model("qwen3"))
    assert full.cache_tokens == small.cache_tokens == 2048
    assert full.cache_bytes == 2048 * 2 * 2 * 2 * 32 * 4 and small.cache_bytes == 2048 * 2 * 2 * 2 * (32 + 4)


def test_more_tokens_fit_into_a_budget() -> None:
    model = new_model("qwen3")
    budget = sum(one.nbytes for one in model.parameters()) + 2**20
    full, small = (
        chosen_for(new_model("qwen3"), cache_dtype=dtype, cache_tokens=0, memory_bytes=budget)
        for dtype in ("auto", "int8")
    )
    assert small.cache_tokens > 3 * full.cache_tokens


@pytest.mark.parametrize("has_latents", [False, True])
def test_blocks_are_moved_with_their_scales(has_latents: bool) -> None:
    layer = LayerCache(1, 24, 16, has_latents=has_latents)
    cache = PagedCache(CacheShape((layer,), torch.float32, torch.device("cpu"), has_8_bits=True), 8, 4)
    rows = torch.randn(1, 1, 32, 24)
    cache.write(0, torch.arange(32), rows, rows[..., :16])
    [scales] = cache.scales
    assert scales
    tensors = (cache.keys[0], cache.values[0], *scales)
    before = [one.clone() for one in tensors]
    cache.copy_blocks([BlockCopy([1, 2, 3], 2)])
    for now, then in zip(tensors, before, strict=True):
        assert torch.equal(now[:, 8:20], then[:, 4:16]) and torch.equal(now[:, :8], then[:, :8])


# --- where it does not apply ---


def test_a_cache_on_another_device_keeps_its_type(caplog: pytest.LogCaptureFixture) -> None:
    shape = CacheShape((LayerCache(2, 16, 16),), torch.float16, torch.device("cuda"))
    assert rounded_shape(shape, BatchLimits(cache_dtype="int8")) is shape
    assert "CACHE_DTYPE=int8 does not apply: the model is on cuda" in caplog.text
    assert rounded_shape(replace(shape, device=torch.device("cpu")), BatchLimits()).has_8_bits is False


def _bloom() -> Any:
    return new_model_of("Bloom", n_layer=2, n_head=4)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_bloom, "the model is not computed in batches"),
        (lambda: new_model_of("Mamba", **FAMILIES["Mamba"][1]), "the model keeps no keys and values"),
    ],
)
def test_a_model_without_such_a_cache_says_so(
    make: Callable[[], Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    request = new_request(prompt(9, 1), max_tokens=3)
    run(chosen_for(make()).new(), [request])
    assert len(tokens(request)) == 3
    assert caplog.text.count(f"CACHE_DTYPE=int8 does not apply: {reason}") == 1
