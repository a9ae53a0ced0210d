"""Requests of a model that cannot be batched take turns: nobody waits for the end of another answer."""

import copy
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
import torch
import transformers

from tests.engine.batching import grammars
from tests.engine.batching.families import FAMILIES
from tests.engine.batching.test_faults import POISON, fail_on_poison
from tests.engine.batching.test_grammars import CARD, SEARCH
from tests.engine.batching.tiny import (
    TOKENIZER,
    Readers,
    greedy,
    new_model_of,
    new_request,
    new_runner,
    new_turn_runner,
    prompt,
    run,
    tokens,
)
from tests.engine.resuming import assert_same, resumed
from tis.engine.batching import memory
from tis.engine.batching.choose_runner import choose_runner
from tis.engine.batching.limits import BatchLimits
from tis.engine.batching.stepped_model import SteppedModel
from tis.engine.batching.turn_runner import TurnRunner
from tis.engine.errors import ContextLengthExceeded, LoadFailed, OutOfMemory
from tis.engine.grammar.grammar import tool_call_grammar
from tis.engine.request import Request
from tis.errors import GenerationFailed

pytestmark = pytest.mark.slow

# A state of one size, attention with a cache that grows, both, and a state that the modules of the model keep.
UNLIKE_OTHERS = ("Mamba", "GPT2", "Jamba", "RecurrentGemma")


def new_of(family: str, **more: Any) -> Any:
    kind, sizes = FAMILIES[family]
    return new_model_of(kind, **sizes, **more)


@pytest.fixture
def mamba() -> Any:
    return new_of("Mamba")


@pytest.fixture(params=UNLIKE_OTHERS)
def unlike(request: pytest.FixtureRequest) -> Any:
    return new_of(request.param)


def num_caches(runner: TurnRunner) -> int:
    return len(runner._caches)


def step_until(runner: TurnRunner, readers: Readers, is_so: Callable[[], bool]) -> int:
    for number in range(5000):
        if is_so():
            return number
        runner.step(readers.hand_out)
    raise AssertionError("it never is so")


def test_a_short_answer_finishes_while_a_long_one_runs(mamba: Any) -> None:
    long, short = new_request(prompt(40, 1), max_tokens=60), new_request(prompt(9, 2), max_tokens=5)
    expected = [greedy(copy.deepcopy(mamba), request.prompt_ids, 60) for request in (long, short)]
    runner, readers = new_turn_runner(mamba), Readers()
    runner.admit(long)
    step_until(runner, readers, lambda: len(tokens(long)) == 10)
    runner.admit(short)
    # Its prompt and four more tokens, and between them as many of the other.
    assert step_until(runner, readers, lambda: not short.unfinished) <= 12
    assert 10 < len(tokens(long)) <= 17 and num_caches(runner) == 1
    step_until(runner, readers, lambda: not runner.running)
    assert [tokens(long), tokens(short)] == [expected[0], expected[1][:5]]
    assert [readers.text(long), readers.text(short)] == [
        "".join(map(TOKENIZER.token_text, tokens(request))) for request in (long, short)
    ]


def test_a_request_can_be_cancelled_and_leaves_no_cache(unlike: Any) -> None:
    runner, readers = new_turn_runner(unlike), Readers()
    requests = [new_request(prompt(12, seed), max_tokens=40) for seed in range(3)]
    for request in requests:
        runner.admit(request)
    step_until(runner, readers, lambda: len(tokens(requests[2])) == 4)
    assert num_caches(runner) == 3
    requests[1].cancel()
    runner.step(readers.hand_out)
    assert readers.finish(requests[1]) == "cancelled" and num_caches(runner) == 2
    step_until(runner, readers, lambda: not runner.running)
    assert num_caches(runner) == 0 and runner.cache_use == 0
    assert [len(tokens(request)) for request in requests] == [40, len(tokens(requests[1])), 40]


