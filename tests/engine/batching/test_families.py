"""Every family of Transformers starts and answers: in a batch or in turns, with the tokens of `generate()`.

`make soak` tries all of them; otherwise those that differ most.
"""

import json
import os
import statistics
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from tests.engine.batching import letters
from tests.engine.batching.families import FAMILIES
from tests.engine.batching.tiny import TOKENIZER, Readers, greedy, new_model_of, new_request, prompt, run, tokens
from tests.engine.resuming import emitted_tokens
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.limits import BatchLimits
from tis.engine.batching.turn_runner import TurnRunner
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.models.loading import LoadOptions, load_model
from tis.engine.request import Request
from tis.engine.resumable_request import ResumableRequest
from tis.engine.resume import replay_completions, restore_request
from tis.observability.metrics import ACCEPTED_DRAFT_TOKENS

LENGTHS = (3, 40, 17, 1, 26, 33, 9, 52)
CONSTRAINED = (2, 7)  # the prompts that are answered under a grammar, too
NUM_TOKENS = 12
UNLIKE_OTHERS = (
    "OPT", "Nemotron", "GptOss", "Llama4", "DeepseekV3", "Gemma2", "Mamba", "Lfm2", "Qwen3Next", "FalconH1",
)  # fmt: skip
TRIED = tuple(FAMILIES) if os.environ.get("SOAK") else UNLIKE_OTHERS
# Of each kind one: soft caps and windows, sinks and experts, latents, linear attention, states alone.
IN_MAKE_TEST = ("Gemma2", "GptOss", "DeepseekV3", "Qwen3Next", "Mamba")
# What the batch cannot compute yet: their requests take turns.
IN_TURNS = {
    "StableLm", "StableLm par",
    "GPTNeoXJapanese", "GPTJ", "GPTNeo", "CodeGen", "Falcon", "Falcon alibi", "Falcon new",
    "Bloom", "Mpt", "Zamba2", "RecurrentGemma", "Rwkv", "DiffLlama", "XGLM", "Doge",
}  # fmt: skip
# Layers keep states beside the blocks: no prefix is shared, and there are no drafts.
WITH_STATES = {
    "Lfm2", "Lfm2Moe", "Qwen3Next", "Qwen3.5", "FalconH1", "GraniteMoeHybrid", "Bamba", "NemotronH", "Mamba2", "Mamba",
    "FalconMamba", "Jamba", "MiniMax",
}  # fmt: skip
# They have nothing else, so what they keep of a sequence does not grow.
STATES_ALONE = {"Mamba", "Mamba2", "FalconMamba"}
# Their prompts are computed whole.
WHOLE = {"Mamba", "FalconMamba", "Jamba", "Zamba2", "RecurrentGemma"}


BOTH_WAYS = pytest.mark.parametrize("native_kernels", [True, False], ids=["kernels", "plain"])
# The short form tries some of it with native kernels only.
ONE_WAY_OR_BOTH = BOTH_WAYS if os.environ.get("SOAK") else pytest.mark.parametrize("native_kernels", [True])


@dataclass(frozen=True)
class Saved:
    folder: Path
    expected: list[list[int]]  # the tokens of `generate()`, of each prompt
    constrained: list[list[int]]

    def loaded(self, dtype: str = "float32", **limits: Any) -> LoadedModel:
        limits = {"tokens_per_step": 24, "cache_tokens": 2048, **limits}
        return load_model(str(self.folder), LoadOptions(dtype=dtype, batch=BatchLimits(**limits)), lambda *_: None)

    def original(self) -> Any:
        return transformers.AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32).eval()

    def requests(self, loaded: LoadedModel) -> list[Request]:
        """All prompts, some of them under a grammar as well, and the longest answer with a prediction."""
        plain = [new_request(prompt(length, seed), max_tokens=NUM_TOKENS) for seed, length in enumerate(LENGTHS)]
        of_model: dict[str, Any] = {"revision": loaded.revision, "tokenizer": loaded.tokenizer}
        made = [replace(request.prepared, **of_model) for request in plain]
        params = replace(made[0].params, max_tokens=2 * letters.LENGTH, ignore_eos=False)
        constrained = [replace(made[at], params=params, grammar=letters.compiled()) for at in CONSTRAINED]
        made[1] = replace(made[1], prediction_ids=_half_right(self.expected[1]))
        return [Request(one) for one in (*made, *constrained)]

    def check(self, requests: list[Request]) -> None:
        assert [tokens(request) for request in requests] == [*self.expected, *self.constrained]


