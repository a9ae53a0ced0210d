from dataclasses import replace
from typing import Any

import pytest
import transformers

from tests.engine.batching.tiny import _SMALL, TOKENIZER, alone, new_request, prompt, run, tokens
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.choose_runner import choose_runner
from tis.engine.batching.eligibility import why_not_batchable
from tis.engine.batching.limits import BatchLimits
from tis.engine.batching.turn_runner import TurnRunner
from tis.engine.errors import LoadFailed
from tis.engine.request import Request

_BLOOM = transformers.BloomConfig(hidden_size=32, n_layer=2, n_head=2, vocab_size=320)


def _causal(config: Any) -> Any:
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def test_every_architecture_of_the_exactness_tests_is_batched(model: Any) -> None:
    chosen = choose_runner(model, TOKENIZER, 512, BatchLimits(cache_tokens=640))
    assert isinstance(chosen.new(), BatchRunner) and chosen.context_length == 512


def test_a_context_is_never_longer_than_the_cache(qwen3: Any) -> None:
    assert choose_runner(qwen3, TOKENIZER, 512, BatchLimits(cache_tokens=130)).context_length == 128


def test_without_a_size_the_cache_takes_a_share_of_memory_but_not_more_than_is_useful(qwen3: Any) -> None:
    assert choose_runner(qwen3, TOKENIZER, 512, BatchLimits()).context_length == 512


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (_BLOOM, "replaced"),
        (transformers.RecurrentGemmaConfig(**_SMALL | {"num_hidden_layers": 3}, lru_width=64), "states in a way"),
        (transformers.DogeConfig(**_SMALL), "mask"),
    ],
    ids=["bloom", "recurrent gemma", "doge"],
)
def test_a_model_that_cannot_be_batched_gets_a_reason_and_takes_turns(config: Any, reason: str) -> None:
    model = _causal(config)
    assert reason in (why_not_batchable(model) or "it can")
    runner = choose_runner(model, TOKENIZER, 512, BatchLimits()).new()
    assert isinstance(runner, TurnRunner)
    request = new_request(prompt(5, 1), max_tokens=4)
    run(runner, [request])
    assert len(tokens(request)) == 4


@pytest.mark.parametrize(("is_on", "at_most", "at_least"), [(True, 8, 3), (False, 20, 20)])
def test_prompt_lookup_may_be_switched_off(qwen3: Any, is_on: bool, at_most: int, at_least: int) -> None:
    runner = choose_runner(qwen3, TOKENIZER, 512, BatchLimits(cache_tokens=640, prompt_lookup=is_on)).new()
    first = new_request(prompt(9, 1), max_tokens=20)
    run(runner, [first])
    again = new_request(prompt(9, 1), max_tokens=20)
    runner.admit(Request(replace(again.prepared, prediction_ids=tokens(first))))
    num_steps = 0
    while runner.running:
        runner.step(lambda deliveries: None)
        num_steps += 1
    assert at_least <= num_steps <= at_most


def test_quantising_a_model_that_is_not_batched_is_said_to_do_nothing(caplog: pytest.LogCaptureFixture) -> None:
    model = _causal(_BLOOM)
    choose_runner(model, TOKENIZER, 512, BatchLimits(quantisation="int8"))
    assert "QUANTIZE=int8 does not apply" in caplog.text


def test_an_attention_that_the_batch_does_not_have_is_refused(qwen3: Any) -> None:
    with pytest.raises(LoadFailed, match="ATTN_IMPLEMENTATION=eager does not apply"):
        choose_runner(qwen3, TOKENIZER, 512, BatchLimits(cache_tokens=640), attention="eager")
    choose_runner(qwen3, TOKENIZER, 512, BatchLimits(cache_tokens=640), attention="sdpa")


def test_an_attention_of_a_model_that_is_not_batched_is_its_own_affair() -> None:
    model = _causal(_BLOOM)
    assert isinstance(choose_runner(model, TOKENIZER, 512, BatchLimits(), attention="eager").new(), TurnRunner)


def test_a_new_runner_after_a_dead_worker_starts_with_an_empty_cache(qwen3: Any) -> None:
    lonely = new_request(prompt(40, 1))
    alone(qwen3, lonely)
    chosen = choose_runner(qwen3, TOKENIZER, 512, BatchLimits(cache_tokens=640))
    for _ in range(2):
        request = new_request(prompt(40, 1))
        run(chosen.new(), [request])
        assert request.answer.cached_tokens == 0
        assert tokens(request) == tokens(lonely)