def test_choices_and_seeds_are_those_of_a_batch(qwen3: Any) -> None:
    def asked() -> list[Request]:
        return [
            new_request(prompt(9, 1), seed=3, n=3, temperature=1.2),
            new_request(prompt(30, 2), seed=4, temperature=0.9, top_p=0.8, repetition_penalty=1.2),
            new_request(prompt(5, 3), seed=5, temperature=1.0, top_logprobs=3, min_p=0.05),
            new_request(prompt(7, 4), seed=6, temperature=1.0, logit_bias={5: 4.0}, stop=("KL",), max_tokens=30),
        ]

    ours, theirs = asked(), asked()
    in_turns = run(new_turn_runner(qwen3, tokens_per_step=16), ours)
    batched = run(new_runner(qwen3), theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert_same(in_turns.of(one), batched.of(other), one.prepared.params.n)


def test_an_answer_goes_on_where_it_was_cut(unlike: Any) -> None:
    request = new_request(prompt(20, 1), temperature=1.1, max_tokens=16)
    whole = run(new_turn_runner(unlike), [request]).of(request)
    for cut in (1, 7, 15):
        again = resumed(request.prepared, whole[:cut])
        company = [new_request(prompt(11, seed)) for seed in range(2)]
        rest = run(new_turn_runner(unlike), [company[0], again, company[1]]).of(again)
        assert_same([*whole[:cut], *rest], whole)


def test_where_an_encoder_reads_the_prompt_the_answer_is_that_of_the_decoder() -> None:
    torch.manual_seed(7)
    model = transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=320, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4, initializer_factor=3.0,
            decoder_start_token_id=0, pad_token_id=0,
        )
    ).eval()  # fmt: skip
    model.generation_config = transformers.GenerationConfig(pad_token_id=0, decoder_start_token_id=0)
    requests = [new_request(prompt(length, length)) for length in (5, 40, 1, 17)]
    rows = [torch.tensor([request.prompt_ids]) for request in requests]
    expected = [model.generate(row, do_sample=False, max_new_tokens=12)[0, 1:].tolist() for row in rows]
    readers = run(new_turn_runner(model), requests)
    assert not readers.errors and [tokens(request) for request in requests] == expected
    again = resumed(requests[1].prepared, readers.of(requests[1])[:5])
    run(new_turn_runner(model), [again])
    assert tokens(again) == expected[1]


def test_owners_share_the_places(mamba: Any) -> None:
    def of(owner: str, seed: int, **params: Any) -> Request:
        request = new_request(prompt(9 + seed, seed), seed, temperature=0.9, **params)
        request.owner = owner
        return request

    runner, readers = new_turn_runner(mamba, max_running=4), Readers()
    flood = [of("flood", seed, max_tokens=30) for seed in range(4)]
    for request in flood:
        runner.admit(request)
    step_until(runner, readers, lambda: all(len(tokens(request)) > 2 for request in flood))
    assert not runner.has_room and not runner.owes_place("flood") and runner.owes_place("other")
    other = of("other", 9, max_tokens=6)
    runner.admit(other)
    step_until(runner, readers, lambda: not other.unfinished)
    assert sum(len(tokens(request)) for request in flood) < 60
    step_until(runner, readers, lambda: not runner.running)
    lonely = [of("any", seed, max_tokens=30) for seed in range(4)] + [of("any", 9, max_tokens=6)]
    run(new_turn_runner(mamba), lonely)
    assert [tokens(request) for request in [*flood, other]] == [tokens(request) for request in lonely]


@pytest.mark.long
def test_the_caches_that_live_fit_into_the_memory(unlike: Any) -> None:
    """The requests that do not fit wait. While answers grow, the newest gives its memory back and is computed again."""
    requests = [new_request(prompt(20 + seed, seed), max_tokens=80) for seed in range(5)]
    expected = [greedy(copy.deepcopy(unlike), request.prompt_ids, 80) for request in requests]
    stepped = SteppedModel(unlike)
    cache_bytes = 3 * stepped.costs.of(80)
    runner, readers = TurnRunner(stepped, TOKENIZER, cache_bytes, tokens_per_step=32), Readers()
    for request in requests:
        runner.admit(request)
    most = 0
    while runner.running:
        runner.step(readers.hand_out)
        live = sum(stepped.costs.of(sequence.num_computed) for sequence in runner._caches)
        assert live <= cache_bytes
        most = max(most, num_caches(runner))
    assert [tokens(request) for request in requests] == expected and not readers.errors
    if stepped.costs.bytes_per_token:
        assert runner.scheduler.num_preemptions > 0
    else:
        assert most == 2


