"""Encodes rendered chats with the tokenizer's Rust backend: without a lock, and without holding the interpreter.

The text of users is marked (`mark_control_tokens` of Transformers), so that control tokens in it are encoded as text.
The library encodes such text by switching a flag of the tokenizer, which needs a lock for the whole conversation. Here
the text of each control token is encoded once, at the load; the rest of a chat does not need the flag.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

# Few tokens of any vocabulary are longer, and those are runs of blanks.
MAX_CHARS_PER_TOKEN = 64
# Nearly every text that has more characters than this for each token of the limit is too long: count it first.
_USUAL_CHARS_PER_TOKEN = 8
_SLICE_CHARS = 16 * 1024
_MAX_MORE_TOKENS = 8  # that a slice may have because it was cut
_PIECES_AT_ONCE = 256
_MARKED_CHARS = 256 * 1024


class TooManyTokens(Exception):
    """Raised before all of a text is encoded."""

    def __init__(self, num_tokens: int) -> None:
        super().__init__(f"{num_tokens} tokens or more")
        self.num_tokens = num_tokens


class TextEncoder:
    def __init__(self, tokenizer: Any, control_tokens: Iterable[str]) -> None:
        """`tokenizer` is a fast one of Transformers. Its flags change here and never again."""
        from transformers.utils.chat_template_utils import (
            _CONTROL_TOKEN_END,
            _CONTROL_TOKEN_START,
            _encode_chat_piece,
            _get_control_token_patterns,
        )

        control_tokens = list(control_tokens)
        self._control_token, _ = _get_control_token_patterns(tuple(control_tokens))
        self._characters = frozenset("".join(control_tokens))
        self._first_characters = {token[0] for token in control_tokens}
        self._mark_characters = (_CONTROL_TOKEN_START, _CONTROL_TOKEN_END)
        self._backend = tokenizer.backend_tokenizer
        tokenizer.encode("", add_special_tokens=False)  # drops the truncation and padding of tokenizer.json
        self._newline_ids: list[int] = tokenizer.encode("\n", add_special_tokens=False)
        _, self._markers = _get_control_token_patterns(tuple(tokenizer.added_tokens_encoder))
        self._ids_as_text: Mapping[str, Sequence[int] | None] = {
            token: _unless_itself(
                _encode_chat_piece(tokenizer, token, True, self._newline_ids), tokenizer.convert_tokens_to_ids(token)
            )
            for token in control_tokens
        }
        self._backend.encode_special_tokens = tokenizer.split_special_tokens

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._backend.encode_batch_fast([text], add_special_tokens=False)[0].ids
        return ids

    def encode_raw(self, text: str, adds_special_tokens: bool, max_tokens: int | None) -> list[int]:
        """Raises TooManyTokens early if the text surely has more."""
        if max_tokens is not None:
            self.require_few(text, max_tokens)
        ids: list[int] = self._backend.encode_batch_fast([text], add_special_tokens=adds_special_tokens)[0].ids
        return ids

    def offsets(self, text: str, adds_special_tokens: bool) -> list[int]:
        """Where each token begins. A blank belongs to the token behind it, even if the library leaves it out."""
        [encoding] = self._backend.encode_batch([text], add_special_tokens=adds_special_tokens)
        ends = (end for _, end in encoding.offsets[:-1])
        return list(accumulate(ends, max, initial=0))

    def count(self, text: str, max_tokens: int) -> int:
        """The number of tokens, in slices: a few more than in one go. Stops beyond the limit."""
        if len(text) > max_tokens * MAX_CHARS_PER_TOKEN:
            return len(text) // MAX_CHARS_PER_TOKEN
        count = 0
        for some in _slices(text):
            if count > max_tokens:
                break
            count += len(self._backend.encode_batch_fast([some], add_special_tokens=False)[0])
        return count

    def mark(self, node: Any) -> Any:
        """`mark_control_tokens` of Transformers, which searches a long text in one go."""
        from transformers.utils.chat_template_utils import mark_control_tokens

        if isinstance(node, str):
            if len(node) <= _SLICE_CHARS:
                return mark_control_tokens(node, self._control_token)
            if not any(character in node for character in (*self._first_characters, *self._mark_characters)):
                return node
            return "".join(mark_control_tokens(some, self._control_token) for some in self._cut_outside_tokens(node))
        if isinstance(node, dict):
            return {key: self.mark(value) for key, value in node.items()}
        return [self.mark(value) for value in node] if isinstance(node, list | tuple) else node

    def _cut_outside_tokens(self, text: str) -> Iterator[str]:
        """Cuts at characters that no control token contains."""
        start = 0
        while start < len(text):
            end = start + _MARKED_CHARS
            while end < len(text) and text[end] in self._characters:
                end += 1
            yield text[start:end]
            start = end

    def encode_marked(self, chat: str, max_tokens: int | None) -> list[int]:
        """As the library does. Raises TooManyTokens early, and ValueError if a control token has no other spelling."""
        if max_tokens is not None:
            self.require_few(chat, max_tokens)
        has_marks = any(character in chat for character in self._mark_characters)
        pieces = self._markers.split(chat) if has_marks else [chat]
        ids = self.encode(pieces[0])
        of_texts = self._ids_of(pieces[2::2])
        for token, text in zip(pieces[1::2], pieces[2::2], strict=True):
            if token:  # None for a lone marker
                ids += self._ids_of_control_token(token)
            if text:
                ids += of_texts[text]
        return ids

    def require_few(self, chat: str, max_tokens: int) -> None:
        """Raises TooManyTokens if the text surely has more; it is encoded no further than that."""
        num_marks = min(map(chat.count, self._mark_characters))
        if num_marks > max_tokens:
            raise TooManyTokens(num_marks)
        refuse_many_tokens(self._backend, chat, max_tokens)

    def _ids_of(self, texts: Sequence[str]) -> dict[str, list[int]]:
        """After a newline, so that SentencePiece adds no space before them; the newline is removed again."""
        unique = list(dict.fromkeys(filter(None, texts)))
        found: dict[str, list[int]] = {}
        for start in range(0, len(unique), _PIECES_AT_ONCE):
            some = unique[start : start + _PIECES_AT_ONCE]
            encodings = self._backend.encode_batch_fast([f"\n{text}" for text in some], add_special_tokens=False)
            for text, encoding in zip(some, encodings, strict=True):
                ids, num_newline = encoding.ids, len(self._newline_ids)
                begins_with_it = ids[:num_newline] == self._newline_ids
                found[text] = ids[num_newline:] if begins_with_it else self.encode(text)
        return found

    def _ids_of_control_token(self, token: str) -> Sequence[int]:
        if (ids := self._ids_as_text.get(token)) is None:
            raise ValueError(f"Can't sanitize {token!r}: the tokenizer produces it from plain text")
        return ids


def refuse_many_tokens(backend: Any, text: str, max_tokens: int) -> None:
    """Raises TooManyTokens if the text surely has more; it is encoded no further than that."""
    min_tokens = len(text) // MAX_CHARS_PER_TOKEN
    if min_tokens > max_tokens:
        raise TooManyTokens(min_tokens)
    if len(text) <= max_tokens * _USUAL_CHARS_PER_TOKEN:
        return
    count = 0
    for some in _slices(text):
        count += max(0, len(backend.encode_batch_fast([some], add_special_tokens=False)[0]) - _MAX_MORE_TOKENS)
        if count > max_tokens:
            raise TooManyTokens(count)


def _unless_itself(ids: Sequence[int], token_id: int) -> Sequence[int] | None:
    return None if token_id in ids else ids


def _slices(text: str) -> Iterator[str]:
    """Cuts before blanks, where vocabularies begin a token, if there is one in the second half of a slice."""
    start = 0
    while start < len(text):
        end = min(start + _SLICE_CHARS, len(text))
        if end < len(text):
            half = start + _SLICE_CHARS // 2
            cut = max(text.rfind(" ", half, end), text.rfind("\n", half, end))
            end = cut if cut > 0 else end
        yield text[start:end]
        start = end
