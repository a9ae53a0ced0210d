"""A compiled grammar and the state of one answer in it. One thread at a time."""

import time
from typing import Any

from tis.engine.errors import GrammarTooComplex
from tis.engine.grammar.limits import MASK_SECONDS, MASK_SECONDS_PER_TOKEN
from tis.errors import GenerationFailed

_MAX_FORCED_TOKENS = 2048  # returned at once; further ones come with the next call
_NOT_ALLOWED = "doesn't satisfy the grammar"  # in the error of an LLMatcher; all others are limits


class Matcher:
    def __init__(self, inner: Any, vocabulary_size: int, initial_forced: list[int] | None = None) -> None:
        self._inner = inner  # an LLMatcher
        self._vocabulary_size = vocabulary_size
        self._initial_forced = initial_forced
        self._seconds = 0.0
        self._num_tokens_fed = 0

    def copy(self) -> "Matcher":
        return Matcher(self._inner.deep_copy(), self._vocabulary_size, self._initial_forced)

    def start(self) -> None:
        """Computes the first forced tokens once for all copies, because copies are made on the event loop."""
        self.allowed()
        self._initial_forced = self.forced()

    @property
    def is_complete(self) -> bool:
        """Whether no token can follow."""
        return bool(self._inner.is_stopped()) and not self._inner.is_error()

    @property
    def may_end(self) -> bool:
        return bool(self._inner.is_accepting())

    def allowed(self) -> Any:
        """Returns for each token whether it may come next."""
        import numpy as np

        began = time.thread_time()
        packed = np.frombuffer(self._inner.compute_bitmask(), dtype=np.uint8)
        self._seconds += time.thread_time() - began
        self._check(self._inner)
        return np.unpackbits(packed, count=self._vocabulary_size, bitorder="little").view(bool)

    def forced(self) -> list[int]:
        """Returns the tokens that must come next, as the tokenizer itself would split their text."""
        if self._initial_forced is not None and not self._num_tokens_fed:
            return self._initial_forced
        if self._inner.is_stopped():
            return []
        began = time.thread_time()
        ids: list[int] = self._inner.compute_ff_tokens()[:_MAX_FORCED_TOKENS]
        # Text that looks like a control token is tokenised as one, which the grammar does not allow inside text.
        ids = ids[: self._inner.validate_tokens(ids)] if ids else ids
        self._seconds += time.thread_time() - began
        self._check(self._inner)
        return ids

    def feed(self, token_id: int) -> None:
        self._inner.consume_token(token_id)
        self._num_tokens_fed += 1
        self._check(self._inner)

    def _check(self, inner: Any) -> None:
        if inner.is_error():
            if _NOT_ALLOWED in inner.get_error():
                raise GenerationFailed("The model gave a token that the grammar does not allow.")
            raise GrammarTooComplex("The grammar became too complex for this answer. Simplify it.")
        if self._seconds > MASK_SECONDS + MASK_SECONDS_PER_TOKEN * self._num_tokens_fed:
            raise GrammarTooComplex("The grammar takes more time per token than this server allows. Simplify it.")