def test_a_request_that_can_never_fit_is_refused() -> None:
    model = new_of("GPT2")
    runner = new_turn_runner(model, cache_bytes=2**18)
    with pytest.raises(ContextLengthExceeded):
        runner.admit(new_request(prompt(20, 1), max_tokens=300))
    assert not run(runner, [new_request(prompt(20, 1), max_tokens=200)]).errors


def test_the_context_is_as_long_as_memory_allows() -> None:
    assert choose_runner(new_of("GPTNeo"), TOKENIZER, 512, BatchLimits(cache_tokens=200)).context_length == 200
    assert choose_runner(new_of("GPTNeo"), TOKENIZER, 512, BatchLimits()).context_length == 512
    assert choose_runner(new_of("Mamba"), TOKENIZER, 9999, BatchLimits(cache_tokens=200)).context_length == 9999


def test_a_model_without_memory_for_a_request_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_total_bytes", lambda device: 2**12)
    with pytest.raises(LoadFailed, match="no room for the cache of a request"):
        choose_runner(new_of("Mamba"), TOKENIZER, 512, BatchLimits())


@pytest.mark.parametrize("family", ["GPT2", "Mamba"])
def test_a_long_prompt_is_computed_in_parts_where_the_family_can(family: str) -> None:
    model = new_of(family)
    long, talking = new_request(prompt(300, 1), max_tokens=3), new_request(prompt(5, 2), max_tokens=60)
    expected = greedy(copy.deepcopy(model), long.prompt_ids, 3)
    runner, readers = new_turn_runner(model, tokens_per_step=64), Readers()
    runner.admit(talking)
    step_until(runner, readers, lambda: len(tokens(talking)) == 5)
    runner.admit(long)
    step_until(runner, readers, lambda: len(tokens(long)) == 1)
    # Between two parts the other answer goes on.
    assert len(tokens(talking)) - 5 in (range(4, 9) if family == "GPT2" else range(3))
    step_until(runner, readers, lambda: not runner.running)
    assert tokens(long) == expected


def test_while_a_prompt_is_computed_whole_a_step_may_take_long(mamba: Any) -> None:
    runner = new_turn_runner(mamba, tokens_per_step=64)
    seen: list[tuple[int, bool]] = []
    mamba.get_input_embeddings().register_forward_pre_hook(
        lambda module, given: seen.append((given[0].shape[-1], runner.has_bounded_steps))
    )
    run(runner, [new_request(prompt(100, 1), max_tokens=2), new_request(prompt(9, 1), max_tokens=2)])
    assert sorted(seen) == [(1, True), (1, True), (9, True), (100, False)] and runner.has_bounded_steps


def test_what_fails_fails_alone(mamba: Any, caplog: pytest.LogCaptureFixture) -> None:
    fail_on_poison(mamba, ValueError())
    healthy, sick = [new_request(prompt(6, seed)) for seed in range(3)], new_request([4, 5, POISON])
    expected = [greedy(copy.deepcopy(mamba), request.prompt_ids, 12) for request in healthy]
    runner = new_turn_runner(mamba)
    readers = run(runner, [healthy[0], sick, *healthy[1:]])
    assert [type(error) for error in readers.errors.values()] == [GenerationFailed]
    assert id(sick) in readers.errors and "ValueError" in caplog.text
    assert [tokens(request) for request in healthy] == expected and num_caches(runner) == 0


def test_where_memory_runs_out_fewer_run_and_every_answer_comes(unlike: Any) -> None:
    requests = [new_request(prompt(12, seed)) for seed in range(4)]
    expected = [greedy(copy.deepcopy(unlike), request.prompt_ids, 12) for request in requests]
    runner, readers = new_turn_runner(unlike), Readers()

    def fit(module: Any, given: tuple[Any, ...]) -> None:
        if num_caches(runner) > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.")

    unlike.get_input_embeddings().register_forward_pre_hook(fit)
    for request in requests:
        runner.admit(request)
    step_until(runner, readers, lambda: not runner.running)
    assert not readers.errors and [tokens(request) for request in requests] == expected


