"""What stands where a request has its tokenizer: an upstream has one of its own, which nobody here can ask."""

from collections.abc import Collection
from typing import NoReturn

from tis.engine.prompt import ChatPrompt


class NoTokenizer:
    eos_ids: Collection[int] = ()
    vocabulary_size = 0

    def encode_chat(self, prompt: ChatPrompt) -> list[int]:
        _refuse()

    def encode_text(self, text: str) -> list[int]:
        _refuse()

    def count_tokens(self, text: str, max_tokens: int) -> int:
        _refuse()

    def token_text(self, token_id: int) -> str:
        _refuse()

    def token_bytes(self, token_id: int) -> bytes:
        _refuse()

    def new_detokenizer(self) -> NoReturn:
        _refuse()


def _refuse() -> NoReturn:
    raise AssertionError("an upstream's tokens are not known here")


NO_TOKENIZER = NoTokenizer()
