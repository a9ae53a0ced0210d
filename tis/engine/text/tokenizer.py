"""What the engine needs of a tokenizer."""

from collections.abc import Collection, Sequence
from typing import Protocol

from tis.engine.prompt import ChatPrompt
from tis.engine.text.detokenizer import Detokenizer


class Tokenizer(Protocol):
    @property
    def eos_ids(self) -> Collection[int]: ...

    @property
    def vocabulary_size(self) -> int: ...

    def encode_chat(self, prompt: ChatPrompt) -> list[int]: ...

    def encode_text(self, text: str) -> list[int]:
        """Without a template and without control tokens."""
        ...

    def count_tokens(self, text: str, max_tokens: int) -> int: ...

    def token_text(self, token_id: int) -> str: ...

    def token_bytes(self, token_id: int) -> bytes: ...

    def new_detokenizer(self) -> Detokenizer: ...


def decode(tokenizer: Tokenizer, token_ids: Sequence[int]) -> str:
    detokenizer = tokenizer.new_detokenizer()
    return "".join(map(detokenizer.feed, token_ids)) + detokenizer.flush()