def test_a_request_that_is_too_large_for_the_memory_gets_its_own_error(mamba: Any) -> None:
    fail_on_poison(mamba, torch.OutOfMemoryError("CUDA out of memory."))
    sick, healthy = new_request([4, 5, POISON]), new_request(prompt(6, 1))
    readers = run(new_turn_runner(mamba), [sick, healthy])
    assert [type(error) for error in readers.errors.values()] == [OutOfMemory] and id(sick) in readers.errors
    assert len(tokens(healthy)) == 12


def test_after_a_failed_step_nothing_is_left(mamba: Any) -> None:
    runner, readers = new_turn_runner(mamba), Readers()
    for seed in range(3):
        runner.admit(new_request(prompt(6, seed)))
    step_until(runner, readers, lambda: num_caches(runner) == 3)
    runner.drop_all()
    assert num_caches(runner) == 0 and runner.cache_use == 0 and runner.has_room
    assert not run(runner, [new_request(prompt(6, 1))]).errors


@pytest.mark.parametrize("family", ["Mamba", "Bamba"])
def test_answers_under_a_grammar_and_calls_are_valid(family: str) -> None:
    """With forced tokens: after a prompt the first family takes single tokens only."""
    model = new_of(family, vocab_size=grammars.VOCABULARY)
    held = [grammars.new_request(grammars.schema(CARD), f"Kartu {at}", seed=at) for at in range(2)]
    calls = [grammars.new_request(tool_call_grammar((SEARCH,), one_call=True), seed=at) for at in range(2)]
    free = grammars.new_request(None, max_tokens=30, ignore_eos=True, thinking_budget=None)
    runner = new_turn_runner(model, grammars.tokenizer(), tokens_per_step=64)
    readers = run(runner, [held[0], calls[0], free, held[1], calls[1]])
    assert not readers.errors
    for request in held:
        assert readers.finish(request) == "stop"
        jsonschema.validate(json.loads(readers.text(request)), CARD)
    for request in calls:
        [call] = re.findall(r"<tool_call>\n(.*?)\n</tool_call>", readers.text(request), re.S)
        jsonschema.validate(json.loads(call)["arguments"], SEARCH.parameters)
    lonely = Request(replace(held[0].prepared))
    assert run(new_turn_runner(model, grammars.tokenizer()), [lonely]).text(lonely) == readers.text(held[0])


class TestTrial:
    """What a model cannot do in turns is found out when it is loaded."""

    def test_sequences_that_change_each_other_run_one_after_the_other(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A state in the model itself that is changed in place cannot be put aside."""
        model = new_of("CodeGen")
        kind = type(model.get_input_embeddings())
        plain, last = kind.forward, torch.zeros(1, 1, 64)

        def leaking(self: Any, ids: Any) -> Any:
            embedded = plain(self, ids)
            if ids.shape[-1] == 1:
                embedded = embedded + last
            last.copy_(embedded[:, -1:])
            return embedded

        requests = [new_request(prompt(9, seed)) for seed in range(3)]
        monkeypatch.setattr(kind, "forward", leaking)
        expected = [greedy(model, request.prompt_ids, 12) for request in requests]
        runner = choose_runner(model, TOKENIZER, 512, BatchLimits()).new()
        assert "one at a time" in caplog.text
        assert not run(runner, requests).errors
        assert [tokens(request) for request in requests] == expected

    def test_a_generate_of_its_own_ends_the_load(self, monkeypatch: pytest.MonkeyPatch) -> None:
        model = new_of("CodeGen")
        monkeypatch.setattr(type(model), "generate", lambda self, ids, **options: ids)
        with pytest.raises(LoadFailed, match=r"CodeGenForCausalLM has a generate\(\) of its own"):
            choose_runner(model, TOKENIZER, 512, BatchLimits())

    def test_frequencies_that_grow_with_one_text_do_not_change_another(self) -> None:
        model = new_of("Llama dynamic", max_position_embeddings=64)
        requests = [new_request(prompt(length, length), max_tokens=30) for length in (90, 50, 10, 70)]
        expected = [greedy(copy.deepcopy(model), request.prompt_ids, 30) for request in requests]
        assert not run(new_turn_runner(model), requests).errors
        assert [tokens(request) for request in requests] == expected
