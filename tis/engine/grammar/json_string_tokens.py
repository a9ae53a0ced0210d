"""The tokens of a model as the text that they write inside a JSON string."""

from collections.abc import Sequence
from typing import Any

_ESCAPES = {ord("n"): b"\n", ord("r"): b"\r", ord("t"): b"\t", ord("b"): b"\b", ord("f"): b"\f"}
_ESCAPES |= {ord(character): character.encode() for character in '"\\'}
_QUOTE, _BACKSLASH, _FIRST_PRINTABLE = ord('"'), ord("\\"), 0x20


def decoded(written: bytes) -> tuple[bytes, bool] | None:
    """The text that this part of a JSON string means, and whether an escape is open at its end.

    None if it cannot stand within a string. \\u is not allowed: it could write half a surrogate pair.
    """
    text, at = bytearray(), 0
    while at < len(written):
        byte = written[at]
        if byte == _BACKSLASH:
            if at + 1 == len(written):
                return bytes(text), True
            at += 1
            if written[at] not in _ESCAPES:
                return None
            text += _ESCAPES[written[at]]
        elif byte == _QUOTE or byte < _FIRST_PRINTABLE:
            return None
        else:
            text.append(byte)
        at += 1
    return bytes(text), False


class _TextVocabulary:
    """What llguidance wants to know of a tokenizer: its tokens are the texts, the first 256 the bytes."""

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self.tokens = [*tokens, b"<end>"]
        self.eos_token_id = len(tokens)
        self.bos_token_id = None
        self.special_token_ids = [len(tokens)]

    def __call__(self, text: bytes) -> list[int]:
        return list(text)


class JsonStringTokens:
    """Maps the tokens of a model, inside a string, to those of `texts`, in which grammars of the text are compiled.

    A token that ends within an escape may come if one of the escapes that it begins may: so it has several texts.
    """

    def __init__(self, tokenizer: Any, vocabulary_size: int) -> None:
        import numpy as np
        from llguidance import LLTokenizer, TokenizerWrapper

        self._tokenizer = tokenizer
        self._vocabulary_size = vocabulary_size
        numbers = {bytes([byte]): byte for byte in range(256)}
        places: list[tuple[list[int], list[int]]] = [([], []), ([], [])]  # of a string, and behind a backslash
        for token_id in range(min(vocabulary_size, tokenizer.vocab_size)):
            for is_escaped in (False, True):
                token_ids, texts = places[is_escaped]
                for text in self._texts(token_id, is_escaped=is_escaped):
                    token_ids.append(token_id)
                    texts.append(numbers.setdefault(text, len(numbers)))
        self._places = [(np.array(ids, dtype=np.int64), np.array(texts, dtype=np.int64)) for ids, texts in places]
        self.texts = LLTokenizer(TokenizerWrapper(_TextVocabulary(list(numbers))))

    def allowed(self, mask: Any, *, is_escaped: bool) -> Any:
        """`mask`: which of the texts may come. Returns for each token of the model whether it may."""
        import numpy as np

        allowed = np.zeros(self._vocabulary_size, dtype=bool)
        token_ids, texts = self._places[is_escaped]
        allowed[token_ids[mask[texts]]] = True
        return allowed

    def read(self, token_id: int, *, is_escaped: bool) -> tuple[bytes, bool] | None:
        """As `decoded`. None if the token cannot stand within a string."""
        written = b"" if self._tokenizer.is_special_token(token_id) else self._tokenizer.decode_bytes([token_id])
        return decoded((b"\\" if is_escaped else b"") + written) if written else None

    def _texts(self, token_id: int, *, is_escaped: bool) -> list[bytes]:
        read = self.read(token_id, is_escaped=is_escaped)
        if read is None:
            return []
        text, is_open = read
        return [text + one for one in _ESCAPES.values()] if is_open else [text]
