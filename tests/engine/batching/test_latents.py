"""Latent attention keeps one latent per token, and gives the tokens of `generate()` whichever way it is computed."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch

from tests.engine.batching.families import FAMILIES
from tests.engine.batching.tiny import TOKENIZER, greedy, new_model_of, new_request, prompt, run, tokens
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.choose_runner import choose_runner
from tis.engine.batching.kv_cache import CacheShape, LayerCache, PagedCache
from tis.engine.batching.latents import LatentHeads, compress_latents
from tis.engine.batching.limits import BatchLimits
from tis.engine.batching.scheduler import BlockCopy
from tis.engine.batching.text_attention import cache_shape
from tis.engine.weights.packed import weight_bytes_of

pytestmark = pytest.mark.slow

# Latents are so large here that keys and values are made for more than 32 rows of a sequence.
RANK, ROTATED, HEADS = 32, 16, 4


def new_of(family: str) -> Any:
    kind, sizes = FAMILIES[family]
    return new_model_of(kind, **{**sizes, "kv_lora_rank": RANK, "qk_rope_head_dim": ROTATED})


def prepared(model: Any, *, native_kernels: bool = True, **limits: Any) -> BatchRunner:
    limits = {"cache_tokens": 2048, "tokens_per_step": 64, **limits}
    runner = choose_runner(model, TOKENIZER, 512, BatchLimits(native_kernels=native_kernels, **limits)).new()
    assert isinstance(runner, BatchRunner)
    return runner


@pytest.mark.parametrize("native_kernels", [True, False], ids=["kernels", "plain"])
@pytest.mark.parametrize("family", ["DeepseekV2", "DeepseekV3", "Glm4MoeLite", "MiniCPM3"])
def test_the_tokens_are_those_of_generate(family: str, native_kernels: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompts of many rows, of few, and the rest of one behind a cached prefix; more than there is room for."""
    model = new_of(family)
    shared = prompt(64, 1)
    prompts = [shared + prompt(40, 2), shared + prompt(3, 6), prompt(9, 3), shared + prompt(45, 4), prompt(100, 5)]
    expected = [greedy(model, one, 20) for one in prompts]
    runner = prepared(model, native_kernels=native_kernels, cache_tokens=144)
    num_rows = _count_rows(monkeypatch)
    requests = [new_request(one, max_tokens=20) for one in prompts]
    assert not run(runner, requests, every=2).errors
    assert [tokens(request) for request in requests] == expected
    assert runner.scheduler.num_preemptions and requests[1].answer.cached_tokens
    assert num_rows["keys_and_values"] and num_rows["queries"]


def test_the_cache_keeps_a_latent_per_token() -> None:
    model = new_of("DeepseekV2")
    before, weights = cache_shape(model).bytes_per_token, weight_bytes_of(model)
    assert compress_latents(model) == 2
    shape = cache_shape(model)
    assert shape.bytes_per_token == 2 * 4 * (RANK + ROTATED)
    assert before == 2 * 4 * HEADS * (16 + ROTATED + 16)
    assert weight_bytes_of(model) == weights + 2 * 4 * HEADS * (16 + 16) * RANK
    cache = PagedCache(shape, 4, 16)
    assert {one.untyped_storage().data_ptr() for one in cache.keys} == {
        one.untyped_storage().data_ptr() for one in cache.values
    }


def test_a_run_that_moves_by_less_than_its_length_keeps_its_latents() -> None:
    layer = LayerCache(1, 24, 16, has_latents=True)
    cache = PagedCache(CacheShape((layer,), torch.float32, torch.device("cpu")), 8, 4)
    cache.keys[0].copy_(torch.randn(cache.keys[0].shape))
    moved = cache.keys[0][:, 4:16].clone()
    cache.copy_blocks([BlockCopy([1, 2, 3], 2)])
    assert torch.equal(cache.keys[0][:, 8:20], moved) and torch.equal(cache.values[0][:, 8:20], moved[..., :16])


def test_generate_is_as_before() -> None:
    model = new_of("DeepseekV3")
    expected = greedy(model, prompt(30, 1), 12)
    assert compress_latents(model) == 2
    assert greedy(model, prompt(30, 1), 12) == expected


@pytest.mark.parametrize("of", ["values", "sizes"])
def test_an_attention_that_computes_something_else_is_cached_as_it_is(of: str) -> None:
    model = new_of("DeepseekV2")
    for module in model.modules():
        if hasattr(module, "expand_kv"):
            if of == "sizes":
                del module.qk_nope_head_dim
                module.qk_nope_head_dim = "unknown"
            else:
                module.expand_kv = _scaled(module.expand_kv)
    if of == "sizes":
        assert compress_latents(model) == 0
        return
    expected = greedy(deepcopy(model), prompt(30, 1), 12)
    runner = prepared(model)
    assert runner._cache.layers == (LayerCache(HEADS, 32, 16),) * 2
    request = new_request(prompt(30, 1))
    run(runner, [request])
    assert tokens(request) == expected


@pytest.mark.parametrize("quantisation", ["int8", "int4"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_with_weights_that_are_integers_it_answers(dtype: Any, quantisation: str) -> None:
    runner = prepared(new_of("DeepseekV3").to(dtype), quantisation=quantisation)
    requests = [new_request(prompt(length, length)) for length in (3, 70)]
    assert not run(runner, requests).errors
    assert [len(tokens(request)) for request in requests] == [12, 12]


def _scaled(expand: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[[Any, Any], tuple[Any, Any]]:
    def expand_kv(latents: Any, rotated: Any) -> tuple[Any, Any]:
        keys, values = expand(latents, rotated)
        return keys, values.tanh()

    return expand_kv


def _count_rows(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    counts = {"keys_and_values": 0, "queries": 0}

    def counted(name: str) -> Callable[..., Any]:
        plain = getattr(LatentHeads, name)

        def call(heads: LatentHeads, rows: Any) -> Any:
            counts[name] += rows.shape[-2]
            return plain(heads, rows)

        return call

    for name in counts:
        monkeypatch.setattr(LatentHeads, name, counted(name))
    return counts
