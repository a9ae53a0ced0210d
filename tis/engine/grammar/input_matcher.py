"""Holds calls to the grammar of their envelope, and the text within to a grammar of its own."""

import time
from collections.abc import Mapping
from typing import Any

from tis.engine.grammar.json_string_tokens import JsonStringTokens
from tis.engine.grammar.matcher import Matcher
from tis.errors import GenerationFailed


class InputMatcher(Matcher):
    """Outside of an input, the envelope decides; within, the grammar of the input, and where that may end, both.

    No token is both text of the string and its end, as the end begins with a quote, which the text would escape.
    """

    def __init__(
        self,
        envelope: Any,
        vocabulary_size: int,
        inputs: Mapping[int, Any],  # an LLMatcher in its first state for each place in the envelope
        strings: JsonStringTokens,
        initial_forced: list[int] | None = None,
    ) -> None:
        super().__init__(envelope, vocabulary_size, initial_forced)
        self._inputs = inputs
        self._strings = strings
        self._input: Any = None  # the LLMatcher of the input that grows
        self._is_escaped = False  # a backslash has opened an escape

    def copy(self) -> "InputMatcher":
        """Only a matcher in its first state is copied, in which there is no input."""
        return InputMatcher(
            self._inner.deep_copy(), self._vocabulary_size, self._inputs, self._strings, self._initial_forced
        )

    @property
    def is_complete(self) -> bool:
        return self._input is None and super().is_complete

    @property
    def may_end(self) -> bool:
        return self._input is None and super().may_end

    def allowed(self) -> Any:
        if self._input is None:
            return super().allowed()
        allowed = self._allowed_text()
        if self._input_may_end:
            allowed |= super().allowed()
        if not allowed.any():
            raise GenerationFailed("The grammar of the tool's input asks for a character that the model cannot write.")
        return allowed

    def forced(self) -> list[int]:
        if self._input is not None:
            return []
        ids = super().forced()
        return next((ids[:number] for number, one in enumerate(ids) if one in self._inputs), ids)

    def feed(self, token_id: int) -> None:
        if self._input is not None and self._feed_input(token_id):
            return
        self._input = None
        super().feed(token_id)
        self._begin_input()

    def _begin_input(self) -> None:
        """The place of an input is the only thing that may come, so it is always forced."""
        ids: list[int] = [] if self._inner.is_stopped() else self._inner.compute_ff_tokens()
        if ids and (place := ids[0]) in self._inputs:
            super().feed(place)
            self._input, self._is_escaped = self._inputs[place].deep_copy(), False

    def _feed_input(self, token_id: int) -> bool:
        """Returns whether the token belongs to the input."""
        read = self._strings.read(token_id, is_escaped=self._is_escaped)
        if read is None:
            if not self._input_may_end:
                raise GenerationFailed("The model ended the input of a tool where its grammar cannot end.")
            return False
        text, self._is_escaped = read
        self._input.consume_tokens(list(text))
        self._num_tokens_fed += 1
        self._check(self._input)
        return True

    @property
    def _input_may_end(self) -> bool:
        return not self._is_escaped and bool(self._input.is_accepting())

    def _allowed_text(self) -> Any:
        began = time.thread_time()
        allowed = allowed_texts(self._input, self._strings, is_escaped=self._is_escaped)
        self._seconds += time.thread_time() - began
        self._check(self._input)
        return allowed


def allowed_texts(matcher: Any, strings: JsonStringTokens, *, is_escaped: bool) -> Any:
    """For each token of the model, whether it may come next in the input."""
    import numpy as np

    packed = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
    mask = np.unpackbits(packed, bitorder="little").view(bool)
    return strings.allowed(mask, is_escaped=is_escaped)
