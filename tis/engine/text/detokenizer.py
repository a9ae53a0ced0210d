"""Converts token ids to text incrementally, without ever emitting half a character.

The pieces joined are the text: nothing else decodes an answer.
"""

import codecs
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

BROKEN = "\N{REPLACEMENT CHARACTER}"
# A character has at most four bytes: one that is incomplete after more tokens than this stays so.
_MAX_WAITING_TOKENS = 8


class Detokenizer(Protocol):
    def feed(self, token_id: int) -> str: ...

    def flush(self) -> str:
        """Returns the rest when no more tokens come; an incomplete character becomes U+FFFD."""
        ...


class ByteDetokenizer:
    """For byte-level vocabularies (GPT-2, Qwen, Llama 3, ...): exact, with one lookup per token."""

    def __init__(self, token_bytes: Mapping[int, bytes]) -> None:
        self._token_bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token_id: int) -> str:
        return self._decoder.decode(self._token_bytes.get(token_id, b""))

    def flush(self) -> str:
        return self._decoder.decode(b"", final=True)


class WindowDetokenizer:
    """For any other tokenizer: decodes a short window with and without the new tokens, and emits the difference.

    The window begins one emitted piece back, as SentencePiece treats the first token of a text differently. It never
    has more than two dozen tokens: those that stay without text, such as control tokens, leave it again.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._emitted: list[int] = []
        self._emitted_text = ""  # of these tokens alone
        self._waiting: list[int] = []

    def feed(self, token_id: int) -> str:
        self._waiting.append(token_id)
        new = self._new_text()
        if not new:
            del self._waiting[:-_MAX_WAITING_TOKENS]
            return ""
        if new.endswith(BROKEN) and len(self._waiting) <= _MAX_WAITING_TOKENS:
            return ""
        self._emitted, self._waiting = self._waiting, []
        self._emitted_text = self._decode(self._emitted)
        return new

    def flush(self) -> str:
        new = self._new_text() if self._waiting else ""
        self._emitted, self._emitted_text, self._waiting = [], "", []
        return new

    def _new_text(self) -> str:
        return self._decode(self._emitted + self._waiting)[len(self._emitted_text) :]


class MarkerDetokenizer:
    """Emits some tokens as given characters, whatever the tokenizer makes of them."""

    def __init__(self, inner: Detokenizer, chars: Mapping[int, str]) -> None:
        self._inner = inner
        self._chars = chars

    def feed(self, token_id: int) -> str:
        char = self._chars.get(token_id)
        return self._inner.feed(token_id) if char is None else self._inner.flush() + char

    def flush(self) -> str:
        return self._inner.flush()
