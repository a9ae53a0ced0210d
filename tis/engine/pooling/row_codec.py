"""The tokens that a model of vectors or scores reads of a text, for those who count or look at them."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from tis.engine.text.hf_tokenizer import byte_vocabulary
from tis.engine.text.text_encoder import refuse_many_tokens


class RowCodec:
    """As `TextRows` encodes a text: what is written like a control token is text, too."""

    def __init__(self, tokenizer: Any, vocabulary_size: int, *, lower_case: bool) -> None:
        self.vocabulary_size = vocabulary_size
        self._tokenizer = tokenizer
        self._backend = tokenizer.backend_tokenizer
        self._lower_case = lower_case

    def encode_raw(self, text: str, *, adds_special_tokens: bool, max_tokens: int | None = None) -> list[int]:
        if max_tokens is not None:
            refuse_many_tokens(self._backend, text, max_tokens)
        shown = text.lower() if self._lower_case else text
        ids: list[int] = self._backend.encode_batch_fast([shown], add_special_tokens=adds_special_tokens)[0].ids
        return ids

    def decode_raw(self, token_ids: Sequence[int]) -> str:
        return str(self._backend.decode(token_ids, skip_special_tokens=False))

    def token_bytes(self, token_id: int) -> bytes:
        if self._bytes and token_id in self._bytes:
            return self._bytes[token_id]
        return self.decode_raw([token_id]).encode()

    def token_names(self, token_ids: Sequence[int]) -> list[str]:
        return [self._backend.id_to_token(token_id) or "" for token_id in token_ids]

    @cached_property
    def _bytes(self) -> Mapping[int, bytes] | None:
        return byte_vocabulary(self._tokenizer)