@pytest.fixture(
    scope="module",
    params=[name if name in IN_MAKE_TEST else pytest.param(name, marks=pytest.mark.long) for name in TRIED],
)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def saved(family: str, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    kind, sizes = FAMILIES[family]
    folder = tmp_path_factory.mktemp("families")
    new_model_of(kind, **sizes).save_pretrained(folder)
    words = {TOKENIZER.token_text(number): number for number in range(TOKENIZER.vocabulary_size)}
    of_words = Tokenizer(WordLevel(words, unk_token=TOKENIZER.token_text(0)))
    transformers.PreTrainedTokenizerFast(tokenizer_object=of_words).save_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    # Of a copy, as RecurrentGemma begins a prompt of one token with what it keeps of the text before.
    prompts = [prompt(length, seed) for seed, length in enumerate(LENGTHS)]
    expected = [greedy(deepcopy(model), one, NUM_TOKENS) for one in prompts]
    return Saved(folder, expected, [letters.greedy_within(deepcopy(model), prompts[at]) for at in CONSTRAINED])


@BOTH_WAYS
def test_the_tokens_are_those_of_generate(
    family: str, saved: Saved, native_kernels: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """At once, with and without a grammar, and then one after the other."""
    caplog.set_level("INFO", "tis.engine")
    loaded = saved.loaded(native_kernels=native_kernels)
    runner, requests = loaded.new_runner(), saved.requests(loaded)
    assert not run(runner, requests).errors
    saved.check(requests)
    assert isinstance(runner, TurnRunner if family in IN_TURNS else BatchRunner)
    assert "runs without it" not in caplog.text and "one at a time" not in caplog.text
    assert ("prompts are computed whole" in caplog.text) == loaded.starts_whole == (family in WHOLE)
    if not native_kernels:
        return
    lonely = saved.requests(loaded)
    runner = loaded.new_runner()
    for request in lonely:
        assert not run(runner, [request]).errors
    saved.check(lonely)


@ONE_WAY_OR_BOTH
def test_killed_in_mid_answer_they_go_on_in_another_process(saved: Saved, native_kernels: bool) -> None:
    loaded = saved.loaded(native_kernels=native_kernels)
    requests = saved.requests(loaded)
    waiting, runner, readers = list(requests), loaded.new_runner(), Readers()
    num_all = sum(map(len, [*saved.expected, *saved.constrained]))
    while sum(len(piece.token_ids) for pieces in readers.pieces.values() for piece in pieces) < num_all // 2:
        if waiting:
            runner.admit(waiting.pop(0))
        runner.step(readers.hand_out)
    # What a store has of each, and nothing else of the first process.
    stored = [json.dumps(request.prepared.resumable.to_json()) for request in requests]
    emitted = [emitted_tokens(readers.of(request)) for request in requests]
    assert any(0 < len(one.token_ids) < NUM_TOKENS for [one] in emitted[: len(LENGTHS)])
    assert any(0 < len(one.token_ids) < letters.LENGTH for [one] in emitted[len(LENGTHS) :])
    del runner, loaded, waiting, readers
    loaded = saved.loaded(native_kernels=native_kernels)
    again: list[Request] = []
    for text, shown in zip(stored, emitted, strict=True):
        resumable = ResumableRequest.from_json(json.loads(text))
        prepared = restore_request(resumable, loaded, grammar=letters.compiled() if resumable.grammar else None)
        again.append(Request(prepared, completions=replay_completions(prepared, shown)))
    assert not run(loaded.new_runner(), [request for request in again if request.unfinished]).errors
    saved.check(again)


@ONE_WAY_OR_BOTH
def test_they_are_the_same_after_preemption_with_cached_prefixes_and_drafts(
    saved: Saved, family: str, native_kernels: bool
) -> None:
    model = saved.original()
    shared = prompt(20, 1)
    prompts = [shared + prompt(3, 2), shared + prompt(9, 5), prompt(24, 3), prompt(30, 4)]
    expected = [greedy(deepcopy(model), one, 30) for one in prompts]
    runner = saved.loaded(tokens_per_step=16, cache_tokens=112, native_kernels=native_kernels).new_runner()
    requests = [new_request(one, max_tokens=30) for one in prompts]
    requests[0] = Request(replace(requests[0].prepared, prediction_ids=_half_right(expected[0])))
    before = ACCEPTED_DRAFT_TOKENS.labels("prompt_lookup")._value.get()
    assert not run(runner, requests, every=5).errors
    assert [tokens(request) for request in requests] == expected
    if isinstance(runner, TurnRunner):
        return
    assert isinstance(runner, BatchRunner)
    assert runner.scheduler.num_preemptions or family in STATES_ALONE
    if family in WITH_STATES:
        return
    assert requests[1].answer.cached_tokens
    assert ACCEPTED_DRAFT_TOKENS.labels("prompt_lookup")._value.get() > before


def test_in_bfloat16_it_is_as_exact_as_transformers(saved: Saved) -> None:
    """The log probabilities of its tokens differ from those of float32 as those of `forward()` do."""
    theirs = transformers.AutoModelForCausalLM.from_pretrained(saved.folder, dtype=torch.bfloat16).eval()
    exact = deepcopy(theirs).float()
    requests = [new_request(prompt(length, seed), max_tokens=4, top_logprobs=0) for seed, length in enumerate(LENGTHS)]
    readers = run(saved.loaded("bfloat16").new_runner(), requests)
    assert not readers.errors
    of_ours: list[float] = []
    of_theirs: list[float] = []
    for request in requests:
        row = torch.tensor([[*request.prompt_ids, *tokens(request)]])
        with torch.inference_mode():
            logits = [model(input_ids=row, use_cache=False).logits[0].float() for model in (theirs, exact)]
        rounded, right = (one.log_softmax(-1)[range(-5, -1), tokens(request)].tolist() for one in logits)
        ours = [entry.logprob for piece in readers.of(request) for entry in piece.logprobs]
        of_ours += [abs(one - other) for one, other in zip(ours, right, strict=True)]
        of_theirs += [abs(one - other) for one, other in zip(rounded, right, strict=True)]
    assert statistics.median(of_ours) <= 2 * statistics.median(of_theirs)


@pytest.mark.parametrize(("dtype", "quantisation"), [("float32", "int8"), ("bfloat16", "int8"), ("bfloat16", "int4")])
def test_weights_that_are_integers_answer(saved: Saved, dtype: str, quantisation: str) -> None:
    requests = [new_request(prompt(length, seed), max_tokens=4) for seed, length in enumerate(LENGTHS)]
    assert not run(saved.loaded(dtype, quantisation=quantisation).new_runner(), requests).errors
    assert [len(tokens(request)) for request in requests] == [4] * len(LENGTHS)


def _half_right(token_ids: list[int]) -> list[int]:
    """One token in seven is wrong."""
    return [99 if at % 7 == 5 else token for at, token in enumerate(token_ids)]
