"""What the engine needs of a tokenizer."""

from collections.abc import Collection, Sequence
from itertools import accumulate
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


class TextCodec(Protocol):
    """Encodes and decodes texts, whatever the model makes of them: text, vectors or scores."""

    @property
    def vocabulary_size(self) -> int: ...

    def encode_raw(self, text: str, *, adds_special_tokens: bool, max_tokens: int | None = None) -> list[int]:
        """A prompt without a template. Control tokens that are written in the text count as such, if the model writes.

        Raises TooManyTokens if there are more than `max_tokens`, if possible before all of them are there.
        """
        ...

    def decode_raw(self, token_ids: Sequence[int]) -> str:
        """With control tokens, as they are written."""
        ...

    def token_bytes(self, token_id: int) -> bytes: ...

    def token_names(self, token_ids: Sequence[int]) -> list[str]:
        """As the vocabulary spells them."""
        ...


class RawTokenizer(Tokenizer, TextCodec, Protocol):
    """That of a loaded model that writes text: it encodes raw texts, too."""

    def visible_texts(self, token_ids: Sequence[int]) -> list[str]:
        """The text that each token adds to those before it; joined, they are the whole. Control tokens are visible."""
        ...

    def text_offsets(self, text: str, token_ids: Sequence[int], *, adds_special_tokens: bool) -> list[int]:
        """Where each token of an encoded raw text begins in it, in characters."""
        ...


def offsets_of(visible_texts: Sequence[str], num_chars: int) -> list[int]:
    """Where each of these texts begins in a text of so many characters, which is about the same."""
    return [min(at, num_chars) for at in accumulate(map(len, visible_texts[:-1]), initial=0)]


def decode(tokenizer: Tokenizer, token_ids: Sequence[int]) -> str:
    detokenizer = tokenizer.new_detokenizer()
    return "".join(map(detokenizer.feed, token_ids)) + detokenizer.flush()
