"""Layers with states are computed in the batch: each sequence has a state of its own, whatever runs beside it."""

import copy
import inspect
import json
from typing import Any

import jsonschema
import pytest
import torch

from tests.engine.batching import grammars
from tests.engine.batching.families import FAMILIES
from tests.engine.batching.test_faults import POISON, fail_on_poison
from tests.engine.batching.test_grammars import CARD
from tests.engine.batching.tiny import (
    TOKENIZER,
    Readers,
    greedy,
    new_model_of,
    new_request,
    new_turn_runner,
    prompt,
    run,
    tokens,
)
from tests.engine.resuming import assert_same, resumed
from tests.faults.forms import SOAK
from tis.engine.batching import memory
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.choose_runner import choose_runner
from tis.engine.batching.kv_cache import PagedCache
from tis.engine.batching.limits import BatchLimits
from tis.engine.batching.state_layers import StateLayer, find_states, state_layers, with_state_layers
from tis.engine.batching.text_attention import cache_shape
from tis.engine.errors import LoadFailed, OutOfMemory
from tis.engine.request import Request
from tis.errors import GenerationFailed

pytestmark = [pytest.mark.slow, pytest.mark.long]

# A convolution alone, linear attention, a state space beside attention in each layer, and one that starts whole. The
# short form tries two of them, as `test_families` has the tokens of all.
UNLIKE_OTHERS = ("Lfm2", "Qwen3Next", "FalconH1", "Mamba") if SOAK else ("Qwen3Next", "Mamba")


def new_of(family: str, **more: Any) -> Any:
    kind, sizes = FAMILIES[family]
    return new_model_of(kind, **sizes, **more)


@pytest.fixture(params=UNLIKE_OTHERS)
def hybrid(request: pytest.FixtureRequest) -> Any:
    return new_of(request.param)


def batched(model: Any, **limits: Any) -> BatchRunner:
    """Of a copy: preparing a model changes it."""
    wanted = BatchLimits(**({"cache_tokens": 4096, "tokens_per_step": 24} | limits))
    runner = choose_runner(copy.deepcopy(model), TOKENIZER, 512, wanted).new()
    assert isinstance(runner, BatchRunner)
    return runner


def test_eight_requests_of_mixed_lengths_get_the_tokens_of_generate(hybrid: Any) -> None:
    lengths = (1, 130, 5, 64, 2, 75, 33, 3)
    requests = [new_request(prompt(length, length), max_tokens=4 + 3 * at) for at, length in enumerate(lengths)]
    expected = [greedy(hybrid, one.prompt_ids, one.prepared.params.max_tokens) for one in requests]
    assert not run(batched(hybrid), requests, every=2).errors
    assert [tokens(request) for request in requests] == expected


