"""One choice of an answer while it is being made: tokens come in, pieces of text go out."""

from collections.abc import Callable

from server.engine.answer import FinishReason, Piece, TokenLogprob
from server.engine.kept import ShownChoice
from server.engine.prepared import Prepared
from server.engine.random_stream import uniform
from server.engine.stop_strings import StopStrings
from server.errors import GenerationInterrupted


class Choice:
    """Plain Python over plain facts: touches no tensor, so it is tested without a model."""

    def __init__(self, index: int, prepared: Prepared) -> None:
        self.index = index
        self.prompt_ids = prepared.prompt_ids
        self.params = prepared.params
        self.token_ids: list[int] = []
        self.finish: FinishReason | None = None
        self.replayed_text = ""  # what readers had got when another process went on
        eos_ids = () if self.params.ignore_eos else prepared.tokenizer.eos_ids
        self.ending_ids = frozenset(eos_ids).union(self.params.stop_token_ids)
        self._seed = prepared.seed
        self._detokenizer = prepared.new_detokenizer()
        self._stops = StopStrings(prepared.stops)
        self._unshown_ids: list[int] = []
        self._unshown_logprobs: list[TokenLogprob] = []

    @property
    def may_end(self) -> bool:
        return len(self.token_ids) >= self.params.min_tokens

    @property
    def is_finished(self) -> bool:
        return self.finish is not None

    def next_uniform(self) -> float:
        """The random number that belongs to the next token."""
        return uniform(self._seed, self.index, len(self.token_ids))

    def accept(self, token_id: int, logprob: Callable[[], TokenLogprob] | None = None) -> Piece | None:
        """An ending token is no part of the answer: it is neither shown nor counted."""
        if self.may_end and token_id in self.ending_ids:
            return self.end()
        self.token_ids.append(token_id)
        self._unshown_ids.append(token_id)
        if logprob:
            self._unshown_logprobs.append(logprob())
        text = self._detokenizer.feed(token_id)
        if len(self.token_ids) >= self.params.max_tokens:
            return self._end("length", text + self._detokenizer.flush())
        shown = self._stops.feed(text) if self.may_end else text
        if self._stops.reached:
            return self._piece(shown, "stop")
        return self._piece(shown) if shown else None

    def replay(self, shown: ShownChoice) -> None:
        """Comes to stand where it stood when readers had got this and no more: the pieces are not made again."""
        if shown.finish:
            self.token_ids, self.finish = list(shown.token_ids), shown.finish
            return
        texts = []
        for token_id in shown.token_ids:
            if piece := self.accept(token_id):
                texts.append(piece.text)
            if self.is_finished:
                raise GenerationInterrupted("The answer cannot go on: what was shown of it had ended already.")
        if self._unshown_ids:
            raise GenerationInterrupted("The answer cannot go on: what was shown of it ends where no piece ends.")
        self.replayed_text = "".join(texts)

    def end(self) -> Piece:
        return self._end("stop", self._detokenizer.flush())

    def cancel(self) -> Piece:
        return self._end("cancelled", self._detokenizer.flush())

    def _end(self, reason: FinishReason, last_text: str) -> Piece:
        shown = self._stops.feed(last_text)
        if self._stops.reached:
            return self._piece(shown, "stop")
        return self._piece(shown + self._stops.flush(), reason)

    def _piece(self, text: str, finish: FinishReason | None = None) -> Piece:
        piece = Piece(self.index, text, tuple(self._unshown_ids), tuple(self._unshown_logprobs), finish)
        self._unshown_ids, self._unshown_logprobs = [], []
        self.finish = finish
        return piece
