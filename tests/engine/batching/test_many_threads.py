"""Answers with more threads than there are cores: the numbers are the same to the bit, whatever the team."""

from typing import Any

import pytest
import torch

from tests.engine.batching.tiny import TOKENIZER, new_model_of, new_request, prompt, run, tokens
from tis.engine.answer import Piece
from tis.engine.batching.choose_runner import choose_runner
from tis.engine.batching.limits import BatchLimits
from tis.engine.kernels.native import native_kernels

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(native_kernels() is None, reason="torch divides sums as it likes: the kernels do not"),
]

TEAMS = (1, 2, 3, 8, 32)
WAYS: dict[str, dict[str, Any]] = {
    "as saved": {},
    "8 bits": {"quantisation": "int8"},
    "4 bits": {"quantisation": "int4"},
    "a cache of 8 bits": {"cache_dtype": "int8"},
}


def answers(way: str, dtype: Any, team: int) -> list[tuple[list[int], list[float]]]:
    """Long prompts beside short ones: keys in spans, prompts in tiles, and rows that are divided for want of blocks."""
    sizes = {"hidden_size": 256, "intermediate_size": 512, "num_key_value_heads": 1, "max_position_embeddings": 2048}
    model = new_model_of("Qwen3", head_dim=64, initializer_range=0.05, **sizes).to(dtype)
    torch.set_num_threads(team)
    limits = BatchLimits(cache_tokens=4096, prompt_lookup=False, step_seconds=0, tokens_per_step=256, **WAYS[way])
    runner = choose_runner(model, TOKENIZER, 2048, limits).new()
    requests = [
        new_request(prompt(length, seed), max_tokens=5, top_logprobs=3) for seed, length in enumerate((1100, 70, 7))
    ]
    readers = run(runner, requests)
    assert not readers.errors

    def logprobs(pieces: list[Piece]) -> list[float]:
        return [one.logprob for piece in pieces for entry in piece.logprobs for one in entry.top]

    return [(tokens(request), logprobs(readers.of(request))) for request in requests]


@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("way", WAYS)
def test_the_number_of_threads_changes_no_bit_of_an_answer(way: str, dtype: Any) -> None:
    alone = answers(way, dtype, TEAMS[0])
    assert all(len(numbers) == 15 for _, numbers in alone)
    for team in TEAMS[1:]:
        assert answers(way, dtype, team) == alone, team