def test_sampling_with_a_seed_gives_what_it_gives_alone(hybrid: Any) -> None:
    def asked() -> list[Request]:
        return [
            new_request(prompt(9, 1), seed=3, n=3, temperature=1.2),
            new_request(prompt(30, 2), seed=4, temperature=0.9, top_p=0.8, repetition_penalty=1.2),
            new_request(prompt(5, 3), seed=5, temperature=1.0, top_logprobs=3, min_p=0.05),
        ]

    ours, theirs = asked(), asked()
    in_batch, in_turns = run(batched(hybrid), ours), run(new_turn_runner(copy.deepcopy(hybrid)), theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert_same(in_batch.of(one), in_turns.of(other), one.prepared.params.n)


def test_an_answer_goes_on_where_it_was_cut(hybrid: Any) -> None:
    runner = batched(hybrid)
    request = new_request(prompt(20, 1), temperature=1.1, max_tokens=16)
    whole = run(runner, [request]).of(request)
    for cut in (1, 15):
        again = resumed(request.prepared, whole[:cut])
        company = [new_request(prompt(11, seed)) for seed in range(2)]
        rest = run(runner, [company[0], again, company[1]]).of(again)
        assert_same([*whole[:cut], *rest], whole)


def test_those_who_wait_for_a_state_get_their_tokens_too(hybrid: Any) -> None:
    """Three states for seven choices; another owner takes places of the first."""
    requests = [new_request(prompt(6 + at, at), n=1 + at % 2, max_tokens=20) for at in range(5)]
    expected = [greedy(hybrid, one.prompt_ids, 20) for one in requests]
    runner = batched(hybrid, max_running=3)
    assert runner._cache.num_slots == 3
    assert not run(runner, requests).errors
    assert [tokens(request, choice) for request in requests for choice in range(request.prepared.params.n)] == [
        one for one, request in zip(expected, requests, strict=True) for _ in range(request.prepared.params.n)
    ]


def test_a_cancelled_request_gives_its_state_back(hybrid: Any) -> None:
    runner, readers = batched(hybrid, max_running=2), Readers()
    requests = [new_request(prompt(12, seed), max_tokens=40) for seed in range(2)]
    later = new_request(prompt(9, 9), max_tokens=5)
    for request in requests:
        runner.admit(request)
    while len(tokens(requests[1])) < 4:
        runner.step(readers.hand_out)
    requests[0].cancel()
    assert not run(runner, [later]).errors
    assert len(tokens(requests[0])) < 40 and runner.cache_use == 0
    assert [tokens(requests[1]), tokens(later)] == [
        greedy(hybrid, requests[1].prompt_ids, 40),
        greedy(hybrid, later.prompt_ids, 5),
    ]


@pytest.mark.parametrize("error", [ValueError(), torch.OutOfMemoryError("CUDA out of memory.")])
def test_a_request_that_fails_leaves_the_states_of_the_others_as_they_were(hybrid: Any, error: Exception) -> None:
    """It fails behind layers that have changed their states already."""
    healthy, sick = [new_request(prompt(6 + at, at)) for at in range(4)], new_request([4, 5, POISON])
    expected = [greedy(hybrid, one.prompt_ids, 12) for one in healthy]
    runner = batched(hybrid)
    of_model = runner._model
    poisoned: list[bool] = []

    def look(module: Any, given: tuple[Any, ...]) -> None:
        poisoned[:] = [bool((given[0] == POISON).any())]

    def fail(module: Any, args: Any, output: Any) -> None:
        if poisoned[0]:
            raise error

    of_model.get_input_embeddings().register_forward_pre_hook(look)
    state_layers(of_model)[-1].register_forward_hook(fail)
    readers = run(runner, [*healthy[:2], sick, *healthy[2:]])
    [failed] = readers.errors.values()
    assert isinstance(failed, OutOfMemory if isinstance(error, RuntimeError) else GenerationFailed)
    assert id(sick) in readers.errors and [tokens(one) for one in healthy] == expected
    assert not runner.scheduler.sequences


def test_a_failing_step_of_one_request_is_not_computed_again(hybrid: Any) -> None:
    runner = batched(hybrid)
    sizes = fail_on_poison(runner._model, ValueError())
    assert run(runner, [new_request([4, 5, POISON])]).errors and len(sizes) == 1


@pytest.mark.parametrize("family", UNLIKE_OTHERS)
def test_answers_under_a_grammar_are_valid_and_those_of_one_alone(family: str) -> None:
    """With tokens that the grammar forces: several behind a state."""
    model = new_of(family, vocab_size=grammars.VOCABULARY)
    limits = BatchLimits(cache_tokens=8192, tokens_per_step=64)
    runner = choose_runner(copy.deepcopy(model), grammars.tokenizer(), 512, limits).new()
    requests = [grammars.new_request(grammars.schema(CARD), f"Kartu {at}", seed=at) for at in range(3)]
    readers = run(runner, requests, every=3)
    assert isinstance(runner, BatchRunner) and not readers.errors
    for request in requests:
        jsonschema.validate(json.loads(readers.text(request)), CARD)
    lonely = grammars.new_request(grammars.schema(CARD), "Kartu 0", seed=0)
    assert run(new_turn_runner(model, grammars.tokenizer()), [lonely]).text(lonely) == readers.text(requests[0])


def test_no_prefix_is_shared_and_nothing_is_drafted(hybrid: Any) -> None:
    runner, question = batched(hybrid), prompt(50, 1)
    expected = greedy(hybrid, question, 12)
    for _ in range(2):
        request = new_request(question)
        run(runner, [request])
        assert tokens(request) == expected and request.answer.cached_tokens == 0


def test_layers_that_compute_a_continued_text_wrongly_get_their_prompts_whole() -> None:
    runner = batched(new_of("Mamba"))
    assert not any(layer.continues for layer in state_layers(runner._model))
    assert all(layer.continues for layer in state_layers(batched(new_of("Qwen3Next"))._model))


def test_outside_of_the_batch_the_layers_are_the_models_own(hybrid: Any) -> None:
    expected = greedy(hybrid, prompt(20, 1), 12)
    with with_state_layers(hybrid):
        assert any(isinstance(module, StateLayer) for module in hybrid.modules())
        assert greedy(hybrid, prompt(20, 1), 12) == expected and find_states(hybrid)
    assert not state_layers(hybrid)


class TestNativeFunctions:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    @pytest.mark.parametrize("family", ["Lfm2", "Qwen3Next", "Qwen3.5", "FalconH1", "Bamba", "NemotronH", "Mamba2"])
    def test_usual_layers_have_them(self, family: str, dtype: Any, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO", "tis.engine")
        model = new_of(family).to(dtype)
        layers = state_layers(batched(model)._model)
        assert layers and all(layer.native_forward for layer in layers)
        assert "failed for" not in caplog.text
        assert not any(layer.native_forward for layer in state_layers(batched(model, native_kernels=False)._model))

    @pytest.mark.parametrize("family", ["Qwen3Next", "Bamba"])
    def test_a_layer_that_computes_something_else_keeps_its_own(
        self, family: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = new_of(family)
        names = inspect.unwrap(type(find_states(model)[0].module).forward).__globals__
        own = "torch_recurrent_gated_delta_rule" if family == "Qwen3Next" else "mamba2_selective_state_update"
        plain = names[own]

        def other(*args: Any, **arguments: Any) -> Any:
            result = plain(*args, **arguments)
            return (result[0] * 1.01, result[1]) if isinstance(result, tuple) else result * 1.01

        monkeypatch.setitem(names, own, other)
        request = new_request(prompt(20, 1))
        expected = greedy(model, request.prompt_ids, 12)
        runner = batched(model)
        assert not any(layer.native_forward for layer in state_layers(runner._model))
        run(runner, [request])
        assert tokens(request) == expected


class TestMemory:
    def test_states_take_at_most_half_of_the_memory_that_is_declared(self) -> None:
        model = new_of("Qwen3Next")
        size, weights = cache_shape(model).bytes_of_states, model.get_memory_footprint()
        runner = batched(model, cache_tokens=0, memory_bytes=int(weights) + 20 * size)
        assert runner._cache.num_slots is not None and 5 <= runner._cache.num_slots <= 10
        held = sum(int(one.nbytes) for one in runner._cache.keys + runner._cache.values)
        assert held + runner._cache.num_slots * size <= 20 * size

    def test_a_model_without_memory_for_one_state_does_not_start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(memory, "_total_bytes", lambda device: 2**12)
        with pytest.raises(LoadFailed, match="no room for the cache of a request"):
            batched(new_of("Qwen3Next"), cache_tokens=0)

    def test_where_nothing_grows_the_context_is_not_limited(self) -> None:
        assert choose_runner(new_of("Mamba"), TOKENIZER, 9999, BatchLimits(cache_tokens=64)).context_length == 9999

    def test_a_cache_has_states_only_for_layers_that_keep_some(self) -> None:
        shape = cache_shape(new_of("Qwen3Next"))
        cache = PagedCache(shape, 4, 16, num_slots=2)
        assert sorted(cache.states) == [0, 1, 2] and [one.numel() > 0 for one in cache.keys] == [False] * 3 + [True]
