"""A grammar over the letters that the tokens of tiny models are, and what `generate()` answers under it."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch

from tests.engine.batching.tiny import TOKENIZER, VOCABULARY
from tis.engine.grammar.compile import CompiledGrammar, GrammarCompiler
from tis.engine.grammar.grammar import Grammar

# The letters that each place may have. Those of the middle are forced, and computed in one piece.
_PLACES = ["abcdefghijklmnopqrstuvwxyz"] * 4 + list("penguins") + ["defghijklmnopqrstuvw"] * 4
PATTERN = Grammar("regex", "[a-z]{4}penguins[d-w]{4}")
LENGTH = len(_PLACES)


class _Letters:
    """The tokenizer as llguidance wants it."""

    eos_token_id = min(TOKENIZER.eos_ids)
    bos_token_id = 1
    special_token_ids = (0, 1, 2)
    tokens = tuple(map(TOKENIZER.token_bytes, range(VOCABULARY)))

    def __call__(self, text: str) -> list[int]:
        return [ord(letter) - ord(TOKENIZER.token_text(0)) for letter in text]


@cache
def compiled() -> CompiledGrammar:
    return GrammarCompiler(_new_tokenizer, VOCABULARY, "hermes", {}).compile(PATTERN)


def greedy_within(model: Any, prompt_ids: list[int], pictures: Mapping[str, Any] | None = None) -> list[int]:
    """Returns the tokens of model.generate(), which is told at each place what it may say."""
    encode = _Letters()
    allowed = [encode(letters) for letters in _PLACES]
    row = torch.tensor([prompt_ids])
    out = model.generate(
        row,
        attention_mask=torch.ones_like(row),
        do_sample=False,
        max_new_tokens=LENGTH,
        prefix_allowed_tokens_fn=lambda number, ids: allowed[len(ids) - len(prompt_ids)],
        **(pictures or {}),
    )
    return [int(token) for token in out[0, len(prompt_ids) :]]


def _new_tokenizer() -> Any:
    from llguidance import LLTokenizer, TokenizerWrapper

    return LLTokenizer(TokenizerWrapper(_Letters()), n_vocab=VOCABULARY, eos_token=_Letters.eos_token_id)
