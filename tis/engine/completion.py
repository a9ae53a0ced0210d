"""One choice of an answer while it is generated: takes tokens, gives pieces of text."""

from collections.abc import Callable, Sequence
from typing import Any

from tis.engine.answer import FinishReason, Piece, TokenLogprob
from tis.engine.errors import GenerationInterrupted
from tis.engine.prepared_request import PreparedRequest
from tis.engine.resumable_request import EmittedTokens
from tis.engine.sampling.random_stream import noise_key
from tis.engine.text.markers import split_markers
from tis.engine.text.stop_strings import StopStrings
from tis.errors import BadRequest, GenerationFailed

_SCORES_PER_PIECE = 64  # log probabilities of a prompt


class Completion:
    """Touches no tensor, so it is tested without a model."""

    def __init__(self, index: int, prepared: PreparedRequest) -> None:
        self.index = index
        self.prompt_ids = prepared.prompt_ids
        self.params = prepared.params
        self.token_ids: list[int] = []
        self.finish: FinishReason | None = None
        eos_ids = () if self.params.ignore_eos else prepared.tokenizer.eos_ids
        self.ending_ids = frozenset(eos_ids).union(self.params.stop_token_ids)
        self.constraint = prepared.new_constraint()
        self.adjuster: Any = None  # of its logits, made by its first step
        self._eos_ids = frozenset(prepared.tokenizer.eos_ids)
        self._decode = prepared.decode_with_markers
        self._seed = prepared.seed
        self._detokenizer = prepared.new_detokenizer()
        self._has_markers = bool(prepared.visible_markers)
        self._stops = StopStrings(prepared.stops)
        self._requested_stop = prepared.requested_stop
        # Only one completion computes the prompt; the others share it.
        self._scores_prompt = prepared.prompt_logprobs is not None and index == 0
        self.num_prompt_alternatives = prepared.prompt_logprobs or 0
        self._num_scored = 0  # tokens of the prompt whose log probabilities are in pieces
        self._scores: list[TokenLogprob] = []  # of those behind them
        # Accepted, but in no piece yet.
        self._pending_ids: list[int] = []
        self._pending_logprobs: list[TokenLogprob] = []
        self._pending_text = ""
        self._pending_offsets: list[int] = []  # in the whole text, of the tokens with log probabilities
        self._has_offsets = prepared.is_raw
        self._num_decoded = self._num_shown = 0  # characters; those of stop strings that may come are not shown yet
        # Leaves room for one token: the first piece comes with the first token that the model itself generates.
        self._begin_with_forced(self.params.max_tokens - 1)

    @property
    def next_scored(self) -> int | None:
        """The first token of the prompt whose log probability is not known yet; None if none is needed."""
        at = self._num_scored + len(self._scores)
        return at if self._scores_prompt and at < len(self.prompt_ids) else None

    def add_scores(self, scores: Sequence[TokenLogprob]) -> None:
        self._scores += scores

    def take_scores(self) -> list[Piece]:
        """In pieces that do not depend on how the prompt was computed, so a resumed answer has the same."""
        pieces: list[Piece] = []
        while self._scores and (len(self._scores) >= _SCORES_PER_PIECE or self.next_scored is None):
            some = tuple(self._scores[:_SCORES_PER_PIECE])
            del self._scores[:_SCORES_PER_PIECE]
            self._num_scored += len(some)
            pieces.append(Piece(self.index, "", (), prompt_logprobs=some))
        return pieces

    @property
    def may_end(self) -> bool:
        return len(self.token_ids) >= self.params.min_tokens

    @property
    def forbids_ending(self) -> bool:
        """Whether min_tokens forbids the ending tokens. Where a grammar applies, its mask decides instead."""
        return not self.may_end and not (self.constraint and self.constraint.is_answering)

    def allowed(self, likeliest: Callable[[], int]) -> Any | None:
        """A boolean numpy array over the vocabulary; None if every token may come next."""
        if self.constraint is None:
            return None
        return self.constraint.allowed(likeliest, may_end=self.may_end and not self.params.ignore_eos)

    @property
    def is_finished(self) -> bool:
        return self.finish is not None

    def next_noise_key(self) -> int:
        """The key of the noise that samples the next token."""
        return self.noise_key_at(len(self.token_ids))

    def noise_key_at(self, position: int) -> int:
        """`position`: of a token in the answer."""
        return noise_key(self._seed, self.index, position)

    def accept(self, token_id: int, logprob: Callable[[], TokenLogprob] | None = None) -> Piece | None:
        """Adds a sampled token. A token that ends the answer is neither emitted nor counted.

        Tokens that a grammar forces after it are added at once, in the same piece, so that no reader ever has half of
        them. With log probabilities, which only the model knows, forced tokens come one at a time.
        """
        if self._ends_with(token_id):
            return self.end()
        if logprob:
            self._pending_logprobs.append(logprob())
            if self._has_offsets:
                self._pending_offsets.append(self._num_decoded)
        text, finish = self._append(token_id)
        while finish is None and self._fast_forwards and (forced := self._forced()):
            for forced_id in forced:
                more, finish = self._append(forced_id)
                text += more
                if finish:
                    break
        return self._piece(text, finish) if text or finish else None

    def _ends_with(self, token_id: int) -> bool:
        if self.constraint and self.constraint.is_answering and token_id in self._eos_ids:
            return True
        return self.may_end and token_id in self.ending_ids

    @property
    def _fast_forwards(self) -> bool:
        return self.params.top_logprobs is None

    def _forced(self) -> Sequence[int]:
        return self.constraint.forced() if self.constraint else ()

    def _begin_with_forced(self, max_tokens: int) -> None:
        while self._fast_forwards and (forced := self._forced()[: max_tokens - len(self.token_ids)]):
            for token_id in forced:
                self._add(token_id)
                self._pending_text += self._detokenizer.feed(token_id)

    def _add(self, token_id: int) -> None:
        self.token_ids.append(token_id)
        self._pending_ids.append(token_id)
        if self.constraint:
            self.constraint.feed(token_id)

    def _append(self, token_id: int) -> tuple[str, FinishReason | None]:
        """Returns the text that may be emitted now, and why the answer ends with this token, if it does."""
        self._add(token_id)
        text, self._pending_text = self._pending_text + self._detokenizer.feed(token_id), ""
        self._num_decoded += len(text)
        if self.constraint and self.constraint.is_complete:
            return self._last_text(text + self._detokenizer.flush(), self._validated("stop"))
        if len(self.token_ids) >= self.params.max_tokens:
            return self._last_text(text + self._detokenizer.flush(), "length")
        text = self._stops.feed(text) if self.may_end else text
        return text, "stop" if self._stops.reached else None

    def replay(self, emitted: EmittedTokens) -> None:
        """Restores the state in which exactly these tokens had been emitted, without making their pieces again."""
        self._num_scored = emitted.num_scored
        if emitted.finish:
            self.token_ids, self.finish = list(emitted.token_ids), emitted.finish
            return
        if not emitted.token_ids:
            return
        self._replay(emitted.token_ids)
        if self._pending_ids or len(self.token_ids) > len(emitted.token_ids):
            raise GenerationInterrupted("The answer cannot be resumed: its recorded tokens end inside a piece.")

    def _replay(self, token_ids: Sequence[int]) -> None:
        """`accept` adds the tokens that a grammar forces by itself."""
        while (at := len(self.token_ids)) < len(token_ids):
            try:
                self.accept(token_ids[at])
            except GenerationFailed as error:
                raise GenerationInterrupted(_AGAINST_GRAMMAR) from error
            if self.is_finished:
                raise GenerationInterrupted("The answer cannot be resumed: its record continues behind its end.")
        if self.token_ids[: len(token_ids)] != token_ids:
            raise GenerationInterrupted(_AGAINST_GRAMMAR)

    def end(self) -> Piece:
        return self._end(self._validated("stop"))

    def cancel(self) -> Piece:
        return self._end("cancelled")

    def _validated(self, reason: FinishReason) -> FinishReason:
        """Raises GenerationFailed if the answer violates its grammar."""
        if self.constraint:
            self.constraint.validate_answer(self._decode)
        return reason

    def _end(self, reason: FinishReason) -> Piece:
        text, self._pending_text = self._pending_text + self._detokenizer.flush(), ""
        return self._piece(*self._last_text(text, reason))

    def _last_text(self, text: str, reason: FinishReason) -> tuple[str, FinishReason]:
        text = self._stops.feed(text)
        if self._stops.reached:
            return text, "stop"
        return text + self._stops.flush(), reason

    def _piece(self, text: str, finish: FinishReason | None = None) -> Piece:
        text, markers = split_markers(text) if self._has_markers else (text, ())
        ids, logprobs = tuple(self._pending_ids), tuple(self._pending_logprobs)
        stop = self._requested_stop(self._stops.found) if finish == "stop" else None
        offsets = tuple(at - self._num_shown for at in self._pending_offsets)
        if finish:
            offsets = tuple(min(at, len(text)) for at in offsets)
        piece = Piece(
            self.index, text, ids, logprobs, finish, markers, stop=stop, offsets=offsets if any(offsets) else ()
        )
        self._num_shown += len(text)
        self._pending_ids, self._pending_logprobs, self._pending_offsets = [], [], []
        self.finish = finish
        return piece


_AGAINST_GRAMMAR = "The answer cannot be resumed: its recorded tokens do not follow its grammar."


def begin_completions(prepared: PreparedRequest) -> None:
    """Makes the tokens that a grammar forces at the beginning, which may be thousands."""
    try:
        prepared.begun.append([Completion(index, prepared) for index in range(prepared.params.n)])
    except GenerationFailed as error:
        param = prepared.grammar.grammar.param if prepared.grammar else "response_format"
        raise BadRequest(f"{param}: {error.message}", param=param, code="schema_too_large") from None
