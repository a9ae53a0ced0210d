"""Every family of Transformers starts and answers: in a batch or in turns, with the tokens of `generate()`.

`make soak` tries all of them; otherwise those that differ most.
"""

import os
import re
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from tests.engine.batching.families import FAMILIES
from tests.engine.batching.tiny import TOKENIZER, greedy, new_model_of, new_request, prompt, run, tokens
from tests.serving import REPOSITORY
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.limits import BatchLimits
from tis.engine.batching.turn_runner import TurnRunner
from tis.engine.models.loading import LoadOptions, load_model
from tis.engine.request import Request
from tis.engine.runner import Runner
from tis.observability.metrics import ACCEPTED_DRAFT_TOKENS

LENGTHS = (3, 40, 17, 1, 26, 33)
UNLIKE_OTHERS = (
    "OPT", "Nemotron", "GptOss", "Llama4", "DeepseekV2", "DeepseekV3", "Gemma2", "Mixtral", "Cohere", "Mamba",
    "DiffLlama", "Lfm2", "Qwen3Next", "FalconH1",
)  # fmt: skip
TRIED = tuple(FAMILIES) if os.environ.get("SOAK") else UNLIKE_OTHERS
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


@pytest.fixture(scope="module", params=TRIED)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def saved(family: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[int]]]:
    """The folder of a model, and its greedy tokens by `generate()`."""
    kind, sizes = FAMILIES[family]
    folder = tmp_path_factory.mktemp("families")
    new_model_of(kind, **sizes).save_pretrained(folder)
    words = {TOKENIZER.token_text(number): number for number in range(TOKENIZER.vocabulary_size)}
    letters = Tokenizer(WordLevel(words, unk_token=TOKENIZER.token_text(0)))
    transformers.PreTrainedTokenizerFast(tokenizer_object=letters).save_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    # Of a copy, as RecurrentGemma begins a prompt of one token with what it keeps of the text before.
    return folder, [greedy(deepcopy(model), prompt(length, seed), 12) for seed, length in enumerate(LENGTHS)]


@pytest.mark.parametrize("native_kernels", [True, False], ids=["kernels", "plain"])
def test_the_tokens_are_those_of_generate(
    family: str, saved: tuple[Path, list[list[int]]], native_kernels: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tis.engine")
    folder, expected = saved
    runner, answers = _answered(folder, "float32", 12, native_kernels=native_kernels)
    assert [tokens(request) for request in answers] == expected
    assert isinstance(runner, TurnRunner if family in IN_TURNS else BatchRunner)
    assert "runs without it" not in caplog.text and "one at a time" not in caplog.text
    assert ("prompts are computed whole" in caplog.text) == (family in WHOLE)


@pytest.mark.parametrize("native_kernels", [True, False], ids=["kernels", "plain"])
def test_they_are_the_same_after_preemption_with_cached_prefixes_and_drafts(
    family: str, saved: tuple[Path, list[list[int]]], native_kernels: bool
) -> None:
    if family in IN_TURNS:
        return
    model = transformers.AutoModelForCausalLM.from_pretrained(saved[0], dtype=torch.float32).eval()
    shared = prompt(20, 1)
    prompts = [shared + prompt(3, 2), shared + prompt(9, 5), prompt(24, 3), prompt(30, 4)]
    expected = [greedy(model, one, 30) for one in prompts]
    limits = BatchLimits(tokens_per_step=16, cache_tokens=112, native_kernels=native_kernels)
    runner = load_model(str(saved[0]), LoadOptions(dtype="float32", batch=limits), lambda *_: None).new_runner()
    assert isinstance(runner, BatchRunner)
    requests = [new_request(one, max_tokens=30) for one in prompts]
    # One token in seven is wrong.
    predicted = [99 if at % 7 == 5 else token for at, token in enumerate(expected[0])]
    requests[0] = Request(replace(requests[0].prepared, prediction_ids=predicted))
    before = ACCEPTED_DRAFT_TOKENS._value.get()
    assert not run(runner, requests, every=5).errors
    assert [tokens(request) for request in requests] == expected
    assert runner.scheduler.num_preemptions or family in STATES_ALONE
    if family in WITH_STATES:
        return
    assert requests[1].answer.cached_tokens
    assert ACCEPTED_DRAFT_TOKENS._value.get() > before


@pytest.mark.parametrize(("dtype", "quantisation"), [("bfloat16", None), ("float32", "int8"), ("bfloat16", "int8")])
def test_weights_of_fewer_bits_answer(
    saved: tuple[Path, list[list[int]]], dtype: str, quantisation: str | None
) -> None:
    _, answers = _answered(saved[0], dtype, 4, quantisation=quantisation)
    assert [len(tokens(request)) for request in answers] == [4] * len(LENGTHS)


def test_the_page_about_models_names_each_family() -> None:
    page = (REPOSITORY / "docs" / "models.md").read_text(encoding="utf-8")
    in_batches, in_turns = (set(re.findall(r"\w+", part)) for part in page.split("## In turns")[:2])
    for family, (kind, _) in FAMILIES.items():
        assert kind.removesuffix("Text") in (in_turns if family in IN_TURNS else in_batches), family
    assert f"tries {len(FAMILIES)} tiny" in page and f"of all {len(FAMILIES)}," in page
    assert f"In batches: {len(FAMILIES) - len(IN_TURNS)}" in page and f"In turns: {len(IN_TURNS)}" in page


def _answered(folder: Path, dtype: str, num_tokens: int, **limits: Any) -> tuple[Runner, list[Request]]:
    options = LoadOptions(dtype=dtype, batch=BatchLimits(tokens_per_step=24, cache_tokens=2048, **limits))
    runner = load_model(str(folder), options, lambda stage, share: None).new_runner()
    requests = [new_request(prompt(length, seed), max_tokens=num_tokens) for seed, length in enumerate(LENGTHS)]
    assert not run(runner, requests).errors
    return runner, requests
